//! Which stage of a transfer is slowest: files and ciphers against the rate that is wanted.

use plumb_model::finding::{Cause, PathKind, Severity, Verdict};
use plumb_model::results::Outcome;
use plumb_model::results::host::{CipherResult, DiskResult, FileAccess, FileWork};
use plumb_model::run::Measurement;
use plumb_model::units::si;

use super::{Audit, Facts, Judged, conclude, fine, found};

/// Judges what was measured of files and ciphers; nothing where no rate is wanted.
pub fn stages(measurement: &Measurement) -> Audit {
    let empty = plumb_model::results::host::HostResult::default();
    let facts = Facts {
        host: &empty,
        measurement: &measurement.id,
    };
    let (judged, slowest) = match &measurement.outcome {
        Outcome::HostDisk(disk) => (self::disk(&facts, disk), slowest_disk(disk)),
        Outcome::HostCipher(cipher) => (self::ciphers(&facts, cipher), slowest_cipher(cipher)),
        _ => (Vec::new(), String::new()),
    };
    let mut audit = conclude(judged);
    if !slowest.is_empty() {
        audit.verdict = Verdict {
            headline: slowest,
            grade: None,
        };
    }
    audit
}

/// Reading and writing of the large file by read and write: what a copy does at the best.
fn slowest_disk(disk: &DiskResult) -> String {
    let slowest = disk.passes.iter().min_by(|a, b| a.bps.total_cmp(&b.bps));
    slowest.map_or_else(String::new, |pass| {
        format!(
            "The slowest way here is to {} by {}: {}{}.",
            pass.work.name(),
            pass.access.name(),
            si(pass.bps, "bit/s"),
            against(disk.rate_bps, pass.bps)
        )
    })
}

fn slowest_cipher(cipher: &CipherResult) -> String {
    let timed = cipher
        .ciphers
        .iter()
        .filter_map(|c| Some((c, c.seal_bps?.min(c.open_bps?))));
    let slowest = timed.min_by(|a, b| a.1.total_cmp(&b.1));
    slowest.map_or_else(String::new, |(one, bps)| {
        format!(
            "The slowest cipher here is {}'s {}: one core does {}{}.",
            one.used_by.name(),
            one.name,
            si(bps, "bit/s"),
            against(cipher.rate_bps, bps)
        )
    })
}

/// How a stage stands against the rate, to follow its own rate.
fn against(wanted: Option<f64>, bps: f64) -> String {
    match wanted {
        Some(rate) if bps < rate => {
            format!(", less than the {} that are wanted", si(rate, "bit/s"))
        }
        Some(rate) => format!(
            ", {:.1} times the {} that are wanted",
            bps / rate,
            si(rate, "bit/s")
        ),
        None => String::new(),
    }
}

fn disk(facts: &Facts<'_>, disk: &DiskResult) -> Vec<Judged> {
    let Some(rate) = disk.rate_bps else {
        return Vec::new();
    };
    let large = disk.passes.iter().enumerate().filter(|(_, pass)| {
        matches!(pass.work, FileWork::ReadLarge | FileWork::WriteLarge)
            && pass.access == FileAccess::ReadWrite
    });
    large
        .map(|(place, pass)| {
            let subject = pass.work.name();
            let does = format!("{}: {} ({})", subject, si(pass.bps, "bit/s"), pass.cache.name());
            if pass.bps >= rate {
                return fine(subject, does);
            }
            let verb = if pass.work.reads() { "feed" } else { "take" };
            found(
                subject,
                Cause::DiskSlow,
                Severity::Warning,
                &[PathKind::Lan, PathKind::LongPath],
                format!("Files in {} {verb} a transfer at {}, and {} are wanted.", disk.folder, si(pass.bps, "bit/s"), si(rate, "bit/s")),
            )
            .sure(0.8)
            .evidence(facts.evidence(format!("passes[{place}].bps"), pass.bps, "payload by time, held against the rate that is wanted", rate))
            .advice(
                "No setting of TCP helps here: use a faster disk or several, larger reads, or transfer from memory.",
                "Files at the rate of the network.",
            )
            .done()
        })
        .collect()
}

fn ciphers(facts: &Facts<'_>, cipher: &CipherResult) -> Vec<Judged> {
    let Some(rate) = cipher.rate_bps else {
        return Vec::new();
    };
    // The first of each program's list is what it uses when the other end agrees.
    let mut seen = Vec::new();
    let first = cipher.ciphers.iter().enumerate().filter(|(_, one)| {
        let first = !seen.contains(&one.used_by) && one.seal_bps.is_some();
        if first {
            seen.push(one.used_by);
        }
        first
    });
    first
        .filter_map(|(place, one)| {
            let bps = one.seal_bps?.min(one.open_bps?);
            let subject = format!("{} {}", one.used_by.name(), one.name);
            if bps >= rate {
                return Some(fine(subject, format!("one core does {}", si(bps, "bit/s"))));
            }
            Some(
                found(
                    subject,
                    Cause::CipherSlow,
                    Severity::Warning,
                    &[PathKind::Lan, PathKind::LongPath],
                    format!("One core encrypts {} for {} ({}), and {} are wanted.", si(bps, "bit/s"), one.used_by.name(), one.name, si(rate, "bit/s")),
                )
                .sure(0.85)
                .evidence(facts.evidence(format!("ciphers[{place}].seal_bps"), bps, "the slower of encrypting and decrypting on one core, held against the rate that is wanted", rate))
                .advice(
                    "Prefer a faster cipher of the list (AES-GCM where the processor has instructions for it), or use several connections: each has a core of its own.",
                    "Encryption no longer ends the rate.",
                )
                .done(),
            )
        })
        .collect()
}

//! Which stage of a transfer is slowest: files and ciphers against the rate that is wanted.

use plumb_model::finding::{Cause, PathKind, Severity, Verdict};
use plumb_model::results::Outcome;
use plumb_model::results::host::{
    CipherResult, CipherUse, DiskPass, DiskResult, FileAccess, FileWork, PageCache,
};
use plumb_model::units::si;

use super::{Audit, Facts, Judged, conclude, fine, found};

/// Judges what the measurement of that name found of files and ciphers; nothing where no rate is wanted.
pub fn stages(outcome: &Outcome, measurement: &str) -> Audit {
    // Of the machine itself nothing is asked.
    let host = Default::default();
    let facts = Facts {
        host: &host,
        measurement,
    };
    let (judged, slowest) = match outcome {
        Outcome::HostDisk(disk) => (self::disk(&facts, disk), slowest_disk(disk)),
        Outcome::HostCipher(cipher) => (self::ciphers(&facts, cipher), slowest_cipher(cipher)),
        _ => (Vec::new(), String::new()),
    };
    let mut audit = conclude(judged);
    if !slowest.is_empty() {
        audit.verdict = Verdict::of_a_part(slowest);
    }
    audit
}

/// What a copy does: one file, by read and write through the page cache.
fn copies(disk: &DiskResult) -> impl Iterator<Item = (usize, &DiskPass)> {
    disk.passes.iter().enumerate().filter(|(_, pass)| {
        matches!(pass.work, FileWork::ReadLarge | FileWork::WriteLarge)
            && pass.access == FileAccess::ReadWrite
            && pass.cache != PageCache::Direct
    })
}

fn slowest_disk(disk: &DiskResult) -> String {
    let slowest = copies(disk).min_by(|a, b| a.1.bps.total_cmp(&b.1.bps));
    slowest.map_or_else(String::new, |(_, pass)| {
        format!(
            "To {} is the slower direction for a copy here: {}{}.",
            pass.work.shown(),
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
            one.used_by.shown(),
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
    copies(disk)
        .map(|(place, pass)| {
            let subject = pass.work.shown();
            let does = format!("{}: {} ({})", subject, si(pass.bps, "bit/s"), pass.cache.shown());
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
            .evidence(facts.evidence(format!("passes[{place}].bps"), pass.bps, "rate of the files, against the one that is wanted", rate))
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
            let subject = format!("{} {}", one.used_by.shown(), one.name);
            if bps >= rate {
                return Some(fine(subject, format!("one core does {}", si(bps, "bit/s"))));
            }
            Some(
                found(
                    subject,
                    Cause::CipherSlow,
                    Severity::Warning,
                    &[PathKind::Lan, PathKind::LongPath],
                    format!("One core encrypts {} for {} ({}), and {} are wanted.", si(bps, "bit/s"), one.used_by.shown(), one.name, si(rate, "bit/s")),
                )
                // ssh has other code for the same cipher, which may be faster.
                .sure(if one.used_by == CipherUse::Ssh { 0.6 } else { 0.85 })
                .evidence(facts.evidence(format!("ciphers[{place}].seal_bps"), bps, "slower of encrypting and decrypting on one core, against the rate that is wanted", rate))
                .advice(
                    "Prefer a faster cipher of the list (AES-GCM where the processor has instructions for it), or use several connections: each has a core of its own.",
                    "Encryption no longer ends the rate.",
                )
                .done(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::host::CipherSpeed;

    fn disk(rate_bps: Option<f64>) -> Outcome {
        let pass = |work, cache, bps| DiskPass {
            work,
            access: FileAccess::ReadWrite,
            cache,
            bytes: 1000,
            duration_s: 1.0,
            bps,
            files_per_s: None,
            cut_short: false,
        };
        Outcome::HostDisk(DiskResult {
            folder: "/srv".into(),
            file_system: None,
            file_bytes: 1000,
            small_files: 0,
            small_file_bytes: 0,
            passes: vec![
                pass(FileWork::WriteLarge, PageCache::Synced, 2e9),
                pass(FileWork::WriteLarge, PageCache::Direct, 9e9),
                pass(FileWork::ReadLarge, PageCache::Forgotten, 6e9),
                pass(FileWork::WriteSmall, PageCache::Synced, 1e6),
            ],
            rate_bps,
        })
    }

    fn ciphers(rate_bps: Option<f64>) -> Outcome {
        let cipher = |used_by, name: &str, bps: Option<f64>| CipherSpeed {
            used_by,
            name: name.into(),
            algorithm: None,
            seal_bps: bps,
            open_bps: bps.map(|bps| bps * 0.9),
            note: None,
        };
        Outcome::HostCipher(CipherResult {
            block_bytes: 16384,
            ciphers: vec![
                cipher(CipherUse::Tls, "AES", Some(40e9)),
                cipher(CipherUse::Ssh, "CTR", None),
                cipher(CipherUse::Ssh, "CHACHA", Some(5e9)),
                cipher(CipherUse::Ssh, "SLOW", Some(1e9)),
            ],
            ssh: None,
            aes_instructions: None,
            rate_bps,
        })
    }

    #[test]
    fn what_is_slower_than_the_rate_is_named() {
        let slow = stages(&disk(Some(5e9)), "m1");
        let fields: Vec<_> = slow
            .findings
            .iter()
            .map(|f| (f.cause, f.evidence[0].field.as_str()))
            .collect();
        assert_eq!(fields, [(Cause::DiskSlow, "result.passes[0].bps")]);
        assert!(
            slow.verdict
                .headline
                .contains("write one file is the slower"),
            "{:?}",
            slow.verdict
        );
        // The first cipher of SSH that could be timed is judged, and not one that SSH would not choose.
        let slow = stages(&ciphers(Some(10e9)), "m1");
        let fields: Vec<_> = slow
            .findings
            .iter()
            .map(|f| (f.cause, f.evidence[0].field.as_str()))
            .collect();
        assert_eq!(fields, [(Cause::CipherSlow, "result.ciphers[2].seal_bps")]);
        assert!(slow.verdict.headline.contains("SLOW"));
    }

    #[test]
    fn what_is_fast_enough_or_has_no_rate_is_no_finding() {
        for one in [
            disk(Some(1e9)),
            disk(None),
            ciphers(Some(4e9)),
            ciphers(None),
        ] {
            let audit = stages(&one, "m1");
            assert!(audit.findings.is_empty(), "{audit:?}");
            assert!(!audit.verdict.headline.is_empty());
        }
    }
}

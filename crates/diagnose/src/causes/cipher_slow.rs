//! Encryption is slower than the transfer is to be.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;
use plumb_model::results::Outcome;
use plumb_model::results::host::{CipherResult, CipherUse};
use plumb_model::units::si;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Stage, against, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the same transfer without encryption, or with another cipher, is faster",
    needs: &[Need::Ciphers],
    stage,
    ..Entry::PLAIN
};

fn stage(facts: &Facts<'_>, outcome: &Outcome) -> Option<Stage> {
    match outcome {
        Outcome::HostCipher(cipher) => Some(Stage {
            judged: judged(facts, cipher),
            slowest: slowest(cipher),
        }),
        _ => None,
    }
}

fn judged(facts: &Facts<'_>, cipher: &CipherResult) -> Vec<Judged> {
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

fn slowest(cipher: &CipherResult) -> String {
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

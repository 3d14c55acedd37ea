//! Which stage of a transfer is slowest: files and ciphers against the rate that is wanted.

use plumb_model::finding::Verdict;
use plumb_model::results::Outcome;

use super::audit::{Audit, conclude};
use super::judged::Facts;
use super::stage::Stage;
use crate::causes;

/// Judges what the measurement of that name found of files and ciphers; nothing where no rate is wanted.
pub fn stages(outcome: &Outcome, measurement: &str) -> Audit {
    // Of the machine itself nothing is asked.
    let host = Default::default();
    let facts = Facts {
        host: &host,
        measurement,
    };
    let stage = causes::all().find_map(|(_, entry)| (entry.stage)(&facts, outcome));
    let Some(Stage { judged, slowest }) = stage else {
        return conclude(Vec::new());
    };
    let mut audit = conclude(judged);
    if !slowest.is_empty() {
        audit.verdict = Verdict::of_a_part(slowest);
    }
    audit
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::finding::Cause;
    use plumb_model::results::host::{
        CipherResult, CipherSpeed, CipherUse, DiskPass, DiskResult, FileAccess, FileWork, PageCache,
    };

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

//! What feeds a transfer: files and ciphers.

use plumb_model::results::Outcome;
use plumb_model::run::Run;

use super::Kind::{Number, Sentence, Text};
use super::Table;
use crate::number::{self, ABSENT};

/// What files can do.
pub(super) fn disk(run: &Run) -> Table {
    let mut table = Table::new(
        "Files",
        &[
            ("", Text),
            ("by", Text),
            ("page cache", Text),
            ("rate", Number),
            ("bytes/s", Number),
            ("files/s", Number),
            ("moved", Number),
            ("", Text),
        ],
    );
    for measurement in &run.measurements {
        let Outcome::HostDisk(disk) = &measurement.outcome else {
            continue;
        };
        table.title = format!(
            "Files in {} ({})",
            disk.folder,
            disk.file_system.as_deref().unwrap_or("unknown file system")
        );
        for pass in &disk.passes {
            table.row([
                pass.work.name().to_owned(),
                pass.access.name().to_owned(),
                pass.cache.name().to_owned(),
                number::rate(pass.bps),
                number::bytes(pass.bps / 8.0),
                pass.files_per_s
                    .map_or_else(String::new, |v| number::plain(v.round())),
                number::bytes(pass.bytes as f64),
                if pass.cut_short { "cut short" } else { "" }.to_owned(),
            ]);
        }
    }
    table
}

/// What one core encrypts.
pub(super) fn cipher(run: &Run) -> Table {
    let mut table = Table::new(
        "Ciphers on one core",
        &[
            ("", Text),
            ("encrypt", Number),
            ("decrypt", Number),
            ("timed", Text),
            ("offered as", Sentence),
        ],
    );
    for measurement in &run.measurements {
        let Outcome::HostCipher(cipher) = &measurement.outcome else {
            continue;
        };
        for one in &cipher.ciphers {
            let rate = |bps: Option<f64>| bps.map_or_else(|| ABSENT.to_owned(), number::rate);
            table.row([
                one.used_by.name().to_owned(),
                rate(one.seal_bps),
                rate(one.open_bps),
                one.algorithm
                    .clone()
                    .unwrap_or_else(|| "not timed".to_owned()),
                one.name.clone(),
            ]);
        }
        let aes = match cipher.aes_instructions {
            Some(true) => "The processor has instructions for AES.",
            Some(false) => "The processor has no instructions for AES: ChaCha20 is faster.",
            None => "",
        };
        let ssh = cipher
            .ssh
            .as_deref()
            .map_or_else(String::new, |ssh| format!(" SSH's list is that of {ssh}."));
        table.note = Some(
            format!("{aes}{ssh} Timed is ring's code; OpenSSL's may be faster. What it lacks (AES-CTR) is not timed.")
                .trim()
                .to_owned(),
        );
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::host::{CipherResult, CipherSpeed, CipherUse};
    use plumb_model::run::{HostFacts, Local, Measurement, SCHEMA};

    #[test]
    fn speeds_stand_under_their_heads() {
        let cipher = CipherSpeed {
            used_by: CipherUse::Ssh,
            name: "aes128-gcm@openssh.com".into(),
            algorithm: Some("AES-128-GCM".into()),
            seal_bps: Some(2e9),
            open_bps: Some(1e9),
            note: None,
        };
        let run = Run {
            schema: SCHEMA.into(),
            id: String::new(),
            started: String::new(),
            plumb: String::new(),
            command: Vec::new(),
            local: Local {
                host: HostFacts::default(),
                lab: None,
            },
            target: None,
            measurements: vec![Measurement {
                id: "m1".into(),
                outcome: Outcome::HostCipher(CipherResult {
                    block_bytes: 16384,
                    ciphers: vec![cipher],
                    ssh: None,
                    aes_instructions: None,
                    rate_bps: None,
                }),
                at_s: 0.0,
                duration_s: 1.0,
                params: Default::default(),
                series: Default::default(),
            }],
            findings: Vec::new(),
            verdict: None,
            notes: Vec::new(),
        };
        let table = super::cipher(&run);
        let heads = table.columns.iter().map(|column| column.name);
        let cells = table.rows.first().unwrap().cells.iter().map(String::as_str);
        assert_eq!(
            heads.zip(cells).collect::<Vec<_>>(),
            [
                ("", "SSH"),
                ("encrypt", "2.00 Gbit/s"),
                ("decrypt", "1.00 Gbit/s"),
                ("timed", "AES-128-GCM"),
                ("offered as", "aes128-gcm@openssh.com"),
            ]
        );
    }
}

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
                one.name.clone(),
                one.algorithm
                    .clone()
                    .unwrap_or_else(|| "not timed".to_owned()),
                rate(one.seal_bps),
                rate(one.open_bps),
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
            format!("{aes}{ssh} Not timed: the library has authenticated ciphers only.")
                .trim()
                .to_owned(),
        );
    }
    table
}

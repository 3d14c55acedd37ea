//! How the payload of a rate was encrypted.

use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::Scale;
use crate::view;

/// Cipher and handshakes of every encrypted direction.
pub(super) fn table(run: &Run) -> Table {
    let rows: Vec<_> = view::rates(run)
        .into_iter()
        .filter_map(|row| Some((row.phase, row.result.direction, row.result.tls.as_ref()?)))
        .collect();
    let scale = Scale::seconds(rows.iter().map(|(_, _, tls)| tls.handshake_s.p50));
    let mut table = Table::new(
        "Encryption",
        &[
            ("", Text),
            ("cipher suite", Text),
            ("handshakes", Number),
            ("median", Number),
            ("max", Number),
        ],
    );
    for (phase, direction, tls) in &rows {
        let time = |value: f64| format!("{} {}", scale.show(Some(value)), scale.unit);
        table.row([
            view::flow_in_phase(*phase, *direction),
            tls.cipher_suite.clone(),
            tls.handshake_s.count.to_string(),
            time(tls.handshake_s.p50),
            time(tls.handshake_s.max),
        ]);
    }
    table.note = Some("Encrypted by the programs, not by their kernels (no kTLS).".to_owned());
    table
}

//! What one core of this machine encrypts.

use plumb_model::results::host::CipherResult;
use plumb_model::run::Run;

use crate::number;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::Table;

impl Show for CipherResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.add(Place::Ciphers, [table(&all)]);
    }
}

fn table(all: &[&CipherResult]) -> Table {
    let ciphers = all.iter().flat_map(|result| &result.ciphers);
    Table::of("Ciphers on one core", ciphers)
        .text("", |one| one.used_by.shown())
        .num("encrypt", |one| one.seal_bps.map(number::rate))
        .num("decrypt", |one| one.open_bps.map(number::rate))
        .text("timed", |one| {
            one.algorithm.as_deref().unwrap_or("not timed")
        })
        .sentence("offered as", |one| one.name.clone())
        .noting(all.last().map(|result| note(result)))
}

/// What must be known to read the speeds.
fn note(result: &CipherResult) -> String {
    let aes = match result.aes_instructions {
        Some(true) => "The processor has instructions for AES.",
        Some(false) => "The processor has no instructions for AES: ChaCha20 is faster.",
        None => "",
    };
    let ssh = result
        .ssh
        .as_deref()
        .map_or_else(String::new, |ssh| format!(" SSH's list is from {ssh}."));
    format!("{aes}{ssh} Timed is ring's code; OpenSSL's may be faster. What it lacks (AES-CTR) is not timed.")
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::host::{CipherSpeed, CipherUse};

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
        let measured = CipherResult {
            block_bytes: 16384,
            ciphers: vec![cipher],
            ssh: None,
            aes_instructions: None,
            rate_bps: None,
        };
        let table = table(&[&measured]);
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

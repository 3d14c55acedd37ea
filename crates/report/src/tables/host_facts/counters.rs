//! Every counter of IP, TCP and UDP that has counted, with its meaning where it has one worth telling.

use plumb_model::counter::meaning;
use plumb_model::results::host::HostResult;

use crate::tables::Kind::{Number, Sentence, Text};
use crate::tables::Table;

pub(super) fn tables(host: &HostResult) -> Vec<Table> {
    let mut table = Table::new(
        "Counters of IP, TCP and UDP since the start",
        &[("", Text), ("", Number), ("", Text), ("", Sentence)],
    );
    for (name, value) in host.counters.iter().filter(|(_, value)| **value != 0) {
        let known = meaning(name);
        let text = |tell: fn(&plumb_model::counter::Counter) -> &str| {
            known.map_or_else(String::new, |counter| tell(counter).to_owned())
        };
        table.row([
            name.clone(),
            value.to_string(),
            text(|counter| counter.sense.name()),
            text(|counter| counter.meaning),
        ]);
    }
    let silent = host.counters.len().saturating_sub(table.rows.len());
    table.note = Some(format!("{silent} more are 0."));
    vec![table]
}

//! Every counter of IP, TCP and UDP that has counted, with its meaning where it has one worth telling.

use std::collections::BTreeMap;

use plumb_model::counter::meaning;

use crate::table::{Table, blank};

pub(super) fn table(counters: &BTreeMap<String, i64>) -> Table {
    let counted: Vec<_> = counters.iter().filter(|(_, value)| **value != 0).collect();
    let silent = counters.len().saturating_sub(counted.len());
    Table::of("Counters of IP, TCP and UDP since the start", counted)
        .text("", |(name, _)| (*name).clone())
        .num("", |(_, value)| **value)
        .text("", |(name, _)| blank(meaning(name).map(|c| c.sense.name())))
        .sentence("", |(name, _)| blank(meaning(name).map(|c| c.meaning)))
        .noted(format!("{silent} more are 0."))
}

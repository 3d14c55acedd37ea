//! Every table of a Run, in the order in which text and page show them.

use plumb_model::run::Run;

use crate::show::Place;
use crate::table::Table;
use crate::{latency, registry};

/// The tables, and apart those that the page folds away.
pub(crate) fn tables(run: &Run) -> (Vec<Table>, Vec<Table>) {
    let mut tables = registry::tables(run);
    tables.add(Place::RoundTrips, [latency::table(run)]);
    tables.into_order()
}

/// The tables of a page: the same as in a short text, and all others, which the page folds away.
pub(crate) fn of_page(run: &Run) -> (Vec<Table>, Vec<Table>) {
    let shown = answers(run);
    let (all, folded) = tables(run);
    let is_shown = |table: &Table| shown.iter().any(|other| other.title == table.title);
    let rest: Vec<Table> = all
        .into_iter()
        .filter(|table| !is_shown(table))
        .chain(folded)
        .collect();
    (shown, rest)
}

/// The tables of a short text. Round trips without a load to compare are a sentence there.
pub(crate) fn answers(run: &Run) -> Vec<Table> {
    let mut tables = registry::tables(run);
    let rows = latency::latencies(run);
    if rows.iter().any(|(_, row)| row.increase_s.is_some()) {
        tables.add(Place::RoundTrips, [latency::short(run)]);
    }
    tables.answers()
}

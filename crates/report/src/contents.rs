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

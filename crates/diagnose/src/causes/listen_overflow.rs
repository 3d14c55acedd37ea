//! Connections are refused because a queue of them is full.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer queue, or a faster server, leaves the counter of overflows still",
    needs: &[Need::CounterRates],
    examine: by_audit,
    ..Entry::PLAIN
};

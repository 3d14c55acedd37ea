//! Much of what this host sends is retransmitted.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "it is found by measuring one path after the other",
    needs: &[Need::CounterRates],
    examine: by_audit,
    ..Entry::PLAIN
};

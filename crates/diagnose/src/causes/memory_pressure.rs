//! The kernel's memory for sockets runs out.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a higher limit, or fewer connections, leaves the counter still",
    needs: &[Need::CounterRates],
    examine: by_audit,
    ..Entry::PLAIN
};

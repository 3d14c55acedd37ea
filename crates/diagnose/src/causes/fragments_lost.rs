//! Packets are not put together from their fragments.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "packets that fit the path need no fragments",
    needs: &[Need::CounterRates],
    examine: by_audit,
    ..Entry::PLAIN
};

//! Connections are refused because a queue of them is full.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer queue, or a faster server, leaves the counter of overflows still",
    needs: &[Need::CounterRates],
    resembles: &[],
    predicts: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

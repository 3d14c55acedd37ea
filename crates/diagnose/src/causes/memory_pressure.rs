//! The kernel's memory for sockets runs out.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a higher limit, or fewer connections, leaves the counter still",
    needs: &[Need::CounterRates],
    resembles: &[],
    predicts: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

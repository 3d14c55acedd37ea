//! Connections are refused because a queue of them is full.

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer queue, or a faster server, leaves the counter of overflows still",
    resembles: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

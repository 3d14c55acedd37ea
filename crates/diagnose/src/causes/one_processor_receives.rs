//! One processor of several serves all received packets.

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the rate goes up once the queues are spread over the processors",
    resembles: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

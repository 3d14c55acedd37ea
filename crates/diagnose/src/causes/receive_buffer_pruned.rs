//! Received segments are thrown away for want of buffer.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger receive buffer, or a reader that keeps up, leaves the counter still",
    resembles: &[(Cause::PathLoss, "there nothing that arrived is thrown away")],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

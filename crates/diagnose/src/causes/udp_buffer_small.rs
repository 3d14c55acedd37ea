//! UDP sockets drop datagrams for want of buffer.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger socket buffer leaves the kernel's counter of drops still",
    resembles: &[(
        Cause::PathLoss,
        "there the kernel's counter of drops stands still",
    )],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

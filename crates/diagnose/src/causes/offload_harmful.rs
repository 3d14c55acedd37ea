//! An offload damages what is forwarded.

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "forwarded packets keep their sizes once the offload is off",
    resembles: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

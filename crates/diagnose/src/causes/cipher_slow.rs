//! Encryption is slower than the transfer is to be.

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the same transfer without encryption, or with another cipher, is faster",
    resembles: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

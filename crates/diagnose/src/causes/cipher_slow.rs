//! Encryption is slower than the transfer is to be.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the same transfer without encryption, or with another cipher, is faster",
    needs: &[Need::Ciphers],
    examine: by_audit,
    ..Entry::PLAIN
};

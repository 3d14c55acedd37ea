//! Encryption is slower than the transfer is to be.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the same transfer without encryption, or with another cipher, is faster",
    needs: &[Need::Ciphers],
    resembles: &[],
    predicts: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

//! Files are slower than the transfer is to be.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the same transfer from memory to memory is faster",
    resembles: &[(
        Cause::SendBufferSmall,
        "there a transfer from memory is no faster",
    )],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

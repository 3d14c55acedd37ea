//! A radio link is weak, narrow or crowded.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a cable, or a place nearer to the access point, has neither the delay nor the loss",
    resembles: &[(
        Cause::BufferbloatDown,
        "a queue on the line delays wired machines too",
    )],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};

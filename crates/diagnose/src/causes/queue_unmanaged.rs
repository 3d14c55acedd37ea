//! This host's own queue is a plain first-in-first-out.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another queueing discipline lets small packets pass the large ones",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::BufferbloatUp,
        "there the queue is beyond this machine, and its own stays short",
    )],
    examine: by_audit,
    ..Entry::PLAIN
};

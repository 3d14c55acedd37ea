//! The driver's queue has no limit in bytes.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "with a limit in bytes the queueing discipline has the queue, and can manage it",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

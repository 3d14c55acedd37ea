//! The kernel reads time from a slow clock.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the processor's own counter takes less time to read",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

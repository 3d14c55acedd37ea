//! A setting of old advice does harm today.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the kernel's default carries more",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

//! A table or a limit of this machine is nearly full.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a higher limit has room",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

//! An offload damages what is forwarded.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "forwarded packets keep their sizes once the offload is off",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

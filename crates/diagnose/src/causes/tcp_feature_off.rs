//! A part of TCP that every path needs is switched off.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a connection opened with it switched on carries more",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

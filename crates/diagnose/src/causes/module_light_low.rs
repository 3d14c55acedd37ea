//! An optical module gets too little light.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "clean connectors or another fibre bring the light back",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

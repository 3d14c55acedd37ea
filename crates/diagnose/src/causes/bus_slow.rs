//! The bus of a network card is slower than its link.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another slot gives the card all of its lanes",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

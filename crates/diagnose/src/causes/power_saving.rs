//! A processor or a link saves power while packets wait.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, Harm, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    harms: Harm::Delay,
    vanishes: "round trips get shorter and steadier without it",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

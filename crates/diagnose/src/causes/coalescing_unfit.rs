//! The network card interrupts for every packet, or waits long before it does.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another setting takes fewer interrupts, or less time",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

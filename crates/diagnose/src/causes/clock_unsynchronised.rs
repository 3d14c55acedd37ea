//! Nothing holds the clock to true time.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a daemon of NTP or PTP holds it",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

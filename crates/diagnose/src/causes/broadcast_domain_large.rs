//! A link has more neighbours than a broadcast domain should.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a smaller network has less broadcast",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};

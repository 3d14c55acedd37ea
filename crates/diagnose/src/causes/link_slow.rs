//! A link runs below what both of its ends can.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another cable or port negotiates the rate that both ends can",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::NarrowestLine,
        "there a line beyond this machine is the narrow one",
    )],
    examine: by_audit,
    ..Entry::PLAIN
};

//! Interfaces on one link disagree about the largest packet.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "packets of the smaller size get through",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::PmtudBlackHole,
        "there the link's neighbours agree, and a hop beyond them loses what is large",
    )],
    examine: by_audit,
    ..Entry::PLAIN
};

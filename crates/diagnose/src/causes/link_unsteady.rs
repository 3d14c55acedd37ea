//! A link comes and goes.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, Harm, by_audit, of_lost_frames};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    harms: Harm::Delivery,
    vanishes: "another cable, module or port stays up",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the link's own counter of changes stands still",
    )],
    examine: by_audit,
    explains: of_lost_frames,
    ..Entry::PLAIN
};

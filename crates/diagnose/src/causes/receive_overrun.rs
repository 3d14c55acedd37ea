//! The network card drops packets before the kernel sees them.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, of_lost_frames};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger ring, or interrupts on more processors, leaves the counter of drops still",
    resembles: &[(
        Cause::PathLoss,
        "there the card's counters of drops stand still",
    )],
    yields_to: &[],
    examine: by_audit,
    explains: of_lost_frames,
};

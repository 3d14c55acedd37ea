//! This host's own queue drops packets.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, of_lost_frames};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer queue, or a managed one, leaves its counter of drops still",
    resembles: &[(
        Cause::PathLoss,
        "there the queue's own counter stands still",
    )],
    yields_to: &[],
    examine: by_audit,
    explains: of_lost_frames,
};

//! A link damages frames.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, of_lost_frames};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another cable or module, or clean connectors, leaves the counters of errors still",
    resembles: &[(
        Cause::PathLoss,
        "there this machine's counters of errors stand still",
    )],
    yields_to: &[],
    examine: by_audit,
    explains: of_lost_frames,
};

//! A processor's backlog of received packets overflows.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family, by_audit, of_lost_frames};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer backlog, or more processors for it, leaves the counter of drops still",
    resembles: &[(Cause::PathLoss, "there softnet_stat counts no drops")],
    yields_to: &[],
    examine: by_audit,
    explains: of_lost_frames,
};

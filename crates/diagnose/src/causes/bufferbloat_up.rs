//! A queue that uploads fill delays everything else.

use plumb_model::finding::Cause;
use plumb_model::results::Direction;

use crate::entry::{Entry, Family};
use crate::long_queue;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "uploads paced below the line's rate leave the round trips as they are while idle",
    resembles: &[(
        Cause::PathLoss,
        "packets that a radio sends again wait too, but at any rate of ours",
    )],
    yields_to: &[],
    examine: |case| long_queue::examine(case, Direction::Up),
    explains: |_, sign| long_queue::explains(sign, Direction::Up),
};

//! A queue that downloads fill delays everything else.

use plumb_model::finding::Cause;
use plumb_model::results::Direction;

use crate::entry::{Entry, Family};
use crate::long_queue;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "downloads paced below the line's rate leave the round trips as they are while idle",
    resembles: &[(
        Cause::PathLoss,
        "packets that a radio sends again wait too, but at any rate of ours",
    )],
    yields_to: &[],
    examine: |case| long_queue::examine(case, Direction::Down),
    explains: |_, sign| long_queue::explains(sign, Direction::Down),
};

//! The queue before a line is too short for one TCP connection to fill the line.

use plumb_model::finding::Cause;

use crate::drops_without_queue::{self, Depth};
use crate::entry::{Entry, Family};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "a load paced below the line's rate loses nothing and carries more",
    resembles: &[
        (
            Cause::Policer,
            "a policer drops without that any packet comes later",
        ),
        (
            Cause::PathLoss,
            "loss at random takes as many packets below the rate as above",
        ),
    ],
    yields_to: &[],
    examine: |case| drops_without_queue::examine(case, Depth::Short),
    explains: drops_without_queue::explains,
};

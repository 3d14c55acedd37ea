//! What exceeds a contract is dropped at once, without a queue.

use plumb_model::finding::Cause;

use crate::drops_without_queue::{self, Depth};
use crate::entry::{Entry, Family};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "a load paced below the contract's rate loses nothing",
    resembles: &[
        (
            Cause::PathLoss,
            "loss at random takes as many packets below the rate as above",
        ),
        (
            Cause::ShallowQueue,
            "packets that pass a short queue come later while it is full",
        ),
    ],
    yields_to: &[],
    examine: |case| drops_without_queue::examine(case, Depth::None),
    explains: drops_without_queue::explains,
};

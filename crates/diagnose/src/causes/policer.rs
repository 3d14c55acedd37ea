//! What exceeds a contract is dropped at once, without a queue.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::drops_without_queue::{self, Depth};
use crate::entry::{Entry, Family, Often};
use crate::weighing::prediction::{Observable, Prediction, strength};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    often: Often {
        home: -1.0,
        campus: 0.0,
        cloud: 1.0,
        mobile: 1.0,
    },
    vanishes: "a load paced below the contract's rate loses nothing",
    needs: &[Need::Upload, Need::Download],
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
    predicts: &[
        Prediction::unlikely(Observable::QueueAboveRate, strength::STRONG),
        Prediction::unlikely(Observable::IdleLoss, strength::MODERATE).if_present(),
    ],
    yields_to: &[Cause::PacketRateLimited, Cause::PerFlowLimit],
    examine: |case| drops_without_queue::examine(case, Depth::None),
    explains: drops_without_queue::explains,
    ..Entry::PLAIN
};

//! The queue before a line is too short for one TCP connection to fill the line.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::drops_without_queue::{self, Depth};
use crate::entry::{Entry, Family, Often};
use crate::weighing::prediction::{Observable, Prediction, strength};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    often: Often {
        home: -1.0,
        campus: 2.0,
        cloud: 0.0,
        mobile: -2.0,
    },
    vanishes: "a load paced below the line's rate loses nothing and carries more",
    needs: &[Need::Upload, Need::Download],
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
    predicts: &[
        Prediction::unlikely(Observable::QueueAboveRate, strength::STRONG),
        Prediction::unlikely(Observable::IdleLoss, strength::MODERATE).if_present(),
    ],
    yields_to: &[
        Cause::Handover,
        Cause::PacketRateLimited,
        Cause::PerFlowLimit,
    ],
    examine: |case| drops_without_queue::examine(case, Depth::Short),
    explains: drops_without_queue::explains,
    ..Entry::PLAIN
};

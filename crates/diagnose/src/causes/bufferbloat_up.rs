//! A queue that uploads fill delays everything else.

use plumb_model::finding::Cause;
use plumb_model::need::Need;
use plumb_model::results::Direction;

use crate::captured;
use crate::entry::{Amount, Entry, Family, Harm, Often};
use crate::long_queue;
use crate::weighing::prediction::{Observable, Prediction, strength};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    often: Often {
        home: 3.0,
        campus: 0.0,
        cloud: -1.0,
        mobile: 3.0,
    },
    harms: Harm::Delay,
    vanishes: "uploads paced below the line's rate leave the round trips as they are while idle",
    needs: &[Need::UploadQueue],
    resembles: &[(
        Cause::PathLoss,
        "packets that a radio retries wait too, but at any rate of ours",
    )],
    predicts: &[
        Prediction::likely(Observable::StandingQueue, strength::MODERATE),
        Prediction::likely(Observable::QueueAboveRate, strength::MODERATE),
        Prediction::unlikely(Observable::LossBelowRate, strength::MODERATE).if_present(),
        Prediction::unlikely(Observable::IdleSpread, strength::WEAK).if_present(),
    ],
    yields_to: &[Cause::CrossTraffic],
    amount: Amount::Queue(Direction::Up),
    asks_below_rate: true,
    examine: |case| {
        let mut found = long_queue::examine(case, Direction::Up);
        found.extend(captured::queue(case, Direction::Up));
        found
    },
    explains: |finding, sign| long_queue::explains(finding, sign, Direction::Up),
    ..Entry::PLAIN
};

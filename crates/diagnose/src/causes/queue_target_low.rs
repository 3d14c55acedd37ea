//! A managed queue drops so early that TCP cannot fill the line.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::drops_without_queue::{self, Depth};
use crate::entry::{Entry, Family};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "with a target of 5 ms or more, or a tenth of the round trip, TCP carries what the line does",
    needs: &[Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::ShallowQueue,
            "a short queue is as short for datagrams that come faster than the line",
        ),
        (
            Cause::PathLoss,
            "loss at random takes as many packets below the rate as above",
        ),
    ],
    yields_to: &[
        Cause::DuplexMismatch,
        Cause::CrossTraffic,
        Cause::Handover,
        Cause::RateVaries,
    ],
    examine: |case| drops_without_queue::examine(case, Depth::Managed),
    explains: drops_without_queue::explains,
    ..Entry::PLAIN
};

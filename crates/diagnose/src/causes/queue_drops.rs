//! This host's own queue drops packets.

use plumb_model::finding::{Cause, Place};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::signs::COSTLY_RATIO;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer queue, or a managed one, leaves its counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the queue's own counter stands still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let of = |name: &&str| Dropped::at(counted, name, "tx", &["qdisc_drops", "tx_dropped"]);
            counted.interfaces().iter().map(of).collect()
        })
    },
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check. A bottleneck in this machine drops what TCP sends too fast, as any full queue does: as many as
/// cost every use are worth fixing.
const SAID: Said = Said {
    cause: Cause::QueueDrops,
    place: Place::ThisHost,
    what: "dropped in its own sending queue",
    warning_ratio: COSTLY_RATIO,
    fix: "Where this machine is not meant to be the bottleneck, find what makes it so: the link's speed, a shaper (`tc -s qdisc`), too short a queue (`ip link` shows qlen).",
    kb: "host",
};

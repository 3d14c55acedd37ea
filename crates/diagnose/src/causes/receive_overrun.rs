//! The network card drops packets before the kernel sees them.

use plumb_model::finding::{Cause, Place};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger ring, or interrupts on more processors, leaves the counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the card's counters of drops stand still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let counters = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];
            let of = |name: &&str| Dropped::at(counted, name, "rx", &counters);
            counted.interfaces().iter().map(of).collect()
        })
    },
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::ReceiveOverrun,
    place: Place::ThisHost,
    what: "had no room in its card's receive ring for",
    warning_ratio: LOSS_WARNING,
    fix: "Let the ring hold more packets (`ethtool -G`), spread them over more queues or processors, and look at power saving: `plumb host` says which of these is left.",
    kb: "host",
};

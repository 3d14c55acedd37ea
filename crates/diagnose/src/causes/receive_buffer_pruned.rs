//! Received segments are thrown away for want of buffer.

use plumb_model::finding::{Cause, Place};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger receive buffer, or a reader that keeps up, leaves the counter still",
    needs: &[Need::CounterRates],
    resembles: &[(Cause::PathLoss, "there nothing that arrived is thrown away")],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let drops = [
                "TcpExtRcvPruned",
                "TcpExtOfoPruned",
                "TcpExtTCPRcvQDrop",
                "TcpExtTCPBacklogDrop",
                "TcpExtTCPOFODrop",
            ];
            vec![Dropped::of(
                counted,
                drops.map(str::to_owned),
                counted.grown("TcpInSegs"),
            )]
        })
    },
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::ReceiveBufferPruned,
    place: Place::ThisHost,
    what: "had no room in the receive buffers of TCP for",
    warning_ratio: LOSS_WARNING,
    fix: "A program reads too slowly, or sets its own receive buffer too small: `plumb host` shows which has data unread.",
    kb: "tcp-counters",
};

//! A link damages frames.

use plumb_model::finding::{Cause, Place};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another cable or module, or clean connectors, leaves the counters of errors still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there this machine's counters of errors stand still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let of = |name: &&str| {
                [
                    Dropped::at(
                        counted,
                        name,
                        "rx",
                        &["rx_crc_errors", "rx_frame_errors", "rx_length_errors"],
                    ),
                    Dropped::at(
                        counted,
                        name,
                        "tx",
                        &["tx_carrier_errors", "tx_aborted_errors", "tx_window_errors"],
                    ),
                ]
            };
            counted.interfaces().iter().flat_map(of).collect()
        })
    },
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check. A sound cable damages one frame in 80 million (IEEE 802.3), so that ten in some seconds are
/// never chance.
const SAID: Said = Said {
    cause: Cause::LinkErrors,
    place: Place::LocalSegment,
    what: "received damaged, or could not send,",
    warning_ratio: 0.0,
    fix: "Change the cable, then the port, then the optics; damaged frames at both ends with collisions mean a duplex mismatch.",
    kb: "host",
};

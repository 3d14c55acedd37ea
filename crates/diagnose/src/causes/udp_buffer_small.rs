//! UDP sockets drop datagrams for want of buffer.

use plumb_model::finding::{Cause, Place};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger socket buffer leaves the kernel's counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the kernel's counter of drops stands still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let drops = [
                "UdpRcvbufErrors",
                "Udp6RcvbufErrors",
                "UdpMemErrors",
                "Udp6MemErrors",
            ];
            let received = counted.sum(["UdpInDatagrams", "Udp6InDatagrams"]);
            vec![Dropped::of(counted, drops.map(str::to_owned), received)]
        })
    },
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::UdpBufferSmall,
    place: Place::ThisHost,
    what: "had no room in the receive buffers of UDP sockets for",
    warning_ratio: LOSS_WARNING,
    fix: "Let programs ask for larger buffers (net.core.rmem_max), give those that ask for none a larger one (net.core.rmem_default), and see which one reads too slowly: `ss -uam` shows the drops of each socket.",
    kb: "udp",
};

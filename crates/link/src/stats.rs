//! What cells and chains report. A packet here is one of the wire: a large segment counts as
//! the packets that it stands for.

use std::collections::BTreeMap;

use plumb_model::distribution::Distribution;
use plumb_model::series::Series;
use serde::{Deserialize, Serialize};

use crate::cell::Crossing;

/// Why a cell dropped a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The queue was full.
    Overflow,
    /// CoDel's control law (RFC 8289).
    Codel,
}

impl DropCause {
    pub(crate) const ALL: [Self; 2] = [Self::Overflow, Self::Codel];

    /// Its name in [`CellStats::dropped`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Codel => "codel",
        }
    }
}

/// Packets and their IP bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
}

/// What a cell did. Always `offered = delivered + dropped + backlog`, in packets and in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellStats {
    /// The kind of cell.
    #[serde(rename = "type")]
    pub kind: String,
    /// What came in.
    pub offered: Count,
    /// What left; a packet leaves with its last bit.
    pub delivered: Count,
    /// TCP payload bytes of what left.
    pub delivered_tcp_payload_bytes: u64,
    /// Dropped packets by cause, as [`DropCause::name`] calls it; without those that never happened.
    pub dropped: BTreeMap<String, u64>,
    /// IP bytes dropped, whatever the cause.
    pub dropped_bytes: u64,
    /// Packets marked with congestion experienced (RFC 3168).
    pub marked: u64,
    /// What is inside now, on the line included.
    pub backlog: Count,
    /// How long each packet was inside, from its coming to its last bit's leaving. A large
    /// segment counts as all its packets with the time of the last. Quantiles come from a
    /// histogram of three significant digits over all packets.
    pub sojourn_s: Option<Distribution>,
    /// The queue's delay over time, for cells with a queue: its distribution over the grid of
    /// [`Self::queue_delay`].
    pub queue_delay_s: Option<Distribution>,
    /// The queue's delay that a packet would have met that came then: what waits and what is
    /// still to be sent of the packet on the line, at the line's rate. Every 10 ms of virtual
    /// time; every second point is left out, again and again, when there are more than 100,000.
    pub queue_delay: Option<Series>,
}

impl CellStats {
    /// Packets dropped, whatever the cause.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// What a whole chain did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChainStats {
    /// How large segments pass.
    pub crossing: Crossing,
    /// What came in.
    pub offered: Count,
    /// What left at the end.
    pub delivered: Count,
    /// TCP payload bytes of what left at the end.
    pub delivered_tcp_payload_bytes: u64,
    /// Dropped packets by cause, also in cells since removed.
    pub dropped: BTreeMap<String, u64>,
    /// IP bytes dropped, also in cells since removed.
    pub dropped_bytes: u64,
    /// Packets marked with congestion experienced, also in cells since removed.
    pub marked: u64,
    /// What is inside now.
    pub backlog: Count,
    /// How long each packet was in the chain. Quantiles as for [`CellStats::sojourn_s`].
    pub transit_s: Option<Distribution>,
    /// TCP payload bytes that left, by intervals of 100 ms that start at `t_s`; intervals are
    /// joined two by two, again and again, when there are more than 100,000. The last one is
    /// not over.
    pub payload: Series,
    /// The cells by name.
    pub cells: BTreeMap<String, CellStats>,
}

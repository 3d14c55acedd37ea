//! What cells and chains report. A packet here is one of the wire: a large segment counts as
//! the packets that it represents.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plumb_model::distribution::Distribution;
use plumb_model::series::Series;
use plumb_model::vocabulary;
use serde::{Deserialize, Serialize};

use crate::packet::Packet;
use crate::segment::Crossing;

vocabulary! {
    /// Why a cell dropped a packet. The word is its name in [`CellStats::dropped`].
    pub enum DropCause {
        /// The queue was full.
        Overflow = "overflow",
        /// The queue had no limit, and the machine no more memory for it.
        Memory = "memory",
        /// CoDel's control law (RFC 8289).
        Codel = "codel",
        /// RED dropped by its probability (RFC 2309).
        Red = "red",
        /// PIE's probability (RFC 8033).
        Pie = "pie",
        /// DualPI2's probability (RFC 9332).
        DualPi2 = "dualpi2",
        /// BLUE, beside CoDel in CAKE's COBALT.
        Blue = "blue",
        /// CAKE's ACK filter: a newer ACK said as much.
        AckFilter = "ack_filter",
        /// A loss model said so.
        Loss = "loss",
        /// A half-duplex station gave a frame up after 16 collisions (IEEE 802.3 clause 4.2.3.2.5).
        ExcessiveCollisions = "excessive_collisions",
        /// A collision after the slot time of 512 bits: the other station does not listen.
        LateCollision = "late_collision",
        /// A frame that a station received while it was sending in half duplex.
        FcsError = "fcs_error",
        /// A token bucket was empty.
        Policer = "policer",
        /// The link was down.
        Outage = "outage",
        /// A radio gave up after its last attempt.
        Retries = "retries",
        /// Larger than the line takes.
        TooBig = "too_big",
        /// A firewall dropped ICMP.
        IcmpFilter = "icmp_filter",
        /// More ICMP than a box lets pass.
        IcmpLimit = "icmp_limit",
        /// A SYN that asks for ECN.
        EcnSyn = "ecn_syn",
        /// Network address translation has no room for another flow.
        NatTableFull = "nat_table_full",
        /// Network address translation knows no host that this is for.
        NatNoMapping = "nat_no_mapping",
        /// Network address translation cannot handle it: a fragment, or a protocol without ports.
        NatUntranslatable = "nat_untranslatable",
    }
}

/// Packets and their IP bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Count {
    /// Number of packets on the wire.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
}

impl Count {
    pub(crate) fn of(packet: &Packet) -> Self {
        Self {
            packets: u64::from(packet.segments()),
            bytes: packet.ip_bytes(),
        }
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

/// What a cell did. Always `offered + duplicated = delivered + dropped + backlog`, in packets and
/// in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellStats {
    /// Kind of the cell, as a scenario names it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Packets that came into the cell.
    pub offered: Count,
    /// Packets that left the cell. A packet leaves with its last bit.
    pub delivered: Count,
    /// TCP payload of the packets that left, in bytes.
    pub delivered_tcp_payload_bytes: u64,
    /// Packets dropped, by the name of the cause. Causes that never occurred are missing.
    pub dropped: BTreeMap<String, u64>,
    /// Bytes of the IP packets dropped, whatever the cause.
    pub dropped_bytes: u64,
    /// Packets marked with congestion experienced (RFC 3168).
    pub marked: u64,
    /// Packets that the cell added: second copies, and what fragments are more than the packet that was cut up.
    pub duplicated: Count,
    /// Packets whose bytes the cell changed, congestion marks apart.
    pub changed: u64,
    /// Packets that left after one that came later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Packets of the cell's own that it sent back to where packets come from.
    pub replied: u64,
    /// Packets that are inside now, those on the line included.
    pub backlog: Count,
    /// Time that each packet was inside, in seconds, from its arrival to the departure of its last bit. A large segment
    /// counts as all its packets with the time of the last. Quantiles come from a histogram of three significant digits
    /// over all packets. Null where no packet left.
    pub sojourn_s: Option<Distribution>,
    /// Distribution of the queue's delay over time, in seconds, over the points of `queue_delay`. Null for cells
    /// without a queue.
    pub queue_delay_s: Option<Distribution>,
    /// Delay of the queue that a packet would have met that came then: what waits, and what is still to be sent of the
    /// packet on the line, at the line's rate. Every 10 ms of virtual time; every second point is left out, again and
    /// again, when there are more than 100,000. Null for cells without a queue.
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
    /// How large segments cross.
    pub crossing: Crossing,
    /// How much later than by itself a packet left at most, in seconds, because it, or one before it, crossed as part
    /// of a large segment. The packets of a segment leave a line together, when the last of them would have. It is the
    /// longest time that one occupied a line, added up over the lines. 0 when none crossed; a bound where the lines'
    /// queues are first in, first out, and drop nothing.
    pub piece_error_s: f64,
    /// Packets that came into the chain.
    pub offered: Count,
    /// Packets that left at the end.
    pub delivered: Count,
    /// TCP payload of the packets that left at the end, in bytes.
    pub delivered_tcp_payload_bytes: u64,
    /// Packets dropped, by the name of the cause.
    pub dropped: BTreeMap<String, u64>,
    /// Bytes of the IP packets dropped.
    pub dropped_bytes: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Packets that the cells added.
    pub duplicated: Count,
    /// Packets that are inside now.
    pub backlog: Count,
    /// Time that each packet was in the chain, in seconds. Quantiles come from a histogram of three significant digits
    /// over all packets. Null where no packet left.
    pub transit_s: Option<Distribution>,
    /// TCP payload bytes that left, by intervals of 100 ms that start at `t_s`. Intervals are joined two by two, again
    /// and again, when there are more than 100,000. The last one is not over.
    pub payload: Series,
    /// The cells, by their name.
    pub cells: BTreeMap<String, CellStats>,
    /// The flows, in the order of their first packet, the first thousand each by itself.
    pub flows: Vec<FlowStats>,
    /// The hosts that sent and received them.
    pub hosts: BTreeMap<IpAddr, HostStats>,
}

/// What a flow met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FlowStats {
    /// Source address. Null for what is not IP, and for all the flows that are counted together because there were too
    /// many.
    pub source: Option<IpAddr>,
    /// Destination address. Null where the source address is.
    pub destination: Option<IpAddr>,
    /// Number of the IP protocol.
    pub protocol: u8,
    /// Source port; of an ICMP echo its type.
    pub source_port: u16,
    /// Destination port; of an ICMP echo its identifier.
    pub destination_port: u16,
    /// Packets that came into the chain.
    pub offered: Count,
    /// Packets that left at the end.
    pub delivered: Count,
    /// Packets dropped, by the name of the cause.
    pub dropped: BTreeMap<String, u64>,
    /// Packets on which a cell put the mark of congestion.
    pub marked: u64,
    /// Time that its packets were in the chain, in seconds. Null where none left.
    pub transit_s: Option<Transit>,
}

/// How long the packets of a flow were in a chain, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Transit {
    /// Shortest time in seconds.
    pub min: f64,
    /// Median time in seconds.
    pub p50: f64,
    /// 95th percentile of the times, in seconds.
    pub p95: f64,
    /// 99th percentile of the times, in seconds.
    pub p99: f64,
    /// Longest time in seconds.
    pub max: f64,
}

/// What a host sent through a chain and received from it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct HostStats {
    /// Packets that came from the host.
    pub sent: Count,
    /// Packets of those that left the chain.
    pub sent_delivered: Count,
    /// Packets that left towards the host.
    pub received: Count,
}

//! What became of the datagrams of one UDP stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CpuUse, Direction};
use crate::distribution::Distribution;

/// One UDP stream of a load phase, packet by packet. A packet here is a datagram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpResult {
    /// Direction of the data.
    pub direction: Direction,
    /// Number of the stream among those of its direction, from 0.
    pub stream: u32,
    /// How departures followed each other: `constant`, `poisson`, `on-off`, `trace` or `max`, as
    /// fast as the sending host could.
    pub pattern: String,
    /// UDP payload of the largest packet.
    pub payload_bytes: u32,
    /// Payload a second that was asked for, in the mean; absent where it was `max`.
    pub asked_bps: Option<f64>,
    /// Packets handed to the sending kernel in one send (UDP_SEGMENT), which depart together; 1
    /// is each by itself.
    pub gso_segments: u32,
    /// Whether the receiver took trains of packets from its kernel as one (UDP_GRO): packets of
    /// a train then share the time at which its first came.
    pub gro: bool,
    /// Payload that was received, over the whole phase, or from the first to the last packet where
    /// a queue made that longer; absent when the receiver could not be asked any more.
    pub bps: Option<f64>,
    /// What the sender did; absent when it could not be asked any more.
    pub sender: Option<UdpSender>,
    /// What the receiver saw; absent when it could not be asked any more.
    pub receiver: Option<UdpReceiver>,
    /// From the sender's call to the receiving kernel; absent where the clocks of the two hosts
    /// could not be compared.
    pub one_way_delay: Option<OneWayDelay>,
    /// Processor use of both ends during the phase.
    pub cpu: CpuUse,
    /// Why the stream ended early, when it did.
    pub error: Option<String>,
}

/// The sender of a UDP stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpSender {
    /// Packets that the kernel took.
    pub sent: u64,
    /// Their payload.
    pub sent_bytes: u64,
    /// Slots of the schedule left out because the sender was late: never caught up in a burst.
    pub missed: u64,
    /// Packets that our own kernel did not take: send buffer or queue full.
    pub refused: u64,
    /// How late departures were against the schedule; absent where there was none.
    pub lateness_s: Option<Distribution>,
}

/// The receiver of a UDP stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpReceiver {
    /// Packets received, duplicates not counted.
    pub received: u64,
    /// Their payload.
    pub received_bytes: u64,
    /// Packets sent that were never received, wherever they were lost.
    pub lost: u64,
    /// Share of the packets sent.
    pub loss_ratio: f64,
    /// How losses follow each other.
    pub losses: LossPattern,
    /// Packets received again.
    pub duplicates: u64,
    /// How packets overtook each other.
    pub reordering: Reordering,
    /// Packets that came after so many others that it is not known any more whether they were
    /// duplicates; they count as lost.
    pub too_late: u64,
    /// Interarrival jitter (RFC 3550, section 6.4.1): the running estimate after each packet.
    pub jitter_s: Option<Distribution>,
    /// Inter-packet delay variation (RFC 5481, section 4.1): delay less that of the packet sent
    /// before, where both came.
    pub ipdv_s: Option<Distribution>,
    /// Packet delay variation (RFC 5481, section 4.2): delay above the smallest.
    pub pdv_s: Option<Distribution>,
    /// ECN codepoints as they came (RFC 3168).
    pub ecn: EcnCounts,
    /// Packets that our own socket dropped for want of buffer; with GRO, trains of packets.
    pub dropped_here: u64,
    /// Packets of those lost that came with a wrong checksum, which the socket discards: the path corrupted them.
    #[serde(default)]
    pub corrupted: u64,
    /// Packets that the path lost or corrupted; at least so many where our own socket dropped trains, each of
    /// which counts as long as it can have been.
    pub lost_on_path: Option<u64>,
    /// What UDP of the receiving host did not deliver meanwhile, of all its sockets together; absent
    /// where its kernel does not tell.
    #[serde(default)]
    pub host: Option<UdpHostLosses>,
    /// Limit of the receive buffer, in bytes of kernel memory.
    pub receive_buffer_bytes: Option<u64>,
}

impl UdpReceiver {
    /// Packets of those lost that our own socket dropped; at most so many where it took trains.
    pub fn lost_here(&self) -> u64 {
        self.lost
            .saturating_sub(self.lost_on_path.unwrap_or(self.lost))
    }

    /// Share of the packets sent that the path lost or corrupted.
    pub fn path_loss_ratio(&self) -> f64 {
        match self.lost_on_path {
            Some(on_path) if self.lost > 0 => self.loss_ratio * on_path as f64 / self.lost as f64,
            _ => self.loss_ratio,
        }
    }
}

/// Datagrams that came to a host and reached no program, while a stream ran: counters of its network
/// namespace (/proc/net/snmp and snmp6), so those of other programs' sockets are among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UdpHostLosses {
    /// All that could not be delivered for another reason than that nobody listens (InErrors).
    pub in_errors: u64,
    /// Of them, for want of room in a receive buffer (RcvbufErrors).
    pub rcvbuf_errors: u64,
    /// Of them, with a wrong checksum (InCsumErrors): the path damaged them.
    pub csum_errors: u64,
    /// Of them, because all of UDP had as much memory as it may (MemErrors).
    pub mem_errors: u64,
}

/// How losses follow each other (RFC 3357).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossPattern {
    /// Loss periods: runs of packets lost one after the other.
    pub periods: u64,
    /// Packets of a loss period.
    pub period_length: Option<Distribution>,
    /// Loss distance: the difference of the numbers of a lost packet and the one lost before.
    pub distance: Option<Distribution>,
}

/// How packets overtook each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reordering {
    /// Packets that came after one with a larger number (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Share of the packets received (RFC 4737, section 4.1).
    pub reordered_ratio: f64,
    /// How many packets before, in order of arrival, the first that overtook it came (RFC 4737,
    /// section 4.2).
    pub extent: Option<Distribution>,
    /// How much later it came than that one (RFC 4737, section 4.3).
    pub late_s: Option<Distribution>,
    /// Reorder density (RFC 5236): share of the packets received that came so many places late,
    /// or early where negative, lost packets and duplicates left out; only shares above zero.
    pub density: Vec<Displacement>,
    /// Displacement from which on RFC 5236 calls a packet lost.
    pub density_threshold: u32,
}

/// One value of a reorder density.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Displacement {
    /// Places.
    pub places: i32,
    /// Share of the packets received.
    pub packets_ratio: f64,
}

/// Packets received by their ECN codepoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EcnCounts {
    /// Not ECN-capable.
    pub not_ect: u64,
    /// ECT(1).
    pub ect1: u64,
    /// ECT(0).
    pub ect0: u64,
    /// Congestion experienced.
    pub ce: u64,
}

/// One-way delay, by two clocks that were compared over the network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayDelay {
    /// The delay.
    pub delay_s: Distribution,
    /// The delay is known to within this, either way: half of the smallest round trip by which
    /// the clocks were compared, whose two ways may share it as they like, and half of what the
    /// clocks drifted.
    pub uncertainty_s: f64,
    /// The far host's clock less this one's.
    pub clock_offset_s: f64,
    /// How much that changed from before the phase until after it.
    pub clock_drift_s: Option<f64>,
}

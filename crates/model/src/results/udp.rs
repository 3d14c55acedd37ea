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
    /// Number of the stream among the streams of its direction, from 0.
    pub stream: u32,
    /// How departures followed each other: `constant`, `poisson`, `on-off`, `trace` or `max`, as
    /// fast as the sending host could.
    pub pattern: String,
    /// UDP payload of the largest packet, in bytes.
    pub payload_bytes: u32,
    /// Payload in bit/s that was asked for, in the mean. Null where the pattern is `max`.
    pub asked_bps: Option<f64>,
    /// Packets handed to the sending kernel in one send (UDP_SEGMENT), which depart together; 1
    /// is each by itself.
    pub gso_segments: u32,
    /// Whether the receiver took trains of packets from its kernel as one (UDP_GRO): packets of
    /// a train then share the time at which its first came.
    pub gro: bool,
    /// Payload in bit/s that was received, over the whole phase, or from the first to the last packet where a queue
    /// made that longer. Null where the receiver could not be asked any more.
    pub bps: Option<f64>,
    /// What the sender did. Null where it could not be asked any more.
    pub sender: Option<UdpSender>,
    /// What the receiver saw. Null where it could not be asked any more.
    pub receiver: Option<UdpReceiver>,
    /// Delay from the sender's call to the receiving kernel. Null where the clocks of the two hosts could not be
    /// compared.
    pub one_way_delay: Option<OneWayDelay>,
    /// How much longer the fastest packet took than the fastest probe in the same direction since the probes began, in
    /// seconds: a queue that others keep filled. Absent where no probes ran beside, or the clocks could not be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing_s: Option<f64>,
    /// How much longer than the median of the idle path probes beside it took for a round trip, in seconds: a queue that the packets
    /// fill, unless it has a place for each flow. Absent where the receiver reports delays, or no probes ran beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_wait_s: Option<Distribution>,
    /// Processor use of both ends during the phase.
    pub cpu: CpuUse,
    /// Why the stream ended early. Null where it did not.
    pub error: Option<String>,
}

/// The sender of a UDP stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpSender {
    /// Packets that the kernel took.
    pub sent: u64,
    /// Payload of those packets, in bytes.
    pub sent_bytes: u64,
    /// Slots of the schedule left out because the sender was late: never caught up in a burst.
    pub missed: u64,
    /// Packets that our own kernel did not take: send buffer or queue full.
    pub refused: u64,
    /// How late departures were compared with the schedule, in seconds. Null where there was no schedule.
    pub lateness_s: Option<Distribution>,
}

/// The receiver of a UDP stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpReceiver {
    /// Packets received, duplicates not counted.
    pub received: u64,
    /// Payload of those packets, in bytes.
    pub received_bytes: u64,
    /// Packets sent that were never received, wherever they were lost.
    pub lost: u64,
    /// Share of the packets sent, 0 to 1, that were never received.
    pub loss_ratio: f64,
    /// How losses follow each other.
    pub losses: LossPattern,
    /// Packets that were received again.
    pub duplicates: u64,
    /// How packets overtook each other.
    pub reordering: Reordering,
    /// Packets that came after so many others that it is not known any more whether they were
    /// duplicates; they count as lost.
    pub too_late: u64,
    /// Interarrival jitter in seconds (RFC 3550, section 6.4.1): the running estimate after each packet. Null with
    /// fewer than two packets.
    pub jitter_s: Option<Distribution>,
    /// Inter-packet delay variation in seconds (RFC 5481, section 4.1): delay less the delay of the packet sent before,
    /// where both came. Null with fewer than two packets.
    pub ipdv_s: Option<Distribution>,
    /// Packet delay variation in seconds (RFC 5481, section 4.2): delay above the smallest. Null where no packet came.
    pub pdv_s: Option<Distribution>,
    /// ECN codepoints as they came (RFC 3168).
    pub ecn: EcnCounts,
    /// Packets that our own socket dropped for want of buffer; with GRO, trains of packets.
    pub dropped_here: u64,
    /// Packets of those lost that came with a wrong checksum, which the socket discards: the path corrupted them.
    #[serde(default)]
    pub corrupted: u64,
    /// Packets that the path lost or corrupted. At least so many where the receiver's own socket dropped trains, each
    /// of which counts as long as it can have been. Null in Runs that did not record it.
    pub lost_on_path: Option<u64>,
    /// What UDP of the receiving host did not deliver meanwhile, of all its sockets together. Null where its kernel
    /// does not report it.
    pub host: Option<UdpHostLosses>,
    /// Limit of the receive buffer, in bytes of kernel memory. Null where it is unknown.
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

/// Datagrams that came to a host and reached no program, while a stream ran. These are counters of its network
/// namespace (/proc/net/snmp and snmp6), so datagrams to other programs' sockets are among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UdpHostLosses {
    /// Datagrams that could not be delivered for another reason than that no process listens (InErrors).
    pub in_errors: u64,
    /// Datagrams among them that came when a receive buffer was full (RcvbufErrors).
    pub rcvbuf_errors: u64,
    /// Datagrams among them with a wrong checksum (InCsumErrors): the path corrupted them.
    pub csum_errors: u64,
    /// Datagrams among them that came when all of UDP had as much memory as it may (MemErrors).
    pub mem_errors: u64,
}

/// How losses follow each other (RFC 3357).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossPattern {
    /// Loss periods: runs of packets lost one after the other.
    pub periods: u64,
    /// Length of the loss periods in packets. Null where nothing was lost.
    pub period_length: Option<Distribution>,
    /// Loss distance in packets: the difference of the numbers of a lost packet and of the one lost before. Null where
    /// fewer than two were lost.
    pub distance: Option<Distribution>,
}

/// How packets overtook each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reordering {
    /// Packets that came after one with a larger number (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Share of the packets received, 0 to 1, that were reordered (RFC 4737, section 4.1).
    pub reordered_ratio: f64,
    /// Reordering extent in packets (RFC 4737, section 4.2): how many packets before it the first that overtook it
    /// came. Null where none was reordered.
    pub extent: Option<Distribution>,
    /// How much later a reordered packet came than the first that overtook it, in seconds (RFC 4737, section 4.3). Null
    /// where none was reordered.
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
    /// Places in the order of arrival by which packets came late, or early where negative.
    pub places: i32,
    /// Share of the packets received, 0 to 1, with this displacement.
    pub packets_ratio: f64,
}

/// Packets received by their ECN codepoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EcnCounts {
    /// Packets marked not ECN-capable.
    pub not_ect: u64,
    /// Packets marked ECT(1), as L4S senders do.
    pub ect1: u64,
    /// Packets marked ECT(0), as classic ECN senders do.
    pub ect0: u64,
    /// Packets marked with congestion experienced.
    pub ce: u64,
}

/// One-way delay, by two clocks that were compared over the network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayDelay {
    /// One-way delay in seconds.
    pub delay_s: Distribution,
    /// Error that the delay may have in either direction, in seconds: half of the smallest round trip by which the
    /// clocks were compared, whose two directions may share it as they like, and half of what the clocks drifted.
    pub uncertainty_s: f64,
    /// Clock of the far host less the clock of this host, in seconds.
    pub clock_offset_s: f64,
    /// How much the offset changed from before the phase until after it, in seconds. Null where it was not compared
    /// twice.
    pub clock_drift_s: Option<f64>,
}

//! Captures of the same traffic at two places, matched packet by packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CaptureFile;
use crate::direction::OneDirection;
use crate::distribution::Distribution;
use crate::results::udp::OneWayDelay;
use crate::vocabulary;

/// What became of packets between two places at which they were captured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureSidesResult {
    /// The two captures: the one on the client's side, and the one on the server's side.
    pub sides: Vec<CaptureSideFile>,
    /// From the client's side to the server's.
    pub up: CaptureWay,
    /// From the server's side to the client's.
    pub down: CaptureWay,
    /// What is known of the two clocks.
    pub clocks: CaptureClocks,
    /// What was changed between the two places, the most frequent first in each direction.
    pub changes: Vec<PathChange>,
}

/// One of the two captures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureSideFile {
    /// The file that was read.
    pub file: CaptureFile,
    /// Packets without IP, which are not matched.
    pub not_ip_packets: u64,
    /// Packets between hosts of which nothing was matched: their traffic does not pass the other place, or all of it was
    /// lost.
    pub elsewhere_packets: u64,
    /// Packets that would have passed the other place when nothing was captured there.
    pub outside_packets: u64,
    /// Packets that this capture has twice although they were sent once.
    pub twice_packets: u64,
    /// Segments of TCP larger than the path carries, which were split to be compared: the network card was to split them, or
    /// had joined them.
    pub joined_segments: u64,
    /// Packets whose checksum the network card was to write, behind the capture: it is no sign of corruption.
    #[serde(default)]
    pub unwritten_checksums: u64,
    /// Packets that were not waited for as long as others, since too many had to be remembered.
    pub forgotten_packets: u64,
}

/// One direction between the two places.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureWay {
    /// Packets that were seen at both places.
    pub both: u64,
    /// Packets that were seen at the sending side alone, while both captures ran: they were lost between them.
    pub lost: u64,
    /// Share of the packets seen at the sending side, 0 to 1, that were lost. Null where there were none.
    pub loss_ratio: Option<f64>,
    /// Packets that were seen at the receiving side alone: the capture at the sending side missed them.
    pub far_only: u64,
    /// Packets that came more often than they were sent.
    pub duplicated: u64,
    /// Packets that came after one that was sent later.
    pub reordered: u64,
    /// One-way delay. Null where the clocks could not be compared.
    pub delay: Option<OneWayDelay>,
    /// One-way delay above the smallest in seconds, which does not depend on what the clocks differ by. Null without a packet
    /// that was seen at both places.
    pub queueing_s: Option<Distribution>,
}

/// What is known of the clocks at the two places.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureClocks {
    /// Clock at the server's side less that at the client's in seconds, in the middle of the capture. Null where they could not be
    /// compared.
    pub offset_s: Option<f64>,
    /// Error that the offset and all delays may have in either direction, in seconds. Null where the clocks could not be
    /// compared.
    pub uncertainty_s: Option<f64>,
    /// How much faster the clock at the server's side runs, as a share; it was taken out of the delays. Null where it
    /// cannot be distinguished from zero.
    pub skew_ratio: Option<f64>,
    /// Error that the skew may have, as a share (two standard errors). Null where the capture is too short to determine
    /// it.
    pub skew_uncertainty_ratio: Option<f64>,
    /// Why the clocks could not be compared. Null where they could.
    pub incomparable: Option<String>,
}

/// What of a packet was not the same at both places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathChange {
    /// Direction of the packets.
    pub direction: OneDirection,
    /// What of the packets was changed.
    pub what: Changed,
    /// As it was sent. Null where it was not there.
    pub before: Option<String>,
    /// As it was received. Null where it was gone.
    pub after: Option<String>,
    /// Packets that were changed so.
    pub packets: u64,
}

vocabulary! {
    /// What a path changes of packets.
    pub enum Changed {
        /// Time to live, which each router counts down by one.
        Ttl = "ttl" as "TTL",
        /// Differentiated services code point.
        Dscp = "dscp" as "DSCP",
        /// Bits of explicit congestion notification.
        Ecn = "ecn" as "ECN",
        /// Source address and port: address translation.
        Source = "source",
        /// Destination address and port: address translation.
        Destination = "destination",
        /// Maximum segment size that a SYN announces, in bytes.
        Mss = "mss" as "MSS",
        /// Option of a SYN.
        TcpOption = "tcp_option" as "TCP option",
        /// Initial sequence number of TCP.
        Sequence = "sequence" as "sequence number",
        /// Checksum of TCP or UDP where nothing it is of was changed: the network card writes it behind the capture, or the packet
        /// was damaged.
        Checksum = "checksum",
    }
}

//! What round-trip probes of one target found.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OneWayQueueing;
use super::udp::LossPattern;
use crate::distribution::Distribution;
use crate::protocol::Protocol;

/// Whose clock stamped the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimestampSource {
    /// The kernel stamped every packet when it left and when it came.
    Kernel,
    /// At least one end of a round trip was stamped by plumb itself, and includes scheduling.
    User,
}

/// Round trips of small probes sent on an open-loop schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PingResult {
    /// Protocol of the probes.
    pub protocol: Protocol,
    /// IP address that was probed.
    pub address: String,
    /// Probes that left this host.
    pub sent: u64,
    /// Probes answered, duplicates not counted.
    pub received: u64,
    /// Share of probes sent that were not answered; absent where none was sent.
    pub loss_ratio: Option<f64>,
    /// Answers beyond the first to the same probe.
    pub duplicates: u64,
    /// Answers whose sequence number was below one already seen (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Answers that came after the timeout; their probes count as lost.
    #[serde(default)]
    pub late: u64,
    /// How losses follow each other, over the probes sent.
    #[serde(default)]
    pub losses: LossPattern,
    /// Hop limits (TTL in IPv4) that answers had on arrival, and how many had each. Empty where the protocol does not
    /// show it.
    #[serde(default)]
    pub hop_limits: Vec<HopLimit>,
    /// Answers whose hop limit differed from the hop limit of the answer before: the reverse path changed.
    #[serde(default)]
    pub hop_limit_changes: u64,
    /// ICMP errors that came back about probes, by what they said.
    #[serde(default)]
    pub icmp_errors: BTreeMap<String, u64>,
    /// What the answers were, by how often, where the protocol has several: `SYN-ACK`, `RST`, `HTTP
    /// 200`, `NOERROR`, `port unreachable`.
    #[serde(default)]
    pub answers: BTreeMap<String, u64>,
    /// Parts of each request. Null where requests have no connection of their own: only HTTP and HTTPS do.
    pub phases: Option<Box<RequestPhases>>,
    /// The figures of each size, where several were sent.
    #[serde(default)]
    pub sizes: Vec<SizeRoundTrips>,
    /// Probes that our own machine refused to send.
    pub send_errors: u64,
    /// Answers that our own socket dropped for want of buffer (SO_RXQ_OVFL).
    pub dropped_here: u64,
    /// Answers that this host discarded because their checksum was wrong: the path corrupted them, and they count
    /// as lost. At most so many: of UDP the kernel's counters are of all sockets together.
    #[serde(default)]
    pub corrupted: u64,
    /// Round-trip times in seconds. Null where nothing was answered.
    pub rtt_s: Option<Distribution>,
    /// How long packets waited in each direction. Absent where the far end stamps no packets, or the clocks could not be
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<Box<OneWayQueueing>>,
    /// How late probes left compared with their schedule, in seconds. Null where none left.
    pub lateness_s: Option<Distribution>,
    /// Whose clock stamped the round trips.
    pub timestamps: TimestampSource,
}

/// The parts of requests that were answered, each on a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestPhases {
    /// Time from SYN to established, in seconds. Null where no connection was made.
    pub connect_s: Option<Distribution>,
    /// Time of the TLS handshake in seconds. Null over plain HTTP.
    pub tls_s: Option<Distribution>,
    /// Time from the request to the first byte of the answer in seconds, which counts as the round trip. Null where
    /// none was answered.
    pub first_byte_s: Option<Distribution>,
}

/// Answers that bore one hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopLimit {
    /// Hop limit that the answers had on arrival.
    pub hop_limit: u8,
    /// Answers that had this hop limit.
    pub answers: u64,
}

/// Probes of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRoundTrips {
    /// Payload of each probe in bytes.
    pub size_bytes: u64,
    /// Probes of this size that were sent.
    pub sent: u64,
    /// Probes of this size that were answered.
    pub received: u64,
    /// Round-trip times in seconds. Null where nothing was answered.
    pub rtt_s: Option<Distribution>,
}

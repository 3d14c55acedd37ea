//! What QUIC carried (RFC 9000).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CpuUse, Direction};

/// What QUIC connections carried in one direction of a load phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuicResult {
    /// Direction of the data.
    pub direction: Direction,
    /// Always `quic`.
    pub protocol: String,
    /// Payload that reached the receiving program, over the whole phase, handshake and slow start
    /// included; absent where the receiving end's record was lost.
    pub bps: Option<f64>,
    /// The same without the first two seconds; absent in a phase shorter than four seconds.
    pub steady_bps: Option<f64>,
    /// Payload that reached the receiving program; likewise.
    pub bytes: Option<u64>,
    /// Congestion control that the senders ran: the library's own, not the kernel's.
    pub cc: String,
    /// Each connection by itself; one stream of payload in each.
    pub streams: Vec<QuicStream>,
    /// Processor use of both ends during the phase.
    pub cpu: CpuUse,
}

/// One QUIC connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuicStream {
    /// Number of the stream, from 0.
    pub id: u32,
    /// Payload that the receiving program read.
    pub bytes: u64,
    /// The same a second.
    pub bps: f64,
    /// From the client's first packet until both ends were sure of each other: one round trip and
    /// what both computed; absent where it did not come to that.
    pub handshake_s: Option<f64>,
    /// What the sender says; absent where its record was lost.
    pub sender: Option<QuicSender>,
    /// Packets, or trains of them, that the receiving host's own socket dropped: they count as lost
    /// for the sender, and were not lost on the path.
    pub dropped_here: Option<u64>,
    /// Why it ended early, when it did.
    pub error: Option<String>,
}

/// What the sending end of a QUIC connection says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuicSender {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets declared lost (RFC 9002, section 6).
    pub lost_packets: u64,
    /// Bytes of those.
    pub lost_bytes: u64,
    /// Times that the congestion control took something for a sign of congestion.
    pub congestion_events: u64,
    /// Smallest round trip.
    pub min_rtt_s: Option<f64>,
    /// Largest smoothed round trip at any sample.
    pub max_rtt_s: Option<f64>,
    /// Largest congestion window at any sample.
    pub max_cwnd_bytes: u64,
    /// UDP payload of a full packet, as path MTU discovery left it (RFC 8899).
    pub datagram_bytes: u64,
    /// Bytes of UDP payload sent, those sent again included.
    pub sent_bytes: u64,
}

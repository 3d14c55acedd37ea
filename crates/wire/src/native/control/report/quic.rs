//! What one end recorded of its QUIC connections.

use plumb_model::results::quic::QuicSender;
use serde::{Deserialize, Serialize};

use super::count::{Count, StreamEnd, clip, clip_end};

/// What one end recorded of its QUIC connections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuicReport {
    /// Those that it sent on.
    pub senders: Vec<QuicSenderLog>,
    /// Those that it received on.
    pub receivers: Vec<QuicReceiverLog>,
}

/// The sending end of a connection at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct QuicSample {
    /// Seconds since the start of the phase.
    pub t_s: f64,
    pub cwnd_bytes: u64,
    pub rtt_us: u64,
    /// Packets sent until then.
    pub sent_packets: u64,
    /// Packets declared lost until then.
    pub lost_packets: u64,
}

/// A connection that this end sent on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QuicSenderLog {
    /// Number of the stream.
    pub stream: u32,
    /// Congestion control that it ran.
    pub cc: String,
    pub sender: QuicSender,
    /// How long the handshake took; the client knows.
    pub handshake_s: Option<f64>,
    /// Set when the connection ended by itself.
    pub ended: Option<StreamEnd>,
    /// Over time; sent in messages of its own.
    #[serde(skip)]
    pub samples: Vec<QuicSample>,
}

/// A connection that this end received on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QuicReceiverLog {
    /// Number of the stream.
    pub stream: u32,
    /// Packets, or trains of them, that its socket dropped because its buffer was full.
    pub dropped_here: Option<u64>,
    /// Packets whose checksum was wrong.
    pub corrupted: Option<u64>,
    /// How long the handshake took; the client knows.
    pub handshake_s: Option<f64>,
    /// Set when the connection ended by itself.
    pub ended: Option<StreamEnd>,
    /// Payload over time; sent in messages of its own.
    #[serde(skip)]
    pub counts: Vec<Count>,
}

impl QuicSenderLog {
    pub(super) fn clipped(mut self) -> Self {
        self.cc = clip(self.cc);
        self.ended = self.ended.map(clip_end);
        self
    }
}

impl QuicReceiverLog {
    pub(super) fn clipped(mut self) -> Self {
        self.ended = self.ended.map(clip_end);
        self
    }
}

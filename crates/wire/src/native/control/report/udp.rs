//! What one end recorded of its UDP streams.

use plumb_model::results::udp::{UdpReceiver, UdpSender};
use serde::{Deserialize, Serialize};

use super::count::{Count, StreamEnd, clip_end};

/// What one end recorded of its UDP streams.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UdpReport {
    /// Streams that it sent.
    pub senders: Vec<UdpSenderLog>,
    /// Streams that it received.
    pub receivers: Vec<UdpReceiverLog>,
}

/// A UDP stream that this end sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpSenderLog {
    /// Number of the stream.
    pub stream: u32,
    pub sender: UdpSender,
    /// Whether CLOCK_REALTIME was stepped meanwhile.
    pub clock_stepped: bool,
    /// Set when the stream ended by itself.
    pub ended: Option<StreamEnd>,
}

/// A UDP stream that this end received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpReceiverLog {
    /// Number of the stream.
    pub stream: u32,
    pub receiver: UdpReceiver,
    /// Packets that it knows of: as many as the sender's end said, or up to the largest number
    /// that came.
    pub known: u64,
    /// Smallest delay, by the two hosts' clocks, in nanoseconds; absent when nothing came.
    pub min_delay_ns: Option<i64>,
    /// From the first to the last that came.
    pub span_s: f64,
    /// Whether CLOCK_REALTIME was stepped meanwhile.
    pub clock_stepped: bool,
    /// Set when the stream ended by itself.
    pub ended: Option<StreamEnd>,
    /// What arrived over time; sent in messages of its own.
    #[serde(skip)]
    pub counts: Vec<Count>,
}

/// Displacements of a reorder density that are kept: in both directions, and none.
const MAX_DISPLACEMENTS: usize = 1024;

impl UdpSenderLog {
    pub(super) fn clipped(mut self) -> Self {
        self.ended = self.ended.map(clip_end);
        self
    }
}

impl UdpReceiverLog {
    pub(super) fn clipped(mut self) -> Self {
        self.ended = self.ended.map(clip_end);
        self.receiver.reordering.density.truncate(MAX_DISPLACEMENTS);
        self
    }
}

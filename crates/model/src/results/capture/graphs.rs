//! What a capture shows over time, in a bounded number of bins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::PhaseChange;

/// What there is to draw of a capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureGraphs {
    /// Packets and bytes of the whole capture.
    pub traffic: TrafficGraph,
    /// The connections that carried most, the heaviest first.
    pub connections: Vec<ConnectionGraph>,
}

/// Packets and bytes over the time of the capture, in at most 400 bins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrafficGraph {
    /// Length of a bin in seconds; the first begins with the capture.
    pub bin_s: f64,
    /// Packets of each bin.
    pub packets: Vec<u64>,
    /// Bytes of each bin on the wire.
    pub bytes: Vec<u64>,
}

/// A connection over its time, in at most 400 bins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionGraph {
    /// Place of the connection in `connections`, from 0.
    pub connection: u64,
    /// When the first bin begins, in seconds from the beginning of the capture.
    pub at_s: f64,
    /// Length of a bin in seconds.
    pub bin_s: f64,
    /// What the client sent, and what the server answered to that. Null where it sent no payload.
    pub up: Option<HalfGraph>,
    /// What the server sent, and what the client answered to that. Null where it sent no payload.
    pub down: Option<HalfGraph>,
}

/// One direction of a connection over time: columns with a value for each bin, all of one length. Null in a bin in
/// which no packet showed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfGraph {
    /// Highest sequence number sent by the end of the bin, in bytes from the initial one.
    pub sent_bytes: Vec<Option<u64>>,
    /// Highest sequence number acknowledged by the end of the bin, in bytes from the initial one.
    pub acked_bytes: Vec<Option<u64>>,
    /// Highest sequence number that the receiver's window had allowed by the end of the bin, in bytes from the initial one.
    pub allowed_bytes: Vec<Option<u64>>,
    /// Bytes of the packets on the wire within the bin.
    pub wire_bytes: Vec<u64>,
    /// Bytes of payload within the bin, repetitions not counted.
    pub payload_bytes: Vec<u64>,
    /// Segments within the bin that repeat what was sent before.
    pub retransmissions: Vec<u64>,
    /// Acknowledgements within the bin with SACK blocks.
    pub sacks: Vec<u64>,
    /// Announcements of a window of zero within the bin.
    pub zero_windows: Vec<u64>,
    /// Shortest round trip within the bin in seconds, from the place of the capture to the receiver and back.
    pub min_rtt_s: Vec<Option<f64>>,
    /// Longest round trip within the bin in seconds.
    pub max_rtt_s: Vec<Option<f64>>,
    /// Most bytes of payload on their way within the bin.
    pub max_in_flight_bytes: Vec<Option<u64>>,
    /// Smallest window that the receiver allowed within the bin, in bytes.
    pub min_window_bytes: Vec<Option<u64>>,
    /// The sender's congestion window by the end of the bin, in bytes, as far as it shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion_window_bytes: Vec<Option<u64>>,
    /// Phases of the congestion window in the order of their coming, 200 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseChange>,
}

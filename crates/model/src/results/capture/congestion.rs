//! What a capture shows of a sender's congestion control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::vocabulary;

vocabulary! {
    /// What a sender's congestion window did, or what else held the sender back.
    pub enum CongestionPhase {
        /// The window grew by what was acknowledged: it doubled with each round trip.
        SlowStart = "slow_start" as "slow start",
        /// The window grew more slowly, or not at all.
        Avoidance = "avoidance" as "congestion avoidance",
        /// Something was retransmitted, and not all was acknowledged that had been sent by then.
        Recovery = "recovery",
        /// The receiver's window was full, and the congestion window does not show.
        ReceiveWindow = "receive_window" as "receiver's window",
        /// The sender's application had nothing to send, and the congestion window does not show.
        Application = "application",
    }
}

/// The congestion window of a sender, estimated from what was on its way when acknowledgements let it send more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CongestionResult {
    /// Largest window, in bytes. Null where something else held the sender back all the time.
    pub max_bytes: Option<u64>,
    /// When slow start ended for the first time, in seconds from the connection's first packet, to a round trip. Null where
    /// it did not end.
    pub slow_start_end_s: Option<f64>,
    /// The window at that time, in bytes. Null where slow start did not end, or the window did not show.
    pub slow_start_end_bytes: Option<u64>,
    /// How often something was lost and retransmitted: all of a round trip counts once.
    pub recoveries: u64,
    /// Share of the sender's time, 0 to 1, in slow start. The time is from its first full segment to its last payload, and
    /// all shares sum to 1.
    pub slow_start_ratio: f64,
    /// Share of the time, 0 to 1, in which the window grew more slowly or not at all.
    pub avoidance_ratio: f64,
    /// Share of the time, 0 to 1, from retransmissions until all was acknowledged that had been sent by then.
    pub recovery_ratio: f64,
    /// Share of the time, 0 to 1, in which the receiver's window held the sender back.
    pub rwnd_ratio: f64,
    /// Share of the time, 0 to 1, in which the sender's application had nothing to send.
    pub app_ratio: f64,
}

/// A phase, and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseChange {
    /// When it began, in seconds from the beginning of the capture.
    pub at_s: f64,
    /// The phase that began then.
    pub phase: CongestionPhase,
}

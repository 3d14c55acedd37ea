//! Responsiveness under working conditions: round trips a minute.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::distribution::Distribution;
use crate::vocabulary;

/// How many round trips a minute a path allows while it carries all that it can, after
/// draft-ietf-ippm-responsiveness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsivenessResult {
    /// Direction of the load.
    pub direction: Direction,
    /// Round trips a minute: the mean of `foreign_rpm` and `in_band_rpm`. Null where probes of one kind were never
    /// answered.
    pub rpm: Option<f64>,
    /// How it was measured; `ietf` only when measured as the draft has it.
    pub rpm_method: String,
    /// How far `rpm` can be trusted.
    pub confidence: RpmConfidence,
    /// Standard deviation of the last four values as a share of the latest: below 0.05 they count as stable. Null where
    /// there were fewer than four intervals.
    pub spread_ratio: Option<f64>,
    /// Round trips a minute of a new connection: of TCP's handshake, the TLS handshake and the first request, a third
    /// each. Null where none was answered.
    pub foreign_rpm: Option<f64>,
    /// Round trips a minute on the loaded connections. Null where none was answered.
    pub in_band_rpm: Option<f64>,
    /// Payload in bit/s that arrived, as a moving average at the end. Null where no interval was over.
    pub goodput_bps: Option<f64>,
    /// How far `goodput_bps` can be trusted to be all that the path carries.
    pub goodput_confidence: RpmConfidence,
    /// When the goodput had become stable and probing began, in seconds from the start. Null where it did not.
    pub goodput_stable_after_s: Option<f64>,
    /// Loaded connections at the end.
    pub connections: u64,
    /// Interval in seconds after which stability is judged again.
    pub interval_s: f64,
    /// Trimmed means from which `rpm` follows, in seconds.
    pub trimmed_mean_s: RpmTimes<Option<f64>>,
    /// Times of the probes that counted, in seconds: the probes of the last four intervals.
    pub times_s: RpmTimes<Option<Distribution>>,
    /// What became of all probes.
    pub probes: RpmProbes,
    /// Why the far end was lost before all was known. Null where it was not.
    pub lost: Option<String>,
}

/// The four times that responsiveness is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpmTimes<T> {
    /// Time of TCP's handshake of a new connection, in seconds. Null where none was answered.
    pub connect: T,
    /// Time of the TLS 1.3 handshake after it, in seconds: one round trip. Null where none was answered.
    pub tls_handshake: T,
    /// Time from its first request to the answer, in seconds. Null where none was answered.
    pub first_answer: T,
    /// Time from a request on a loaded connection to the answer, in seconds. Null where none was answered.
    pub in_band: T,
}

/// Number of probes by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpmProbes {
    /// Probes answered on connections of their own.
    pub foreign: u64,
    /// Probes answered on loaded connections.
    pub in_band: u64,
    /// Probes on connections of their own that failed: no answer within 10 s, or a reset.
    pub failed: u64,
    /// Probes without an answer when the measurement ended. They count nowhere, and are the slow ones.
    pub unanswered: u64,
    /// Probes that were not made, because too many were unanswered.
    pub left_out: u64,
    /// What the last failure reported. Null where none failed.
    pub error: Option<String>,
}

vocabulary! {
    /// The draft's words for how far a number can be trusted.
    pub enum RpmConfidence {
        /// It was looked at fewer than four times.
        Low = "low",
        /// It was looked at often enough, and did not become stable.
        Medium = "medium",
        /// The value became stable.
        High = "high",
    }
}

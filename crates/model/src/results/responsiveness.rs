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
    /// Round trips a minute: the mean of `foreign_rpm` and `in_band_rpm`; absent where probes of one
    /// kind were never answered.
    pub rpm: Option<f64>,
    /// How it was measured; `ietf` only when measured as the draft says.
    pub rpm_method: String,
    /// How far `rpm` can be trusted.
    pub confidence: RpmConfidence,
    /// Standard deviation of the last four values as a share of the latest: below 0.05 they count as
    /// stable. Absent where it was looked at fewer than four times.
    pub spread_ratio: Option<f64>,
    /// Round trips a minute of a new connection: of TCP's handshake, that of TLS and the first
    /// request, a third each.
    pub foreign_rpm: Option<f64>,
    /// Round trips a minute on the loaded connections.
    pub in_band_rpm: Option<f64>,
    /// Payload that arrived, as a moving average at the end.
    pub goodput_bps: Option<f64>,
    /// How far `goodput_bps` can be trusted to be all that the path carries.
    pub goodput_confidence: RpmConfidence,
    /// When the goodput had become stable and probing began; absent where it did not.
    pub goodput_stable_after_s: Option<f64>,
    /// Loaded connections at the end.
    pub connections: u64,
    /// Time between two looks at what is stable.
    pub interval_s: f64,
    /// Trimmed means from which `rpm` follows.
    pub trimmed_mean_s: RpmTimes<Option<f64>>,
    /// All times of the probes that counted: those of the last four intervals.
    pub times_s: RpmTimes<Option<Distribution>>,
    /// What became of all probes.
    pub probes: RpmProbes,
    /// Why the far end went away before all was known, where it did.
    #[serde(default)]
    pub lost: Option<String>,
}

/// The four times that responsiveness is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpmTimes<T> {
    /// TCP's handshake of a new connection.
    pub connect: T,
    /// The TLS 1.3 handshake after it: one round trip.
    pub tls_handshake: T,
    /// Its first request, until the answer.
    pub first_answer: T,
    /// A request on a loaded connection, until the answer.
    pub in_band: T,
}

/// What became of probes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpmProbes {
    /// Answered on connections of their own.
    pub foreign: u64,
    /// Answered on loaded connections.
    pub in_band: u64,
    /// Connections of their own that failed: no answer within 10 s, or a reset.
    pub failed: u64,
    /// Under way when the measurement ended: they count nowhere, and are the slow ones.
    pub unanswered: u64,
    /// Not made, because too many were under way.
    pub left_out: u64,
    /// What the last failure said.
    pub error: Option<String>,
}

vocabulary! {
    /// The draft's words for how far a number can be trusted.
    pub enum RpmConfidence {
        /// It was looked at fewer than four times.
        Low = "low",
        /// It was looked at often enough, and did not become stable.
        Medium = "medium",
        /// It became stable.
        High = "high",
    }
}

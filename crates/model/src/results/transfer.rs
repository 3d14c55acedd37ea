//! How the rate of a load phase came about: its beginning, and the files at its ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the streams of a phase began (RFC 5681, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowStart {
    /// When the last of the streams left slow start, in seconds from the start, to the 100 ms between two samples.
    pub duration_s: f64,
    /// Payload in bytes that had reached the receiver by then.
    pub bytes: u64,
    /// What showed the end of slow start.
    pub ended_by: SlowStartEnd,
    /// Payload in bit/s that reached the receiver in the second after it. Null where less than half a second was left.
    pub rate_after_bps: Option<f64>,
}

/// How the end of slow start is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartEnd {
    /// A loss or a delay (HyStart) set the threshold that ends it (tcpi_snd_ssthresh).
    Ssthresh,
    /// The rate grew no more by a quarter in three round trips, though nothing set the threshold.
    RatePlateau,
}

/// Shares of the phase in which streams waited for their files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileTime {
    /// Share of the phase, 0 to 1, in which the senders waited to read their files. Null without any.
    pub read_wait_ratio: Option<f64>,
    /// Share of the phase, 0 to 1, in which the receivers waited to write their files. Null without any.
    pub write_wait_ratio: Option<f64>,
}

impl FileTime {
    /// Share of time from which on the file, and not the network, sets the rate: more than half.
    pub const LIMITS_RATIO: f64 = 0.5;

    /// Whether a file set the rate.
    pub fn limits(&self) -> bool {
        [self.read_wait_ratio, self.write_wait_ratio]
            .into_iter()
            .flatten()
            .any(|ratio| ratio > Self::LIMITS_RATIO)
    }
}

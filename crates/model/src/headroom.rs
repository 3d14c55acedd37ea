//! The rate to prepare a direction for that something at an end holds back.

use crate::results::{Outcome, ThroughputResult};
use crate::run::Measurement;

/// How much more than it reached a held-back direction is prepared for, when nothing better is
/// known of the path.
const HEADROOM: f64 = 4.0;

/// The best that the path showed in another direction, or a good deal more than `result` reached when
/// that was the best; in bit/s.
pub fn rate_to_prepare(measurements: &[Measurement], result: &ThroughputResult) -> f64 {
    measurements
        .iter()
        .filter_map(|m| match &m.outcome {
            Outcome::Throughput(other) if other.direction != result.direction => {
                Some(other.steady_bps.unwrap_or(other.bps))
            }
            _ => None,
        })
        .fold(result.bps * HEADROOM, f64::max)
}

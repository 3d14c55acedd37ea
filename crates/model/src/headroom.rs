//! The rate to prepare a direction for that something at an end holds back.

use crate::results::{Outcome, ThroughputResult};
use crate::run::Measurement;

/// How much more than it reached a held-back direction is prepared for, when nothing better is
/// known of the path.
pub const HEADROOM: f64 = 4.0;

/// What to prepare a direction for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prepared {
    /// The rate, in bit/s.
    pub bps: f64,
    /// Whether the path showed it in another direction; otherwise it is [`HEADROOM`] times what this
    /// one reached, and nobody knows whether the line carries it.
    pub shown: bool,
}

/// The best that the path showed in another direction, or a good deal more than `result` reached when
/// that was the best.
pub fn rate_to_prepare(measurements: &[Measurement], result: &ThroughputResult) -> Prepared {
    let least = Prepared {
        bps: result.bps * HEADROOM,
        shown: false,
    };
    let others = measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Throughput(other) if other.direction != result.direction => {
            Some(other.steady_bps.unwrap_or(other.bps))
        }
        _ => None,
    });
    others.fold(least, |best, bps| match bps > best.bps {
        true => Prepared { bps, shown: true },
        false => best,
    })
}

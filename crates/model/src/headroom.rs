//! The rate to prepare a direction for that something at an end holds back.

use crate::results::Direction;
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

/// The best that the path showed in another direction, or a good deal more than `direction` reached, in bit/s, when
/// that was the best.
pub fn rate_to_prepare(
    measurements: &[Measurement],
    direction: Direction,
    reached_bps: f64,
) -> Prepared {
    let least = Prepared {
        bps: reached_bps * HEADROOM,
        shown: false,
    };
    let carried = measurements.iter().filter_map(|m| m.outcome.throughput());
    let others = carried.filter(|other| other.direction != direction);
    let others = others.map(|other| other.steady_bps.unwrap_or(other.bps));
    others.fold(least, |best, bps| match bps > best.bps {
        true => Prepared { bps, shown: true },
        false => best,
    })
}

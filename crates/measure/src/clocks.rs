//! The far host's clock against ours by the probes of a run, and delays corrected by that. Pure.

use plumb_model::distribution::Distribution;
use plumb_model::formula::clocks::{self, Comparison, Incomparable};
use plumb_model::results::Direction;
use plumb_model::results::udp::OneWayDelay;
use plumb_probe::{Exchange, ProbeLog};

use crate::probes::Window;

/// Compares the clocks by all probes of a log that were answered.
///
/// # Errors
/// When there are none, or the far clock was stepped.
pub fn by_log(log: &ProbeLog) -> Result<Comparison, Incomparable> {
    let exchanges: Vec<Exchange> = log.samples.iter().filter_map(|s| s.exchange).collect();
    by_probes(&exchanges)
}

/// Compares the clocks by probes that were answered.
///
/// # Errors
/// When there are none, or the far clock was stepped.
pub fn by_probes(exchanges: &[Exchange]) -> Result<Comparison, Incomparable> {
    let times = exchanges.iter().map(|exchange| clocks::Exchange {
        departed_ns: exchange.departed_ns,
        received_ns: exchange.far.received_ns,
        sent_ns: exchange.far.sent_ns,
        arrived_ns: exchange.arrived_ns,
    });
    Comparison::of(&times.collect::<Vec<_>>())
}

/// The delay of the packets of a phase, of which the smallest was `min_ns` and all others are longer by `above_s`. Both
/// ends stamped by their wall clocks; ours was `apart_ns` ahead of our monotonic clock.
pub fn delay_by(
    compared: &Comparison,
    direction: Direction,
    phase: Window,
    apart_ns: i64,
    min_ns: i64,
    above_s: &Distribution,
) -> OneWayDelay {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let middle = signed(phase.from_ns / 2 + phase.to_ns / 2);
    let offset_ns = compared.offset_at(middle).saturating_sub(apart_ns);
    // What comes down was sent by the far clock.
    let correction_ns = match direction {
        Direction::Down => offset_ns,
        Direction::Up | Direction::Both => offset_ns.saturating_neg(),
    };
    // One difference is taken for the whole phase, in which the clocks drift.
    let drift_s = compared.skew * phase.seconds();
    OneWayDelay {
        delay_s: above_s.shifted(min_ns.saturating_add(correction_ns) as f64 / 1e9),
        uncertainty_s: compared.uncertainty_s + drift_s.abs() / 2.0,
        clock_offset_s: offset_ns as f64 / 1e9,
        clock_drift_s: compared.skew_error.map(|_| drift_s),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_delay_is_corrected_by_the_difference_of_the_wall_clocks() {
        // Ours is 100 s ahead of our monotonic clock, and theirs 5 ms ahead of ours.
        let apart_ns = 100_000_000_000;
        let compared = Comparison {
            offset_ns: 100_005_000_000,
            at_ns: 5_000_000_000,
            skew: 0.0,
            skew_error: Some(1e-6),
            uncertainty_s: 0.0101,
        };
        let phase = Window {
            from_ns: 2_000_000_000,
            to_ns: 8_000_000_000,
        };
        let above = Distribution::of([0.0, 0.002]).unwrap();
        let corrected =
            |direction, min_ns| delay_by(&compared, direction, phase, apart_ns, min_ns, &above);
        // Sent by a clock that is 5 ms ahead, 12 ms seemed 7.
        let down = corrected(Direction::Down, 7_000_000);
        let up = corrected(Direction::Up, 17_000_000);
        assert!((down.delay_s.min - 0.012).abs() < 1e-6, "{down:?}");
        assert!((up.delay_s.max - 0.014).abs() < 1e-6, "{up:?}");
        assert!((down.clock_offset_s - 0.005).abs() < 1e-6, "{down:?}");
        assert!((0.010..0.0105).contains(&down.uncertainty_s), "{down:?}");
        assert!(down.clock_drift_s.is_some_and(|s| s.abs() < 1e-6));
    }
}

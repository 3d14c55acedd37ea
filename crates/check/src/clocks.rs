//! How far the far host's clock is from this one's, from the probes beside a phase. Pure.
//!
//! Each exchange of a probe tells the difference to within half of its round trip, however its
//! two ways share it (RFC 5905, section 8); the smallest round trip tells it best.

use plumb_model::results::Direction;
use plumb_model::results::udp::OneWayDelay;
use plumb_probe::ProbeLog;
use plumb_probe::sample::Sample;

use crate::probes::{Window, relative};

/// What two clocks of crystals drift at most against each other: 500 parts in a million is what
/// NTP holds possible (RFC 5905, appendix A.5.5.6).
const MAX_DRIFT: f64 = 500e-6;

/// Two hosts' clocks during a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocks {
    /// The far clock less this one, in nanoseconds.
    offset_ns: i64,
    /// Either way.
    uncertainty_s: f64,
    /// How much that changed from before the phase until after it.
    drift_s: Option<f64>,
}

/// Why there is no comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// No probe was answered.
    #[error("no probe by which to compare the clocks was answered over UDP")]
    Silence,
    /// The difference changed by more than clocks drift.
    #[error("the clock of one of the hosts was stepped")]
    Stepped,
}

impl Clocks {
    /// Compares them by the probes from `before` a phase until `after` it.
    ///
    /// # Errors
    /// When nothing came back, or one of the clocks was stepped.
    pub fn compare(log: &ProbeLog, before: Window, after: Window) -> Result<Self, Incomparable> {
        let best = |window: Window| {
            let (from_s, to_s) = relative(log, window);
            best(log.window(from_s, to_s))
        };
        let whole = Window {
            from_ns: before.from_ns,
            to_ns: after.to_ns,
        };
        let ends = best(before).zip(best(after));
        let of = best(whole).ok_or(Incomparable::Silence)?;
        let drift_s = ends.map(|(first, last)| (last.offset_ns - first.offset_ns) as f64 / 1e9);
        if let Some(((first, last), drift_s)) = ends.zip(drift_s) {
            let explained_s = (first.rtt_s + last.rtt_s) / 2.0 + MAX_DRIFT * whole.seconds();
            if drift_s.abs() > explained_s {
                return Err(Incomparable::Stepped);
            }
        }
        Ok(Self {
            offset_ns: of.offset_ns,
            uncertainty_s: of.rtt_s / 2.0 + drift_s.map_or(0.0, |s| s.abs() / 2.0),
            drift_s,
        })
    }

    /// The delay of a stream whose smallest was `min_ns` by the two hosts' own clocks, and whose
    /// delays above that are `above_s`.
    pub fn delay(
        &self,
        direction: Direction,
        min_ns: i64,
        above_s: &plumb_model::distribution::Distribution,
    ) -> OneWayDelay {
        // What comes down was sent by the far clock.
        let correction_ns = match direction {
            Direction::Down => self.offset_ns,
            Direction::Up | Direction::Both => self.offset_ns.saturating_neg(),
        };
        OneWayDelay {
            delay_s: above_s.shifted(min_ns.saturating_add(correction_ns) as f64 / 1e9),
            uncertainty_s: self.uncertainty_s,
            clock_offset_s: self.offset_ns as f64 / 1e9,
            clock_drift_s: self.drift_s,
        }
    }
}

/// One exchange.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    offset_ns: i64,
    rtt_s: f64,
}

fn best<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Exchange> {
    samples
        .filter_map(|sample| {
            Some(Exchange {
                offset_ns: sample.far_offset_ns?,
                rtt_s: sample.rtt?.as_secs_f64(),
            })
        })
        .min_by(|a, b| a.rtt_s.total_cmp(&b.rtt_s))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::distribution::Distribution;
    use plumb_model::results::{ProbeProtocol, TimestampSource};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const MS: i64 = 1_000_000;

    /// Exchanges at 0 s, 1 s …: round trip, and what the far clock seemed ahead, both in ms.
    fn log(exchanges: &[(u64, i64)]) -> ProbeLog {
        let samples = exchanges
            .iter()
            .zip(0u32..)
            .map(|((rtt, offset), n)| Sample {
                sequence: n,
                scheduled_s: n.into(),
                sent_s: n.into(),
                sent_monotonic_ns: 0,
                rtt: Some(Duration::from_millis(*rtt)),
                residence_ignored: false,
                timestamps: TimestampSource::Kernel,
                duplicates: 0,
                reordered: false,
                late: false,
                size_bytes: 64,
                hop_limit: None,
                far_offset_ns: Some(offset * MS),
                exchange: None,
            });
        ProbeLog {
            protocol: ProbeProtocol::Udp,
            address: Ipv4Addr::LOCALHOST.into(),
            id: 1,
            samples: samples.collect(),
            refused_s: vec![],
            again: vec![],
            far_clock: None,
            drops: vec![],
            hop_limit_changes_s: vec![],
            answers: Default::default(),
            icmp_errors: Default::default(),
            started_monotonic_ns: 0,
            duration_s: exchanges.len() as f64,
            notes: vec![],
        }
    }

    fn window(from_s: u64, to_s: u64) -> Window {
        Window {
            from_ns: from_s * 1_000_000_000,
            to_ns: to_s * 1_000_000_000,
        }
    }

    fn compare(exchanges: &[(u64, i64)]) -> Result<Clocks, Incomparable> {
        let end = exchanges.len() as u64;
        Clocks::compare(&log(exchanges), window(0, 2), window(end - 2, end))
    }

    #[test]
    fn the_smallest_round_trip_tells_best() {
        let clocks = compare(&[(20, 5), (30, 9), (90, 40), (80, -20), (22, 6), (40, 0)]).unwrap();
        assert_eq!(clocks.offset_ns, 5 * MS);
        assert_eq!(clocks.drift_s, Some(0.001));
        assert!((clocks.uncertainty_s - 0.0105).abs() < 1e-12);
        let above = Distribution::of([0.0, 0.002]).unwrap();
        // Sent by a clock that is 5 ms ahead, so 12 ms seemed 7.
        let down = clocks.delay(Direction::Down, 7 * MS, &above);
        let up = clocks.delay(Direction::Up, 17 * MS, &above);
        assert!((down.delay_s.min - 0.012).abs() < 1e-12 && (up.delay_s.max - 0.014).abs() < 1e-12);
        assert_eq!(down.clock_offset_s, 0.005);
    }

    #[test]
    fn a_step_is_no_drift() {
        let stepped = compare(&[(20, 5), (20, 5), (20, 5), (20, 500), (20, 500), (20, 500)]);
        assert_eq!(stepped, Err(Incomparable::Stepped));
        let mut silent = log(&[(20, 5)]);
        silent.samples.clear();
        let window = window(0, 1);
        assert_eq!(
            Clocks::compare(&silent, window, window),
            Err(Incomparable::Silence)
        );
    }
}

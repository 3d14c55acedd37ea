//! Outages: times in which nothing passes. What comes then is lost, as when a line is pulled, or
//! held and released in a burst, as by a radio that loses its cell for a while.

use std::time::Duration;

use plumb_model::units::duration_text;
use serde::{Deserialize, Serialize};

use crate::cell::timed::Timing;
use crate::packet::Packet;
use crate::random::Random;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "outage", at = "10s", lasts = "2s", every = "60s" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// When the first begins, counted from the start of the cell or the latest change of its
    /// settings.
    #[serde(with = "duration_text")]
    pub at: Duration,
    /// How long each lasts.
    #[serde(with = "duration_text")]
    pub lasts: Duration,
    /// The time from the beginning of one outage to the beginning of the next; when absent, there is only one.
    #[serde(
        default,
        with = "plumb_model::units::optional_duration_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub every: Option<Duration>,
    /// Whether these times are means: the time before each outage and each outage itself are
    /// then drawn from exponential distributions.
    #[serde(default)]
    pub random: bool,
    /// Whether packets are held until the outage is over, instead of lost.
    #[serde(default)]
    pub hold: bool,
}

/// The shortest cycle: the outages of an idle hour are counted through in milliseconds.
const SHORTEST_CYCLE: Duration = Duration::from_millis(10);

impl Settings for OutageSpec {
    fn check(&self) -> Result<(), String> {
        if self.lasts.is_zero() {
            return Err("an outage lasts longer than no time: give lasts".into());
        }
        match self.every {
            Some(every) if every <= self.lasts => Err(format!(
                "every ({every:?}) must be longer than lasts ({:?}): it is the time from the beginning of one outage to the beginning of the next",
                self.lasts
            )),
            Some(every) if every < SHORTEST_CYCLE => Err(format!(
                "an outage every {every:?} is not possible: at most every {SHORTEST_CYCLE:?}"
            )),
            _ => Ok(()),
        }
    }
}

/// The cell. Packets that are held when its settings change keep their time.
pub(crate) struct Outage {
    spec: OutageSpec,
    random: Random,
    is_down: bool,
    until: Time,
}

impl Outage {
    pub(crate) fn new(spec: OutageSpec, seed: u64, now: Time) -> Self {
        let mut outage = Self {
            spec,
            random: Random::new(seed),
            is_down: false,
            until: now,
        };
        outage.begin(now);
        outage
    }

    fn begin(&mut self, now: Time) {
        self.is_down = false;
        self.until = now + self.length(self.spec.at);
    }

    fn length(&mut self, mean: Duration) -> Duration {
        if !self.spec.random {
            return mean;
        }
        let ns = mean.as_nanos() as f64 * self.random.exponential();
        Duration::from_nanos(ns as u64)
    }

    fn advance(&mut self, now: Time) {
        while self.until <= now && self.until < Time::MAX {
            self.is_down = !self.is_down;
            let mean = match (self.is_down, self.spec.every) {
                (true, _) => self.spec.lasts,
                (false, Some(every)) => every.saturating_sub(self.spec.lasts),
                (false, None) => {
                    self.until = Time::MAX;
                    return;
                }
            };
            let length = self.length(mean);
            self.until += length;
        }
    }
}

impl Timing for Outage {
    type Spec = OutageSpec;

    fn departure(&mut self, now: Time, _: &Packet) -> Result<Time, DropCause> {
        self.advance(now);
        match (self.is_down, self.spec.hold) {
            (false, _) => Ok(now),
            (true, true) => Ok(self.until),
            (true, false) => Err(DropCause::Outage),
        }
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn crossing(&self) -> Crossing {
        Crossing::Whole
    }

    fn reconfigure(&mut self, now: Time, spec: OutageSpec) {
        self.spec = spec;
        self.begin(now);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::spec::CellSpec;

    fn outage(pairs: &[(&str, &str)]) -> CellSpec {
        CellSpec::from_pairs("outage", pairs).unwrap()
    }

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// When the packets leave that come at these milliseconds; `None` when they are lost.
    fn departures(spec: &CellSpec, times: &[u64]) -> Vec<Option<u64>> {
        let mut cell = spec.build(1, ms(0)).own();
        let passage = |time: &u64| {
            cell.enqueue(ms(*time), udp(100, 1, 0));
            let out = cell.dequeue(Time::MAX);
            out.map(|(at, _)| at.as_nanos() / 1_000_000)
        };
        times.iter().map(passage).collect()
    }

    #[test]
    fn once_and_again() {
        let once = outage(&[("at", "10s"), ("lasts", "2s")]);
        let times = [9_999, 10_000, 11_999, 12_000, 70_000];
        let (lost, passes) = (None, |time| Some(time));
        assert_eq!(
            departures(&once, &times),
            [passes(9_999), lost, lost, passes(12_000), passes(70_000)]
        );
        let again = once.with(&[("every", "60s")]).unwrap();
        let times = [9_999, 11_000, 69_999, 70_000, 71_999, 72_000, 190_000];
        assert_eq!(
            departures(&again, &times),
            [
                passes(9_999),
                lost,
                passes(69_999),
                lost,
                lost,
                passes(72_000),
                lost
            ]
        );
    }

    #[test]
    fn held_packets_leave_together_when_it_is_over() {
        let spec = outage(&[("at", "0s"), ("lasts", "2s"), ("hold", "true")]);
        assert_eq!(departures(&spec, &[0, 1500]), [Some(2000), Some(2000)]);
        let mut cell = spec.build(1, ms(0)).own();
        cell.enqueue(ms(0), udp(100, 1, 0));
        cell.enqueue(ms(1999), udp(100, 2, 0));
        assert_eq!(
            (cell.next_event(), cell.backlog().packets),
            (Some(ms(2000)), 2)
        );
        // A new schedule begins now, and nothing overtakes what is held.
        cell.set(ms(1999), &spec.with(&[("at", "1s")]).unwrap());
        cell.enqueue(ms(1999), udp(100, 3, 0));
        cell.enqueue(ms(3000), udp(100, 4, 0));
        let out: Vec<_> = std::iter::from_fn(|| cell.dequeue(Time::MAX))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(out, [ms(2000), ms(2000), ms(2000), ms(4999)]);
        assert_eq!(cell.stats(ms(9000), "outage").dropped_packets(), 0);
    }

    /// 10,000 cycles of 30 ms up and 10 ms down on average, looked at every millisecond: the
    /// share of time down is 1/4. Its standard deviation follows from a renewal process, √(2 (30·10)²/(40³ t)) = 0.0026
    /// for t = 400 s; the bound is five of them.
    #[test]
    fn random_outages_have_their_share() {
        let spec = outage(&[
            ("at", "30ms"),
            ("lasts", "10ms"),
            ("every", "40ms"),
            ("random", "true"),
        ]);
        let times: Vec<u64> = (0..400_000).collect();
        let out = departures(&spec, &times);
        let share = out.iter().filter(|at| at.is_none()).count() as f64 / 400_000.0;
        assert!((share - 0.25).abs() <= 0.013, "{share}");
        // Windows end and begin at other times than the regular ones do.
        assert_ne!(
            out,
            departures(&spec.with(&[("random", "false")]).unwrap(), &times)
        );
    }

    #[test]
    fn contradictions_are_named() {
        let spec = outage(&[("at", "1s"), ("lasts", "2s")]);
        for (key, value, says) in [
            ("every", "2s", "longer than lasts"),
            ("lasts", "0s", "longer than no time"),
            ("at", "soon", "250ms"),
        ] {
            let error = spec.with(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(spec.with(&[("every", "2ms"), ("lasts", "1ms")]).is_err());
    }
}

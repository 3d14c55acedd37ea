//! A rate that changes at given times, once or again and again.

use std::time::Duration;

use plumb_model::units::{BitRate, duration_text};
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// `{ at = "15s", rate = "60mbit" }`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// When the rate begins, after the start of the lab or of the period.
    #[serde(with = "duration_text")]
    pub at: Duration,
    /// The rate from then on.
    pub rate: BitRate,
}

/// The rate over time: constant between steps. Work is counted in units of which a line of
/// `rate` bit/s does `rate` in a nanosecond, so that all of it is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// When each rate begins, in nanoseconds after the start of a period, and the rate in
    /// bit/s. The first begins at zero.
    steps: Vec<(u64, u64)>,
    /// In nanoseconds; without one the last rate stays.
    period: Option<u64>,
    /// Work of a whole period.
    period_work: i128,
}

/// A stretch of one rate.
struct Piece {
    rate: u64,
    /// When the next begins; `None` when it stays.
    end: Option<u64>,
}

impl Schedule {
    pub(crate) fn constant(rate: BitRate) -> Self {
        Self::new(vec![(0, rate.bps().max(1))], None)
    }

    /// The steps must be those that [`check`] allows.
    pub(crate) fn of(steps: &[StepSpec], period: Option<Duration>) -> Self {
        let steps = steps.iter().map(|s| (ns(s.at), s.rate.bps().max(1)));
        Self::new(steps.collect(), period.map(ns))
    }

    fn new(steps: Vec<(u64, u64)>, period: Option<u64>) -> Self {
        let mut schedule = Self {
            steps,
            period: None,
            period_work: 0,
        };
        if let Some(period) = period {
            schedule.period_work = schedule.work(0, period);
            schedule.period = Some(period);
        }
        schedule
    }

    /// The rate at an instant, in bit/s, at least one.
    pub(crate) fn rate(&self, at: Time) -> u64 {
        self.piece(at.as_nanos()).rate
    }

    /// The smallest of its rates, in bit/s, at least one.
    pub(crate) fn slowest(&self) -> u64 {
        self.steps.iter().map(|(_, rate)| *rate).min().unwrap_or(1)
    }

    /// The work done from one instant to another.
    pub(crate) fn work_between(&self, from: Time, to: Time) -> i128 {
        let (from, to) = (from.as_nanos(), to.as_nanos());
        match self.period {
            Some(period) if to.saturating_sub(from) >= period => {
                let periods = (to - from) / period;
                self.period_work.saturating_mul(i128::from(periods))
                    + self.work(from + periods * period, to)
            }
            _ => self.work(from, to),
        }
    }

    /// When this much work is done that is begun at `from`, rounded down to a nanosecond.
    pub(crate) fn done(&self, from: Time, work: i128) -> Time {
        let (mut from, mut left) = (from.as_nanos(), work);
        if let Some(period) = self.period {
            let periods = left / self.period_work.max(1);
            left -= periods * self.period_work;
            let skipped = u64::try_from(periods).unwrap_or(u64::MAX);
            from = from.saturating_add(skipped.saturating_mul(period));
        }
        loop {
            let piece = self.piece(from);
            let ns = time_for(left, piece.rate);
            match piece.end {
                Some(end) if ns >= end - from => {
                    left -= i128::from(piece.rate) * i128::from(end - from);
                    from = end;
                }
                _ => return Time::from_nanos(from.saturating_add(ns)),
            }
        }
    }

    fn work(&self, mut from: u64, to: u64) -> i128 {
        let mut work = 0;
        while from < to {
            let piece = self.piece(from);
            let end = piece.end.unwrap_or(to).min(to);
            work += i128::from(piece.rate) * i128::from(end - from);
            from = end;
        }
        work
    }

    fn piece(&self, at: u64) -> Piece {
        let (base, within) = match self.period {
            Some(period) => (at - at % period, at % period),
            None => (0, at),
        };
        let next = self.steps.partition_point(|(begins, _)| *begins <= within);
        let end = match self.steps.get(next) {
            Some((begins, _)) => Some(*begins),
            None => self.period,
        };
        Piece {
            rate: next
                .checked_sub(1)
                .and_then(|current| self.steps.get(current))
                .map_or(1, |(_, rate)| *rate),
            // An end beyond the end of time is none.
            end: end.and_then(|end| base.checked_add(end)),
        }
    }
}

/// Whole nanoseconds that work takes at a rate.
pub(crate) fn time_for(work: i128, rate: u64) -> u64 {
    // Nearly always: dividing 64 bits takes a fraction of the time.
    match u64::try_from(work) {
        Ok(work) => work / rate.max(1),
        Err(_) => u64::try_from(work.max(0) / i128::from(rate.max(1))).unwrap_or(u64::MAX),
    }
}

/// What contradicts itself in a schedule.
pub(crate) fn check(steps: &[StepSpec], period: Option<Duration>) -> Result<(), String> {
    if steps.first().is_some_and(|step| !step.at.is_zero()) {
        return Err("the first step of the schedule must be at = \"0s\"".into());
    }
    for pair in steps.windows(2) {
        if let [a, b] = pair
            && a.at >= b.at
        {
            return Err(format!(
                "the schedule goes back: a step at {:?} comes after one at {:?}",
                b.at, a.at
            ));
        }
    }
    match (steps.last(), period) {
        (Some(last), Some(period)) if period <= last.at => Err(format!(
            "the period of {period:?} is over before the step at {:?}: make it longer",
            last.at
        )),
        (None, Some(_)) => Err("a period needs a schedule".into()),
        _ => Ok(()),
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn t(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    #[test]
    fn work_is_the_area_under_the_steps() {
        let once = Schedule::new(vec![(0, 10), (100, 1)], None);
        assert_eq!(once.work_between(t(90), t(110)), 110);
        assert_eq!(once.done(t(90), 110), t(110));
        assert_eq!((once.rate(t(99)), once.rate(t(100))), (10, 1));
        let again = Schedule::new(vec![(0, 10), (100, 1)], Some(150));
        assert_eq!(again.work_between(t(0), t(1_500_000)), 1050 * 10_000);
        assert_eq!(again.work_between(t(140), t(1640)), 10_500);
        assert_eq!(again.rate(t(150)), 10);
        // What ends with a fraction of a nanosecond ends in that nanosecond.
        assert_eq!(again.done(t(95), 59), t(104 + 5));
        assert_eq!(again.done(t(0), 1050 * 3 + 15), t(451));
    }

    proptest! {
        /// The instant at which work is done is the last by which not all of it was, or just so.
        #[test]
        fn done_and_work_are_inverse(
            rates in proptest::collection::vec((1u64..50, 1u64..1000), 1..5),
            periodic: bool, from in 0u64..2000, work in 0i128..1_000_000,
        ) {
            let mut at = 0;
            let mut steps = Vec::new();
            for (length, rate) in rates {
                steps.push((at, rate));
                at += length;
            }
            let schedule = Schedule::new(steps, periodic.then_some(at));
            let end = schedule.done(t(from), work);
            let after = t(end.as_nanos() + 1);
            prop_assert!(schedule.work_between(t(from), end) <= work);
            prop_assert!(schedule.work_between(t(from), after) > work);
            let stepwise = schedule.work(from, end.as_nanos());
            prop_assert_eq!(schedule.work_between(t(from), end), stepwise);
        }

        #[test]
        fn the_end_of_time_is_no_trouble(from in (u64::MAX - 100)..=u64::MAX, work in 0i128..1_000_000) {
            let schedule = Schedule::new(vec![(0, 1), (7, 3)], Some(10));
            prop_assert!(schedule.done(t(from), work) >= t(from));
        }
    }
}

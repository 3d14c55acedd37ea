//! How well a target did in a calendar month: how long it was watched, how long of that it was down, and how long its
//! state is unknown. Pure.

use std::time::Duration;

use crate::month::Month;
use crate::outage::Outage;

/// A month of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    pub month: Month,
    /// When it ends, or until when it is known, s since 1970.
    pub until_s: i64,
    /// How long the target was watched.
    pub watched: Duration,
    /// How long of that it was down, in outages that began in it or before.
    pub down: Duration,
    /// Outages that began in it.
    pub outages: u32,
    /// The outages among them that ended.
    pub repaired: u32,
    /// How long these lasted from beginning to end, also beyond the month.
    pub repairs: Duration,
}

impl Availability {
    /// Of a month in which the target was watched for so long, until `now_s`.
    pub fn new(month: Month, now_s: i64, watched: Duration, outages: &[Outage]) -> Self {
        let until_s = month.to_s().min(now_s).max(month.from_s());
        let mut found = Self {
            month,
            until_s,
            watched,
            down: Duration::ZERO,
            outages: 0,
            repaired: 0,
            repairs: Duration::ZERO,
        };
        // Not until now, which is known to the second alone: what was watched ends with the last sample, as an outage does.
        let (from_us, until_us) = (micros(month.from_s()), micros(month.to_s()));
        for outage in outages {
            let (begin, end) = (outage.begin_us.max(from_us), outage.end_us.min(until_us));
            found.down += Duration::from_micros(u64::try_from(end - begin).unwrap_or_default());
            if !(from_us..until_us).contains(&outage.begin_us) {
                continue;
            }
            found.outages += 1;
            if !outage.lasts {
                found.repaired += 1;
                found.repairs += outage.lasted();
            }
        }
        found
    }

    /// The share of the watched time without outages; `None` where nothing was watched.
    pub fn ratio(&self) -> Option<f64> {
        (!self.watched.is_zero()).then(|| {
            let down = self.down.min(self.watched);
            1.0 - down.as_secs_f64() / self.watched.as_secs_f64()
        })
    }

    /// Time of the month so far in which the target was not watched: it was neither up nor down in it.
    pub fn unknown(&self) -> Duration {
        let passed_s = u64::try_from(self.until_s - self.month.from_s()).unwrap_or_default();
        Duration::from_secs(passed_s).saturating_sub(self.watched)
    }

    /// Mean time between failures: watched time without outages for each of them; `None` without one.
    pub fn mtbf(&self) -> Option<Duration> {
        let up = self.watched.saturating_sub(self.down);
        up.checked_div(self.outages)
    }

    /// Mean time to repair: how long those outages lasted that ended; `None` without one.
    pub fn mttr(&self) -> Option<Duration> {
        self.repairs.checked_div(self.repaired)
    }
}

fn micros(at_s: i64) -> i64 {
    at_s.saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: i64 = 86_400;

    fn outage(begin_s: i64, end_s: i64, lasts: bool) -> Outage {
        Outage {
            begin_us: begin_s * 1_000_000,
            end_us: end_s * 1_000_000,
            lasts,
        }
    }

    #[test]
    fn an_outage_is_one_of_the_month_that_it_began_in_and_down_in_both() {
        let november: Month = "2026-11".parse().unwrap();
        let december = november.next().unwrap();
        let edge = december.from_s();
        let outages = [
            outage(edge - 20 * DAY_S, edge - 20 * DAY_S + 600, false),
            outage(edge - 3600, edge + 1800, false),
            outage(edge + 5 * DAY_S, edge + 5 * DAY_S + 60, true),
        ];
        let now_s = edge + 5 * DAY_S + 60;
        let watched = Duration::from_secs(25 * 86_400);
        let first = Availability::new(november, now_s, watched, &outages);
        assert_eq!((first.outages, first.repaired), (2, 2));
        assert_eq!(first.down, Duration::from_secs(4200));
        assert_eq!(first.mttr(), Some(Duration::from_secs(3000)));
        assert_eq!(first.unknown(), Duration::from_secs(5 * 86_400));
        assert_eq!(
            first.mtbf(),
            Some((watched - Duration::from_secs(4200)) / 2)
        );
        assert_eq!(first.ratio(), Some(1.0 - 4200.0 / (25.0 * 86_400.0)));
        // One that lasts was not repaired yet.
        let passed = Duration::from_secs(5 * 86_400 + 60);
        let second = Availability::new(december, now_s, passed, &outages);
        assert_eq!(
            (second.outages, second.repaired, second.mttr()),
            (1, 0, None)
        );
        assert_eq!(second.down, Duration::from_secs(1860));
        assert_eq!(second.unknown(), Duration::ZERO);
    }

    #[test]
    fn what_nobody_watched_has_no_availability() {
        let month: Month = "2026-11".parse().unwrap();
        let found = Availability::new(month, month.to_s() + 1, Duration::ZERO, &[]);
        assert_eq!(
            (found.ratio(), found.mtbf(), found.mttr()),
            (None, None, None)
        );
        assert_eq!(found.unknown(), Duration::from_secs(30 * 86_400));
        // A month that is still to come.
        let found = Availability::new(month, 0, Duration::ZERO, &[]);
        assert_eq!(found.unknown(), Duration::ZERO);
    }
}

//! How well the drivers kept to their schedules in a stretch of time: since the laboratory began,
//! or while a Run was made.

use std::time::Duration;

use plumb_link::time::Time;
use plumb_model::summary::Summary;

use crate::disturbance::Disturbance;
use crate::starvation::Naps;
use crate::stats::DriverStats;
use crate::stolen::ProcessorTime;

/// What is read of a laboratory at a time.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    /// Of its drivers, in the order of the links.
    pub(crate) drivers: Vec<DriverCounters>,
    /// Naps of the thread that is scheduled like the programs at the ends.
    pub(crate) naps: Naps,
    /// What the processors of the machine have done.
    pub(crate) processors: ProcessorTime,
}

/// What one driver's counters say at a time.
#[derive(Debug, Clone)]
pub(crate) struct DriverCounters {
    /// On the laboratory's clock.
    pub(crate) at: Time,
    /// How late packets were written so far.
    pub(crate) lateness: Summary,
    /// For how long packets were overdue so far.
    pub(crate) behind: Duration,
    /// Packets so far that the receiving device did not take.
    pub(crate) write_errors: u64,
    /// Packets so far that the sending device dropped.
    pub(crate) device_drops: u64,
    /// Packets so far that made no sense.
    pub(crate) unreadable: u64,
    /// Processor time that the driver's thread has used so far.
    pub(crate) cpu: Option<Duration>,
    /// Whether the driver has real-time priority.
    pub(crate) realtime: bool,
    /// Whether its device went away.
    pub(crate) stopped: bool,
}

impl DriverCounters {
    /// What happened since an earlier reading of the same driver, or since it began.
    pub(crate) fn since(&self, earlier: Option<&Self>) -> DriverStats {
        let (elapsed, behind) = match earlier {
            None => (self.at.as_secs_f64(), self.behind),
            Some(e) => (
                (self.at - e.at).as_secs_f64(),
                self.behind.saturating_sub(e.behind),
            ),
        };
        let since = |count: fn(&Self) -> u64| count(self).saturating_sub(earlier.map_or(0, count));
        let behind_ratio = match elapsed {
            0.0 => 0.0,
            elapsed => behind.as_secs_f64() / elapsed,
        };
        let mut stats = DriverStats {
            overrun: false,
            lateness_s: match earlier {
                None => self.lateness.distribution(),
                Some(e) => self.lateness.since(&e.lateness).distribution(),
            },
            behind_ratio,
            write_errors: since(|r| r.write_errors),
            device_drops: since(|r| r.device_drops),
            unreadable: since(|r| r.unreadable),
            cpu_s: self.cpu.map(|cpu| {
                let before = earlier.and_then(|e| e.cpu).unwrap_or_default();
                cpu.saturating_sub(before).as_secs_f64()
            }),
            realtime: self.realtime,
            stopped: self.stopped,
        };
        stats.overrun = !Disturbance::of_link(&stats).is_empty();
        stats
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reading(at_s: u64, late_us: &[u64], behind_ms: u64, write_errors: u64) -> DriverCounters {
        let mut lateness = Summary::new();
        late_us.iter().for_each(|us| lateness.record(us * 1000, 1));
        DriverCounters {
            at: Time::from_nanos(at_s * 1_000_000_000),
            lateness,
            behind: Duration::from_millis(behind_ms),
            write_errors,
            device_drops: 0,
            unreadable: 3,
            cpu: Some(Duration::from_secs(at_s / 10)),
            realtime: true,
            stopped: false,
        }
    }

    #[test]
    fn what_went_wrong_before_does_not_count() {
        // Behind for half of the first ten seconds, and with an error; then all was well.
        let early = reading(10, &[9_000, 8_000], 5_000, 1);
        let late = reading(20, &[9_000, 8_000, 20, 30, 40], 5_000, 1);
        let whole = late.since(None);
        assert!(whole.overrun && whole.behind_ratio == 0.25 && whole.write_errors == 1);
        let stretch = late.since(Some(&early));
        assert!(!stretch.overrun, "{stretch:?}");
        let lateness = stretch.lateness_s.unwrap();
        assert_eq!(lateness.count, 3);
        assert!((lateness.max - 40e-6).abs() < 1e-7, "{lateness:?}");
        assert_eq!((stretch.write_errors, stretch.unreadable), (0, 0));
        assert_eq!((whole.cpu_s, stretch.cpu_s), (Some(2.0), Some(1.0)));
    }

    #[test]
    fn what_goes_wrong_within_counts_by_its_own_length() {
        let early = reading(1_000, &[20], 0, 0);
        // 200 ms of ten seconds: 2 %, though it is 0.02 % of the laboratory's time.
        let late = reading(1_010, &[20, 5_000], 200, 0);
        assert!(!late.since(None).overrun);
        assert!(late.since(Some(&early)).overrun);
        assert!(early.since(Some(&early)).lateness_s.is_none());
    }
}

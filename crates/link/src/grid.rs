//! Values on an even grid of virtual time, in bounded memory: when there are too many, the
//! grid becomes twice as coarse.

use plumb_model::series::{Series, Unit};

use crate::time::Time;

/// Points kept at most: 16 minutes of 10 ms, 2.7 hours of 100 ms at full resolution.
const MOST_POINTS: usize = 100_000;

/// A quantity looked at on every grid point; a coarser grid leaves points out.
#[derive(Debug)]
pub(crate) struct SampleGrid {
    finest_ns: u64,
    step_ns: u64,
    start_ns: u64,
    next_ns: u64,
    values: Vec<f32>,
}

impl SampleGrid {
    /// A grid of multiples of `step_ns`, from the first at or after `start` on.
    pub(crate) fn new(step_ns: u64, start: Time) -> Self {
        let start_ns = start.as_nanos().next_multiple_of(step_ns);
        Self {
            finest_ns: step_ns,
            step_ns,
            start_ns,
            next_ns: start_ns,
            values: Vec::new(),
        }
    }

    /// Whether there are grid points before `end` that have no value yet.
    pub(crate) fn due(&self, end: Time) -> bool {
        self.next_ns < end.as_nanos()
    }

    /// Gives every such point its value in seconds, and reports its value in nanoseconds with its weight: how many
    /// points of the finest grid it represents.
    pub(crate) fn sample(
        &mut self,
        end: Time,
        value_ns: impl Fn(Time) -> u64,
        mut report: impl FnMut(u64, u64),
    ) {
        while self.due(end) {
            let ns = value_ns(Time::from_nanos(self.next_ns));
            self.values.push(ns as f32 / 1e9);
            report(ns, self.step_ns / self.finest_ns);
            if self.values.len() >= MOST_POINTS {
                let mut keep = false;
                self.values.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.step_ns *= 2;
            }
            self.next_ns = self
                .start_ns
                .saturating_add(self.values.len() as u64 * self.step_ns);
        }
    }

    pub(crate) fn series(&self) -> Series {
        series(
            Unit::Seconds,
            self.start_ns,
            self.step_ns,
            self.values.iter().map(|v| f64::from(*v)),
        )
    }
}

/// A quantity summed in every interval of the grid; a coarser grid sums two by two.
#[derive(Debug)]
pub(crate) struct SumGrid {
    step_ns: u64,
    sums: Vec<u64>,
}

impl SumGrid {
    /// Intervals of `step_ns` from time zero on.
    pub(crate) fn new(step_ns: u64) -> Self {
        Self {
            step_ns,
            sums: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, at: Time, amount: u64) {
        let interval = self.reach(at);
        if let Some(sum) = self.sums.get_mut(interval) {
            *sum += amount;
        }
    }

    /// Makes the grid reach the interval of `at`; returns which one it is.
    pub(crate) fn reach(&mut self, at: Time) -> usize {
        let mut interval = self.interval(at);
        while interval >= MOST_POINTS {
            self.sums = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.step_ns *= 2;
            interval = self.interval(at);
        }
        if interval >= self.sums.len() {
            self.sums.resize(interval + 1, 0);
        }
        interval
    }

    fn interval(&self, at: Time) -> usize {
        usize::try_from(at.as_nanos() / self.step_ns).unwrap_or(usize::MAX)
    }

    pub(crate) fn series(&self) -> Series {
        series(
            Unit::Bytes,
            0,
            self.step_ns,
            self.sums.iter().map(|sum| *sum as f64),
        )
    }
}

fn series(unit: Unit, start_ns: u64, step_ns: u64, values: impl Iterator<Item = f64>) -> Series {
    let mut series = Series::new(unit);
    for (index, value) in values.enumerate() {
        series.push(
            (start_ns as f64 + index as f64 * step_ns as f64) / 1e9,
            Some(value),
        );
    }
    series
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn samples_are_bounded_and_stay_on_their_grid() {
        let mut grid = SampleGrid::new(10, Time::from_nanos(5));
        let mut weight = 0;
        // The value of a point is its own time, so a point on the wrong place shows.
        grid.sample(
            Time::from_nanos(5_000_000),
            |t| t.as_nanos(),
            |_, w| weight += w,
        );
        let series = grid.series();
        assert!(series.t_s.len() < MOST_POINTS && series.t_s.len() >= MOST_POINTS / 2);
        assert_eq!(series.t_s[0], 10e-9);
        assert!(series.points().all(|(t, v)| (t - v).abs() < t * 1e-6));
        // Half a million points of 10 ns, give or take where the steps doubled.
        assert!((499_000..501_000).contains(&weight), "{weight}");
    }

    #[test]
    fn sums_are_bounded_and_lose_nothing() {
        let mut grid = SumGrid::new(10);
        for i in 0..350_000u64 {
            grid.add(Time::from_nanos(i * 10), 3);
        }
        let series = grid.series();
        assert!(series.values.len() <= MOST_POINTS);
        assert_eq!(
            series.points().map(|(_, v)| v).sum::<f64>(),
            3.0 * 350_000.0
        );
        assert_eq!(series.t_s[1], 40e-9);
        grid.add(Time::MAX, 1);
        assert!(grid.series().values.len() <= MOST_POINTS);
    }
}

//! The delay that a queue's backlog means, looked at on an even grid.

use crate::grid::SampleGrid;
use crate::stats::CellStats;
use crate::time::Time;
use plumb_model::summary::Summary;

/// The grid, in nanoseconds.
const GRID_NS: u64 = 10_000_000;

/// The samples and their spread.
pub(crate) struct BacklogDelay {
    grid: SampleGrid,
    spread: Summary,
}

impl BacklogDelay {
    /// Nothing sampled yet; the first grid point is at or after `start`.
    pub(crate) fn new(start: Time) -> Self {
        Self {
            grid: SampleGrid::new(GRID_NS, start),
            spread: Summary::new(),
        }
    }

    /// Samples the points before `end` that have no value yet, in nanoseconds.
    pub(crate) fn sample(&mut self, end: Time, delay_ns: impl Fn(Time) -> u64) {
        let spread = &mut self.spread;
        self.grid
            .sample(end, delay_ns, |ns, weight| spread.record(ns, weight));
    }

    /// Puts them where statistics have them.
    pub(crate) fn report(&self, stats: &mut CellStats) {
        stats.queue_delay_s = self.spread.distribution();
        stats.queue_delay = Some(self.grid.series());
    }
}

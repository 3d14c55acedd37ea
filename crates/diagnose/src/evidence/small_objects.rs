//! Small objects that went one after another.

use plumb_model::results::{Outcome, TransactionsResult};
use plumb_model::run::Measurement;

use crate::Case;

/// From so many on a median says something.
const ENOUGH: u64 = 5;

/// Small objects on one connection, each sent when the one before had been answered.
#[derive(Clone, Copy)]
pub(crate) struct SmallObjects<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a TransactionsResult,
}

impl SmallObjects<'_> {
    /// What they carried, in bit/s.
    pub(crate) fn bps(self) -> f64 {
        self.result.rate_tps * self.result.request_bytes as f64 * 8.0
    }
}

impl<'a> Case<'a> {
    /// Objects that went up one after another, where there were some.
    pub(crate) fn small_objects(&self) -> Option<SmallObjects<'a>> {
        let mut all = self.measurements.iter();
        all.find_map(|measurement| match &measurement.outcome {
            Outcome::Transactions(result)
                if result.concurrency == 1
                    && !result.connect
                    && result.offered_tps.is_none()
                    && result.request_bytes > result.response_bytes
                    && result.completed >= ENOUGH =>
            {
                Some(SmallObjects {
                    measurement,
                    result,
                })
            }
            _ => None,
        })
    }
}

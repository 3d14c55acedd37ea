//! Small objects that went one after another.

use plumb_model::distribution::Distribution;
use plumb_model::run::Measurement;

use crate::Case;

/// From so many on a median says something.
const ENOUGH: u64 = 5;

/// Small objects on one connection, each sent when the one before had been answered.
#[derive(Clone, Copy)]
pub(crate) struct SmallObjects<'a> {
    pub(crate) measurement: &'a Measurement,
    /// Payload of one, in bytes.
    pub(crate) bytes: f64,
    /// How many went a second.
    pub(crate) per_s: f64,
    /// What each took, in seconds.
    pub(crate) each_s: Distribution,
}

impl SmallObjects<'_> {
    /// What they carried, in bit/s.
    pub(crate) fn bps(self) -> f64 {
        self.per_s * self.bytes * 8.0
    }
}

impl<'a> Case<'a> {
    /// Objects that went up one after another, where there were some.
    pub(crate) fn small_objects(&self) -> Option<SmallObjects<'a>> {
        self.measurements.iter().find_map(|measurement| {
            let all = measurement.outcome.transactions()?;
            let one_after_another =
                all.concurrency == 1 && !all.connect && all.offered_tps.is_none();
            let is_upload = all.request_bytes > all.response_bytes;
            (one_after_another && is_upload && all.completed >= ENOUGH).then_some(SmallObjects {
                measurement,
                bytes: all.request_bytes as f64,
                per_s: all.rate_tps,
                each_s: all.latency_s?,
            })
        })
    }
}

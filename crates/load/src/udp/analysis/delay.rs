//! Delay and its variation: interarrival jitter (RFC 3550), IPDV and PDV (RFC 5481).
//!
//! A delay is the difference of two hosts' clocks, so only its changes mean something here. The
//! delays are kept as differences from the first, whose size does not matter to a histogram.

use plumb_model::distribution::Distribution;
use plumb_model::summary::{SignedSummary, Summary};

/// The delays so far, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Delays {
    first_ns: Option<i64>,
    min_ns: Option<i64>,
    delays: SignedSummary,
    /// Of the packet that came before.
    before_ns: i64,
    jitter_ns: f64,
    jitters: Summary,
    variations: SignedSummary,
}

/// Gain of the jitter's estimate (RFC 3550, section 6.4.1).
const JITTER_GAIN: f64 = 1.0 / 16.0;

impl Delays {
    pub(super) fn record(&mut self, delay_ns: i64) {
        let Some(first_ns) = self.first_ns else {
            (self.first_ns, self.min_ns) = (Some(delay_ns), Some(delay_ns));
            self.before_ns = delay_ns;
            self.delays.record(0);
            return;
        };
        self.min_ns = self.min_ns.map(|least| least.min(delay_ns));
        self.delays.record(delay_ns.saturating_sub(first_ns));
        let change = delay_ns.abs_diff(self.before_ns) as f64;
        self.before_ns = delay_ns;
        self.jitter_ns += (change - self.jitter_ns) * JITTER_GAIN;
        self.jitters.record(self.jitter_ns as u64, 1);
    }

    /// Two packets that were sent one after the other both came.
    pub(super) fn variation(&mut self, delay_ns: i64, before_ns: i64) {
        self.variations.record(delay_ns.saturating_sub(before_ns));
    }

    pub(super) fn min_ns(&self) -> Option<i64> {
        self.min_ns
    }

    /// The estimates after each packet.
    pub(super) fn jitter_s(&self) -> Option<Distribution> {
        self.jitters.distribution()
    }

    /// Delay less the delay of the packet before.
    pub(super) fn ipdv_s(&self) -> Option<Distribution> {
        self.variations.distribution()
    }

    /// Delay above the smallest.
    pub(super) fn pdv_s(&self) -> Option<Distribution> {
        let delays = self.delays.distribution()?;
        Some(delays.above(delays.min))
    }
}

//! The clock of a laboratory.

use std::time::Duration;

use plumb_link::time::Time;
use plumb_net::clock;

/// The laboratory's clock: nanoseconds since it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch(u64);

impl Epoch {
    pub(crate) fn start() -> Self {
        Self(clock::monotonic_ns())
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(clock::monotonic_ns().saturating_sub(self.0))
    }

    /// CLOCK_MONOTONIC at a time of the laboratory.
    pub(crate) fn monotonic(self, at: Time) -> Duration {
        Duration::from_nanos(at.as_nanos().saturating_add(self.0))
    }
}

//! What the kernel holds of this host's clock, which answers say to those that compare clocks.

use std::time::Duration;

use plumb_net::clock::discipline;
use plumb_wire::stamp::ClockState;

/// How often the kernel is asked.
const ASK_EVERY_NS: u64 = 1_000_000_000;

/// The error of a clock of which the kernel says nothing: 16 s, which the kernel itself reports for a clock
/// that no program sets (include/linux/timex.h, NTP_PHASE_LIMIT).
const UNKNOWN_ERROR: Duration = Duration::from_secs(16);

/// The clock, as of a second ago at most.
pub(crate) struct Clock {
    state: ClockState,
    asked_ns: u64,
}

impl Clock {
    /// As of now, on CLOCK_MONOTONIC.
    pub(crate) fn at(now_ns: u64) -> Self {
        Self {
            state: ask(),
            asked_ns: now_ns,
        }
    }

    /// What is known of it, asked again where that is old.
    pub(crate) fn state(&mut self, now_ns: u64) -> ClockState {
        if now_ns.saturating_sub(self.asked_ns) >= ASK_EVERY_NS {
            *self = Self::at(now_ns);
        }
        self.state
    }
}

fn ask() -> ClockState {
    let unknown = ClockState {
        synchronised: false,
        error: UNKNOWN_ERROR,
    };
    discipline().map_or(unknown, |discipline| ClockState {
        synchronised: discipline.synchronised,
        error: discipline.max_error,
    })
}

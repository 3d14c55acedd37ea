//! The two clocks that measurements use.
//!
//! Intervals come from CLOCK_MONOTONIC. The kernel stamps packets with CLOCK_REALTIME, which
//! may step: a difference of two stamps is an interval only while the clock did not.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_REALTIME since the Unix epoch.
pub fn realtime_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// Processor time that all threads of this process have used.
pub fn process_cpu_time() -> Duration {
    Duration::from_nanos(read(ClockId::CLOCK_PROCESS_CPUTIME_ID))
}

/// Whether the kernel holds CLOCK_REALTIME to be synchronised (adjtimex(2)).
pub fn synchronised() -> Option<bool> {
    // SAFETY: timex is integers alone, for which all zeroes is a valid value.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is what the call fills and outlives it; modes of zero change nothing.
    match unsafe { libc::adjtimex(&raw mut state) } {
        -1 => None,
        state => Some(state != libc::TIME_ERROR),
    }
}

fn read(clock: ClockId) -> u64 {
    // These clocks exist on every Linux; zero would be seen at once as an absurd time.
    clock_gettime(clock).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}

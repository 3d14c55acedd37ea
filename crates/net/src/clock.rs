//! The two clocks that measurements use.
//!
//! Intervals come from CLOCK_MONOTONIC. The kernel stamps packets with CLOCK_REALTIME, which
//! may step: a difference of two stamps is an interval only while the clock did not.

use std::time::Duration;

use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_REALTIME since the Unix epoch.
pub fn realtime_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC in nanoseconds: it changes when the clock is stepped, and
/// only then, since both are slewed alike. Some microseconds off when the machine is busy.
pub fn apart_ns() -> i64 {
    let before = monotonic_ns();
    let real = realtime_ns();
    let after = monotonic_ns();
    let middle = before + (after - before) / 2;
    i64::try_from(i128::from(real) - i128::from(middle)).unwrap_or(0)
}

/// Sleeps until CLOCK_MONOTONIC reaches `ns`; returns early when a signal was handled.
pub fn sleep_until(ns: u64) {
    let time = nix::sys::time::TimeSpec::from_duration(Duration::from_nanos(ns));
    let absolute = ClockNanosleepFlags::TIMER_ABSTIME;
    // What it fails with, it fails with at once, and its caller looks at the clock anyway.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, absolute, &time);
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

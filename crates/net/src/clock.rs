//! The clocks that measurements use.
//!
//! Intervals come from CLOCK_MONOTONIC. The kernel stamps packets with CLOCK_REALTIME, which
//! may step: a difference of two stamps is an interval only while the clock did not.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// The clock source of a kernel whose time travels (`setup_time_travel`, `arch/um/kernel/time.c`).
const VIRTUAL_CLOCK_SOURCE: &str = "time-travel-clock";

/// Whether time is virtual: it stands while programs compute, and passes at once while all of them wait. A program that
/// waits awake there waits longer than one that sleeps, and processor time has no meaning.
pub fn is_virtual() -> bool {
    static IS_VIRTUAL: OnceLock<bool> = OnceLock::new();
    *IS_VIRTUAL.get_or_init(|| {
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(path).is_ok_and(|name| name.trim() == VIRTUAL_CLOCK_SOURCE)
    })
}

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
    // An error comes at once, and the caller reads the clock anyway.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, absolute, &time);
}

/// Processor time that all threads of this process have used.
pub fn process_cpu_time() -> Duration {
    Duration::from_nanos(read(ClockId::CLOCK_PROCESS_CPUTIME_ID))
}

/// The processor time of one thread, which any thread of its process can read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadClock(ClockId);

impl ThreadClock {
    /// The clock of the calling thread.
    ///
    /// # Errors
    /// When the system has no such clocks.
    pub fn of_this_thread() -> io::Result<Self> {
        let mut id: libc::clockid_t = 0;
        // SAFETY: the calling thread lives, and `id` is what the call fills and outlives it.
        match unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) } {
            0 => Ok(Self(ClockId::from_raw(id))),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Time that the thread has used, in the kernel too; `None` after its end.
    pub fn read(self) -> Option<Duration> {
        clock_gettime(self.0).ok().map(Duration::from)
    }
}

/// The state of CLOCK_REALTIME in the kernel (adjtimex(2)), as the program that sets the clock reported it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discipline {
    /// Whether an external source sets the clock.
    pub synchronised: bool,
    /// Largest error of the clock. It grows while no program sets the clock, up to 16 s.
    pub max_error: Duration,
    /// It is off by about this.
    pub estimated_error: Duration,
    /// By how much its rate is corrected, in parts of a million.
    pub frequency_ppm: f64,
}

/// What the kernel holds of CLOCK_REALTIME; `None` where it does not say.
pub fn discipline() -> Option<Discipline> {
    // SAFETY: timex is integers alone, for which all zeroes is a valid value.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is what the call fills and outlives it; modes of zero change nothing.
    let code = unsafe { libc::adjtimex(&raw mut state) };
    let micros = |value| Duration::from_micros(u64::try_from(value).unwrap_or(0));
    (code != -1).then(|| Discipline {
        synchronised: code != libc::TIME_ERROR,
        max_error: micros(state.maxerror),
        estimated_error: micros(state.esterror),
        // In 2⁻¹⁶ parts of a million.
        frequency_ppm: state.freq as f64 / 65536.0,
    })
}

/// Whether the kernel holds CLOCK_REALTIME to be synchronised.
pub fn synchronised() -> Option<bool> {
    discipline().map(|discipline| discipline.synchronised)
}

fn read(clock: ClockId) -> u64 {
    // These clocks exist on every Linux; zero would be seen at once as an absurd time.
    clock_gettime(clock).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_threads_clock_counts_its_work_until_it_ends() {
        let (clock, used) = std::thread::spawn(|| {
            let clock = ThreadClock::of_this_thread().unwrap();
            let begun = clock.read().unwrap();
            while clock.read().unwrap() < begun + Duration::from_millis(2) {}
            (clock, clock.read().unwrap() - begun)
        })
        .join()
        .unwrap();
        assert!(used >= Duration::from_millis(2));
        // It is joined before the kernel has done with it.
        let deadline = std::time::Instant::now() + Duration::from_secs(1);
        while clock.read().is_some() && std::time::Instant::now() < deadline {}
        assert_eq!(clock.read(), None);
    }
}

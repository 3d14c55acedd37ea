//! Times of packets. Both ends write and read CLOCK_REALTIME, which the kernel stamps packets
//! with; when somebody steps it, both go on as if nobody had, and say so.

use plumb_net::clock::{apart_ns, monotonic_ns};

/// How far the two clocks may part before it is a step: what a busy machine adds to reading
/// them, several times over, and a hundredth of what a step is worth that anybody makes.
const STEP_NS: u64 = 1_000_000;

/// CLOCK_REALTIME as it would be had nobody stepped it since the start.
#[derive(Debug)]
pub(super) struct Clock {
    apart_ns: i64,
    stepped: bool,
}

impl Clock {
    /// Starts now.
    pub(super) fn start() -> Self {
        Self {
            apart_ns: apart_ns(),
            stepped: false,
        }
    }

    /// The time at which CLOCK_MONOTONIC was `ns`.
    pub(super) fn at_monotonic(&self, ns: u64) -> i64 {
        i64::try_from(ns)
            .unwrap_or(i64::MAX)
            .saturating_add(self.apart_ns)
    }

    /// Looks whether the clock was stepped, and gives what stamps taken now have to be added to
    /// them.
    pub(super) fn correction_ns(&mut self) -> i64 {
        let change = self.apart_ns.saturating_sub(apart_ns());
        if change.unsigned_abs() < STEP_NS {
            return 0;
        }
        self.stepped = true;
        change
    }

    /// The time now.
    pub(super) fn now(&self) -> i64 {
        self.at_monotonic(monotonic_ns())
    }

    /// Whether it was stepped.
    pub(super) fn stepped(mut self) -> bool {
        self.correction_ns();
        self.stepped
    }
}

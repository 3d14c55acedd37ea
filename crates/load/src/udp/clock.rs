//! Times of packets. Both ends write and read CLOCK_REALTIME, which the kernel stamps packets with. When it is stepped,
//! both continue as if it had not been, and report it.

use plumb_net::clock::{apart_ns, monotonic_ns};

/// How far the two clocks may part before it is a step: what a busy machine adds to reading
/// them, several times over, and a hundredth of what a step is worth that anybody makes.
const STEP_NS: u64 = 1_000_000;

/// CLOCK_REALTIME without any step since the start.
#[derive(Debug)]
pub(super) struct Clock {
    apart_ns: i64,
    stepped: bool,
}

impl Clock {
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
        self.correction_for(apart_ns())
    }

    /// The same where the two clocks are so far apart by now.
    fn correction_for(&mut self, apart_ns: i64) -> i64 {
        let change = self.apart_ns.saturating_sub(apart_ns);
        if change.unsigned_abs() < STEP_NS {
            return 0;
        }
        self.stepped = true;
        change
    }

    pub(super) fn now(&self) -> i64 {
        self.at_monotonic(monotonic_ns())
    }

    /// Whether it was stepped.
    pub(super) fn stepped(mut self) -> bool {
        self.correction_ns();
        self.stepped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_stepped_goes_on_as_if_it_had_not_been() {
        const S: i64 = 1_000_000_000;
        let mut clock = Clock {
            apart_ns: 1_700_000_000 * S,
            stepped: false,
        };
        // Reading two clocks takes microseconds, and slewing one is no step.
        for drift_ns in [0, 900, -40_000, 999_999] {
            assert_eq!(clock.correction_for(clock.apart_ns + drift_ns), 0);
        }
        assert!(!clock.stepped);
        // An hour forward: a stamp that the kernel takes now is an hour late.
        let stepped_ns = clock.apart_ns + 3600 * S;
        let (monotonic_ns, sent_ns) = (50 * S, clock.at_monotonic(50 * S as u64));
        let stamp_ns = monotonic_ns + stepped_ns;
        assert_eq!(stamp_ns + clock.correction_for(stepped_ns), sent_ns);
        assert!(clock.stepped);
        // Back again, and before: each by what it is apart now.
        assert_eq!(clock.correction_for(clock.apart_ns), 0);
        assert_eq!(clock.correction_for(clock.apart_ns - 2 * S), 2 * S);
        // What this end says of its own times is not moved by any of it.
        assert_eq!(clock.at_monotonic(50 * S as u64), sent_ns);
    }
}

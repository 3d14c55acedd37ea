//! When each target is probed: spread over time, so that they do not start together. Pure; times are of a monotonic
//! clock, which no step of the time of day moves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What comes when. A target's place is that in the list it was made of.
#[derive(Debug)]
pub struct Schedule {
    every: Vec<Duration>,
    /// The next time of each target, the earliest first.
    due: BinaryHeap<Reverse<(Duration, usize)>>,
}

impl Schedule {
    /// Targets by how often each is probed, from `start` on. Targets of one interval divide it evenly among them, and
    /// groups of different intervals are shifted against each other by a part of the smallest distance.
    pub fn new(every: Vec<Duration>, start: Duration) -> Self {
        let mut intervals: Vec<Duration> = every.clone();
        intervals.sort();
        intervals.dedup();
        let groups = u32::try_from(intervals.len()).unwrap_or(u32::MAX).max(1);
        let alike = |interval: Duration| {
            let count = every.iter().filter(|other| **other == interval).count();
            u32::try_from(count).unwrap_or(u32::MAX).max(1)
        };
        let distances = intervals
            .iter()
            .map(|interval| *interval / alike(*interval));
        let shift = distances.min().unwrap_or_default() / groups;
        let mut due = BinaryHeap::with_capacity(every.len());
        for (group, interval) in (0..).zip(&intervals) {
            let distance = *interval / alike(*interval);
            let members = every.iter().enumerate().filter(|(_, own)| *own == interval);
            for (number, (place, _)) in (0..).zip(members) {
                due.push(Reverse((start + shift * group + distance * number, place)));
            }
        }
        Self { every, due }
    }

    /// When the next probe is due; `None` without targets.
    pub fn next(&self) -> Option<Duration> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// A target that is due at `now`, and when it was; its next time is an interval after that. Times that are past
    /// altogether, because the machine slept, are left out rather than made up for.
    pub fn take(&mut self, now: Duration) -> Option<(usize, Duration)> {
        let Reverse((at, place)) = *self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        let every = *self.every.get(place)?;
        let mut next = at + every;
        if next <= now && !every.is_zero() {
            let missed = (now - at).as_nanos() / every.as_nanos();
            next = at + every * u32::try_from(missed).unwrap_or(u32::MAX);
            if next <= now {
                next += every;
            }
        }
        self.due.push(Reverse((next, place)));
        Some((place, at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is probed in virtual time until `end`.
    fn run(every: &[Duration], end: Duration) -> Vec<(usize, Duration)> {
        let mut schedule = Schedule::new(every.to_vec(), Duration::ZERO);
        let mut seen = Vec::new();
        while let Some(now) = schedule.next().filter(|at| *at < end) {
            seen.extend(schedule.take(now));
        }
        seen
    }

    proptest! {
        #[test]
        fn each_interval_is_kept(every in proptest::collection::vec(1u64..60, 1..30)) {
            let every: Vec<_> = every.into_iter().map(Duration::from_secs).collect();
            let seen = run(&every, Duration::from_secs(300));
            for (place, interval) in every.iter().enumerate() {
                let times: Vec<_> = seen.iter().filter(|(of, _)| *of == place).map(|(_, at)| *at).collect();
                prop_assert!(times[0] < *interval);
                prop_assert!(times.windows(2).all(|pair| pair[1] - pair[0] == *interval));
            }
        }

        #[test]
        fn targets_of_one_interval_never_start_together(count in 1u32..200) {
            let every = vec![Duration::from_secs(10); count as usize];
            let seen = run(&every, Duration::from_secs(30));
            let slot = Duration::from_secs(10) / count;
            prop_assert!(seen.windows(2).all(|pair| pair[1].1 - pair[0].1 + Duration::from_nanos(u64::from(count)) >= slot));
        }

        #[test]
        fn intervals_that_divide_each_other_never_meet(counts in proptest::array::uniform3(1usize..9)) {
            // Every count divides a power of two into even parts only where it is one itself.
            let counts = counts.map(usize::next_power_of_two);
            let every: Vec<_> = [1u64, 2, 8].into_iter().zip(counts)
                .flat_map(|(s, count)| vec![Duration::from_secs(s); count]).collect();
            let seen = run(&every, Duration::from_secs(16));
            prop_assert!(seen.windows(2).all(|pair| pair[1].1 > pair[0].1));
        }
    }

    #[test]
    fn what_was_slept_through_is_left_out() {
        let second = Duration::from_secs(1);
        let mut schedule = Schedule::new(vec![second], Duration::ZERO);
        assert_eq!(schedule.take(Duration::ZERO), Some((0, Duration::ZERO)));
        let late = Duration::from_millis(3_600_500);
        assert_eq!(schedule.take(late), Some((0, second)));
        assert_eq!(schedule.take(late), None);
        assert_eq!(schedule.next(), Some(Duration::from_secs(3601)));
    }
}

//! Which part of a plan is under way, for those that look on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::progress::Watcher;

/// The parts of a plan that have not begun.
pub(crate) struct Parts<'a> {
    watcher: &'a dyn Watcher,
    /// How long each is to last; no time at all where that is not known.
    left: VecDeque<Duration>,
    of: usize,
    /// When all of it has to be over; `None` where nothing limits it.
    until: Option<Instant>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(
        lasting: impl IntoIterator<Item = Duration>,
        until: Option<Instant>,
        watcher: &'a dyn Watcher,
    ) -> Self {
        let left: VecDeque<Duration> = lasting.into_iter().collect();
        Self {
            watcher,
            of: left.len(),
            left,
            until,
        }
    }

    /// The next one begins.
    pub(crate) fn begin(&mut self) {
        let rest: Duration = self.left.iter().sum();
        let to_the_end = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        self.left.pop_front();
        let number = self.of - self.left.len();
        self.watcher
            .part(number, self.of, to_the_end.unwrap_or(rest));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<(usize, usize, u64)>>);

    impl Watcher for Seen {
        fn step(&self, _name: &str, _takes: Duration) {}

        fn update(&self, _text: &str) {}

        fn part(&self, number: usize, of: usize, left: Duration) {
            let mut seen = self.0.lock().unwrap_or_else(|e| e.into_inner());
            seen.push((number, of, left.as_secs()));
        }
    }

    #[test]
    fn parts_are_counted_with_the_time_that_is_left() {
        let seen = Seen::default();
        let mut parts = Parts::new([5, 0, 10].map(Duration::from_secs), None, &seen);
        (0..3).for_each(|_| parts.begin());
        let soon = Instant::now() + Duration::from_millis(7500);
        Parts::new([Duration::from_secs(60)], Some(soon), &seen).begin();
        let seen = seen.0.into_inner().unwrap_or_default();
        assert_eq!(seen, [(1, 3, 15), (2, 3, 10), (3, 3, 10), (1, 1, 7)]);
    }
}

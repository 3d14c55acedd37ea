//! How a count of bits grew in the last seconds. Pure.

use std::collections::VecDeque;

/// Longer than any queue drains, in seconds.
const KEPT_S: f64 = 10.0;

/// The count by time; the latest is last.
#[derive(Debug, Default)]
pub(super) struct Course(VecDeque<(f64, f64)>);

impl Course {
    /// That is the count now.
    pub(super) fn reach(&mut self, now_s: f64, bits: f64) {
        self.0.push_back((now_s, bits));
        while self.0.front().is_some_and(|(at, _)| at + KEPT_S < now_s) {
            self.0.pop_front();
        }
    }

    /// So many more are counted now.
    pub(super) fn add(&mut self, now_s: f64, bits: f64) {
        self.reach(now_s, self.last() + bits);
    }

    /// How many were counted since a time.
    pub(super) fn since(&self, at_s: f64) -> f64 {
        self.last() - self.at(at_s)
    }

    /// The count at a time, between those that are known by a straight line.
    pub(super) fn at(&self, at_s: f64) -> f64 {
        let later = self.0.iter().position(|(at, _)| *at >= at_s);
        let of = |position: usize| self.0.get(position).copied();
        match later {
            Some(0) => of(0).map_or(0.0, |(_, bits)| bits),
            Some(position) => match (of(position - 1), of(position)) {
                (Some((from_s, from)), Some((to_s, to))) if to_s > from_s => {
                    from + (to - from) * (at_s - from_s) / (to_s - from_s)
                }
                (_, to) => to.map_or(0.0, |(_, bits)| bits),
            },
            None => self.last(),
        }
    }

    fn last(&self) -> f64 {
        self.0.back().map_or(0.0, |(_, bits)| *bits)
    }
}

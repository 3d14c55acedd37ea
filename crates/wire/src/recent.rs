//! A bounded table of the addresses heard from lately: what a responder remembers of strangers must not grow with their
//! number. Pure; the time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Values by key, at most so many, each forgotten after a time in which it was not asked for. Every
/// call takes steps that grow with the logarithm of their number: strangers choose the keys.
#[derive(Debug)]
pub struct Recent<K, V> {
    most: usize,
    idle: Duration,
    entries: BTreeMap<K, Entry<V>>,
    /// The keys in the order in which they were last seen.
    order: BTreeSet<(Duration, K)>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    last_seen: Duration,
}

impl<K: Ord + Copy, V: Default> Recent<K, V> {
    /// An empty table of at most `most` values, at least one, each forgotten after `idle`.
    pub fn new(most: usize, idle: Duration) -> Self {
        Self {
            most: most.max(1),
            idle,
            entries: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }

    /// The value of `key`, a new one where it is not known (any more). `now` is a time since any
    /// fixed origin that never goes back.
    pub fn at(&mut self, now: Duration, key: K) -> &mut V {
        // The longest silent makes room, whether it is idle or not.
        if !self.entries.contains_key(&key)
            && self.entries.len() >= self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
        let entry = self.entries.entry(key).or_insert_with(|| Entry {
            value: V::default(),
            last_seen: now,
        });
        if now.saturating_sub(entry.last_seen) > self.idle {
            entry.value = V::default();
        }
        self.order.remove(&(entry.last_seen, key));
        self.order.insert((now, key));
        entry.last_seen = now;
        &mut entry.value
    }

    /// The value of `key`, if there is one.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn it_is_bounded_and_the_longest_silent_goes_first() {
        let mut table = Recent::<u32, u32>::new(3, s(10));
        for key in 1..=3 {
            *table.at(s(key.into()), key) = key;
        }
        assert_eq!(
            *table.at(s(4), 1),
            1,
            "seen again, so 2 is the longest silent"
        );
        *table.at(s(5), 4) = 4;
        assert_eq!((table.len(), table.get_mut(&2)), (3, None));
        assert_eq!(*table.at(s(5), 1), 1);
    }

    #[test]
    fn what_was_silent_begins_anew() {
        let mut table = Recent::<u32, u32>::new(3, s(10));
        *table.at(s(0), 1) = 7;
        assert_eq!(*table.at(s(10), 1), 7);
        assert_eq!(*table.at(s(21), 1), 0);
    }
}

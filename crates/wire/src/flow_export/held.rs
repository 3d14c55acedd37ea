//! Records that came before their template, which may come soon: exporters announce templates every few messages.

use std::collections::VecDeque;

use super::clock::Clocks;
use super::domain::DomainKey;

/// What is held of one exporter at most, in bytes: ten of the longest messages on Ethernet, several times over.
const MOST_BYTES: usize = 65_536;

/// A set is held for so long, in ms: what a template that comes later describes may be another one.
const HELD_MS: i64 = 120_000;

/// A set of records.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) key: (DomainKey, u16),
    pub(super) content: Vec<u8>,
    pub(super) clocks: Clocks,
    since_ms: i64,
}

/// The sets that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Held {
    sets: VecDeque<Set>,
    bytes: usize,
}

impl Held {
    /// Holds a set, and returns how many were given up for it.
    pub(super) fn hold(
        &mut self,
        key: (DomainKey, u16),
        content: &[u8],
        clocks: Clocks,
        now_ms: i64,
    ) -> u64 {
        self.bytes += content.len();
        self.sets.push_back(Set {
            key,
            content: content.to_vec(),
            clocks,
            since_ms: now_ms,
        });
        let mut gone = 0;
        while let Some(first) = self.sets.front()
            && (self.bytes > MOST_BYTES || now_ms.saturating_sub(first.since_ms) > HELD_MS)
        {
            self.bytes -= first.content.len();
            self.sets.pop_front();
            gone += 1;
        }
        gone
    }

    /// The sets that waited for this template, and how many of them waited for too long and are given up.
    pub(super) fn release(&mut self, key: (DomainKey, u16), now_ms: i64) -> (Vec<Set>, u64) {
        if !self.sets.iter().any(|set| set.key == key) {
            return (Vec::new(), 0);
        }
        let (of_it, others): (VecDeque<Set>, _) =
            self.sets.drain(..).partition(|set| set.key == key);
        self.sets = others;
        self.bytes = self.sets.iter().map(|set| set.content.len()).sum();
        let (good, late): (Vec<Set>, Vec<Set>) = of_it
            .into_iter()
            .partition(|set| now_ms.saturating_sub(set.since_ms) <= HELD_MS);
        (good, late.len() as u64)
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::*;

    #[test]
    fn what_is_held_is_bounded_in_bytes_and_time() {
        let mut held = Held::default();
        let key = ((Protocol::NetFlow9, 7), 256);
        let mut gone = 0;
        for _ in 0..1000 {
            gone += held.hold(key, &[0; 1000], Clocks::default(), 0);
        }
        assert_eq!((held.len(), gone), (65, 935));
        assert_eq!(held.hold(key, &[0; 10], Clocks::default(), HELD_MS + 1), 65);
        let (sets, late) = held.release(key, HELD_MS + 2);
        assert_eq!((sets.len(), late, held.len(), held.bytes), (1, 0, 0, 0));
    }
}

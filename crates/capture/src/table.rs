//! Which packets belong together: one entry for each flow, found by one look-up a packet.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use indexmap::IndexMap;

use crate::packet::Address;

/// What both directions of a flow have in common: the lower end first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowKey {
    addresses: [Address; 2],
    ports: [u16; 2],
    pub(crate) protocol: u8,
}

impl FlowKey {
    /// The key, and whether the packet goes from the second end to the first.
    #[inline]
    pub(crate) fn new(
        source: (Address, u16),
        destination: (Address, u16),
        protocol: u8,
    ) -> (Self, usize) {
        let is_in_order = source <= destination;
        let [lower, upper] = match is_in_order {
            true => [source, destination],
            false => [destination, source],
        };
        let key = Self {
            addresses: [lower.0, upper.0],
            ports: [lower.1, upper.1],
            protocol,
        };
        (key, usize::from(!is_in_order))
    }

    /// Addresses with their ports.
    pub(crate) fn ends(&self) -> [(Address, u16); 2] {
        let ([lower, upper], [lower_port, upper_port]) = (self.addresses, self.ports);
        [(lower, lower_port), (upper, upper_port)]
    }
}

impl Hash for FlowKey {
    /// Folds five words, where a derived one folds each byte of the ports.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [lower, upper] = self.addresses;
        lower.hash(state);
        upper.hash(state);
        let [lower, upper] = self.ports.map(u64::from);
        state.write_u64(lower << 32 | upper << 16 | u64::from(self.protocol));
    }
}

/// Multiplies and folds, as wyhash does, from a seed that is secret to this process: a capture cannot be made so that
/// its flows collide. What is found does not depend on the seed.
#[derive(Debug, Clone)]
pub(crate) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Folded(u64);

impl Folded {
    /// An odd number with as many ones as zeros (wyhash's first).
    const FACTOR: u64 = 0xa076_1d64_78bd_642f;

    #[inline]
    fn fold(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(Self::FACTOR);
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(Self::FACTOR);
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fold(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.fold(u64::from(value));
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.fold(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.fold(value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.fold(value as u64);
    }
}

/// Entries by their key, in the order of their coming, with the last one at hand.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    entries: IndexMap<K, V, Seeded>,
    last: Option<(K, usize)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            entries: IndexMap::default(),
            last: None,
        }
    }
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry of a key, made where there is none.
    #[inline]
    pub(crate) fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> Option<&mut V> {
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => {
                let entry = self.entries.entry(key);
                let place = entry.index();
                entry.or_insert_with(make);
                self.last = Some((key, place));
                place
            }
        };
        self.entries.get_index_mut(place).map(|(_, value)| value)
    }

    /// The entry of a key, where there is one.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Takes away those that are not to be kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(&V) -> bool, mut gone: impl FnMut(K, V)) {
        self.last = None;
        let taken = self.entries.extract_if(.., |_, value| !keep(value));
        taken.for_each(|(key, value)| gone(key, value));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter()
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = (K, V)> {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_again_and_taken_away() {
        let mut table = Table::default();
        for key in 0..1000_u64 {
            *table
                .entry(key % 100, || 0)
                .into_iter()
                .next()
                .unwrap_or(&mut 0) += 1;
        }
        assert_eq!(table.len(), 100);
        assert!(table.iter().all(|(_, count)| *count == 10));
        let mut gone = Vec::new();
        if let Some(first) = table.get_mut(&0) {
            *first = 0;
        }
        table.retain(|count| *count > 0, |key, _| gone.push(key));
        assert_eq!((gone, table.len()), (vec![0], 99));
        assert_eq!(table.get_mut(&99).copied(), Some(10));
    }
}

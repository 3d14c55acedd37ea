//! A fast hash that is keyed by random numbers, because any host chooses the addresses and ports of its flows: two numbers are
//! multiplied, and both halves of the product are folded into one, as in wyhash and foldhash.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The random numbers of one table.
#[derive(Debug, Clone)]
pub(super) struct Keyed {
    begin: u64,
    factor: u64,
}

impl Default for Keyed {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            begin: random.hash_one(0),
            // An even factor would lose bits.
            factor: random.hash_one(1) | 1,
        }
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded {
            state: self.begin,
            factor: self.factor,
        }
    }
}

#[derive(Debug)]
pub(super) struct Folded {
    state: u64,
    factor: u64,
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let number = part.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            self.write_u64(number);
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.state ^ number) * u128::from(self.factor);
        self.state = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_in_a_row_are_spread_and_each_table_has_its_own_hash() {
        let keyed = Keyed::default();
        // Of the bits that tables use, the first seven and the last ones.
        let spread = |bits: fn(u64) -> u64| {
            let hashes = (0..4096u64).map(|number| bits(keyed.hash_one(number)));
            hashes.collect::<HashSet<_>>().len()
        };
        assert_eq!(spread(|hash| hash >> 57), 128);
        // By chance 63 % of them are met.
        assert!(spread(|hash| hash & 4095) > 2000);
        assert_ne!(keyed.hash_one(1u64), Keyed::default().hash_one(1u64));
    }
}

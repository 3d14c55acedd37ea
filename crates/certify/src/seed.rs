//! Numbers that look random and follow from names: the same name always gives the same.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A seed of words, each of which matters, and so does their order: FNV-1a of 64 bits, with an end after each word.
pub(crate) fn of(words: &[&str]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let of_word = |hash, word: &&str| step(word.bytes().fold(hash, step), 0xff);
    words.iter().fold(BASIS, of_word)
}

/// A share from 0 to 1 that belongs to these words.
pub(crate) fn share(words: &[&str]) -> f64 {
    Pcg64Mcg::seed_from_u64(of(words)).random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_their_order_matter() {
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["ab", ""]), of(&["a", "b"]));
        assert_ne!(share(&["a"]), share(&["b"]));
    }
}

//! The Internet checksum (RFC 1071), its pseudo-headers (RFC 9293 section 3.1, RFC 8200
//! section 8.1) and its incremental update (RFC 1624).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A one's complement sum in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds bytes; all but the last call must add an even number of them.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        // One's complement sums do not care for the width of the words (RFC 1071 section 2),
        // and 32-bit words in a 64-bit sum overflow only after 2^32 of them.
        let mut sum = self.0;
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            sum += u64::from(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        sum += u64::from(u32::from_be_bytes(last));
        Self(sum).fold_once()
    }

    /// Adds one 16-bit word.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word))
    }

    /// The sum folded to 16 bits, not complemented: what a partial checksum holds.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum: the complement of the folded sum.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    fn fold_once(self) -> Self {
        Self((self.0 & 0xffff_ffff) + (self.0 >> 32))
    }
}

/// The checksum of `bytes`; zero over data that includes its own right checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).checksum()
}

/// The pseudo-header of a TCP, UDP or ICMPv6 packet over IPv4 or IPv6.
///
/// `length` is the length of transport header and payload in bytes. Addresses of different versions have no
/// pseudo-header; the sum then covers both addresses in their own lengths.
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: u32) -> Sum {
    address(address(Sum::new(), source), destination)
        .bytes(&length.to_be_bytes())
        .word(u16::from(protocol))
}

fn address(sum: Sum, address: IpAddr) -> Sum {
    match address {
        IpAddr::V4(a) => sum.bytes(&Ipv4Addr::octets(&a)),
        IpAddr::V6(a) => sum.bytes(&Ipv6Addr::octets(&a)),
    }
}

/// The checksum after one 16-bit word of the data changed (RFC 1624, equation 3).
pub fn updated(checksum: u16, old_word: u16, new_word: u16) -> u16 {
    Sum::new()
        .word(!checksum)
        .word(!old_word)
        .word(new_word)
        .checksum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::new().bytes(&data).folded(), 0xddf2);
    }

    #[test]
    fn a_known_ipv4_header() {
        // Wikipedia, "Internet checksum": 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7.
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8,
            0, 0xc7,
        ];
        assert_eq!(checksum(&header), 0);
    }

    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_definition(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(checksum(&bytes), reference(&bytes));
        }

        #[test]
        fn an_update_equals_a_new_sum(mut bytes in proptest::collection::vec(any::<u8>(), 4..60), new: u16) {
            bytes[0] |= 1; // RFC 1624: all-zero data has two representations
            let before = checksum(&bytes);
            let old = u16::from_be_bytes([bytes[2], bytes[3]]);
            bytes[2..4].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(updated(before, old, new), checksum(&bytes));
        }
    }
}

//! Other addresses in the place of real ones, in packets and in documents, by a keyed code: of IP so that two which share their first bits share
//! as many afterwards (Xu et al., "Prefix-preserving IP address anonymization", ICNP 2002, with HMAC-SHA-256 as its random
//! function), of Ethernet without any order.

mod special;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use crate::keyed::{Key, code, key};
use special::{IPV4, IPV6, Range, first, stays};

/// Addresses that are remembered: to work one out takes a code for each of its bits.
const MOST_KNOWN: usize = 65_536;
/// What a code is for, so that no two uses share one.
const OF_IPV4: u8 = 4;
const OF_IPV6: u8 = 6;
const OF_ETHERNET: u8 = 48;

type Mac = [u8; 6];

/// Bits of the first byte of an address of Ethernet (IEEE 802, section 8.2): to a group; not of a vendor.
const GROUP: u8 = 1;
const LOCAL: u8 = 2;
/// What begins the groups of bridges (IEEE 802.1Q, table 8-1), of IPv4 (RFC 1112) and of IPv6 (RFC 2464).
const BRIDGES: [u8; 3] = [0x01, 0x80, 0xc2];
const GROUPS_V4: [u8; 3] = [0x01, 0x00, 0x5e];
const GROUPS_V6: [u8; 2] = [0x33, 0x33];

/// Works out addresses, and remembers them, in tables that are hashed by `S`.
pub struct Addresses<S = RandomState> {
    key: Key,
    v4: HashMap<[u8; 4], [u8; 4], S>,
    v6: HashMap<[u8; 16], [u8; 16], S>,
    macs: HashMap<Mac, Mac, S>,
}

impl<S: BuildHasher + Default> Addresses<S> {
    /// With a secret of any length: the same one gives the same addresses.
    pub fn new(secret: &[u8]) -> Self {
        Self {
            key: key(secret),
            v4: HashMap::default(),
            v6: HashMap::default(),
            macs: HashMap::default(),
        }
    }

    /// Another address of IPv4, of the same kind.
    pub fn v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        let key = &self.key;
        remembered(&mut self.v4, address, || {
            let bits = u128::from(u32::from_be_bytes(address)) << 96;
            let other = replaced(key, OF_IPV4, IPV4, bits);
            ((other >> 96) as u32).to_be_bytes()
        })
    }

    /// Another address of IPv6, of the same kind.
    pub fn v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        let key = &self.key;
        remembered(&mut self.v6, address, || {
            replaced(key, OF_IPV6, IPV6, u128::from_be_bytes(address)).to_be_bytes()
        })
    }

    /// Another IPv6 network: the bits behind its prefix are zero.
    pub fn v6_network(&mut self, prefix: [u8; 16], bits: u8) -> [u8; 16] {
        let other = u128::from_be_bytes(self.v6(prefix));
        (other & first(u32::from(bits.min(128)))).to_be_bytes()
    }

    /// Another address of Ethernet, of no vendor. Broadcast and bridges' groups stay, and groups of IP stay groups of IP.
    pub fn mac(&mut self, address: Mac) -> Mac {
        if address == [0; 6] || address == [0xff; 6] || address.starts_with(&BRIDGES) {
            return address;
        }
        let key = &self.key;
        remembered(&mut self.macs, address, || {
            let mut other: Mac = code(key, &[&[OF_ETHERNET], &address]);
            let [first, second, third, fourth, ..] = &mut other;
            let [was_first, ..] = address;
            *first = *first & !GROUP | LOCAL | was_first & GROUP;
            if address.starts_with(&GROUPS_V4) {
                [*first, *second, *third] = GROUPS_V4;
                *fourth &= 0x7f;
            } else if address.starts_with(&GROUPS_V6) {
                [*first, *second] = GROUPS_V6;
            }
            other
        })
    }
}

fn remembered<A: Copy + Eq + Hash, S: BuildHasher>(
    known: &mut HashMap<A, A, S>,
    address: A,
    work_out: impl FnOnce() -> A,
) -> A {
    if let Some(other) = known.get(&address) {
        return *other;
    }
    let other = work_out();
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
    known.insert(address, other);
    other
}

/// Turns each bit over, or not, by a code of the bits before it. An address of version 4 stands in the upper 32 bits.
fn replaced(key: &Key, of: u8, ranges: &[Range], address: u128) -> u128 {
    let width = if of == OF_IPV4 { 32 } else { 128 };
    let turned = (0..width).filter(|depth| {
        let before = address & first(*depth);
        let parts = [&[of, *depth as u8][..], &before.to_be_bytes()];
        !stays(ranges, address, *depth) && code::<1>(key, &parts) >= [0x80]
    });
    turned.fold(address, |other, depth| other ^ 1 << (127 - depth))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn v4(address: &str) -> Ipv4Addr {
        let parsed: Ipv4Addr = address.parse().unwrap_or(Ipv4Addr::UNSPECIFIED);
        <Addresses>::new(b"a key").v4(parsed.octets()).into()
    }

    fn v6(address: &str) -> Ipv6Addr {
        let parsed: Ipv6Addr = address.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
        <Addresses>::new(b"a key").v6(parsed.octets()).into()
    }

    #[test]
    fn special_addresses_stay_of_their_kind() {
        for same in ["0.0.0.0", "127.0.0.53", "224.0.0.251", "255.255.255.255"] {
            assert_eq!(v4(same).to_string(), same);
        }
        assert!(v4("169.254.7.9").is_link_local());
        assert!(v4("239.255.255.250").is_multicast());
        for private in ["10.1.2.3", "172.31.2.3", "192.168.1.1"] {
            assert!(v4(private).is_private());
            assert_ne!(v4(private).to_string(), private);
        }
        for same in ["::", "::1", "ff02::1", "ff02::fb", "ff05::1:3"] {
            assert_eq!(v6(same).to_string(), same);
        }
        assert!(v6("fe80::1").is_unicast_link_local());
        assert!(v6("fe80::1").to_string().starts_with("fe80::"));
        assert!(v6("fd00::1").is_unique_local());
        assert!(v6("ff3e:40:2001:db8::1").to_string().starts_with("ff3e:"));
        let solicited = v6("ff02::1:ff12:3456").to_string();
        assert!(solicited.starts_with("ff02::1:ff") && !solicited.ends_with("12:3456"));
        assert_eq!(v6("2001:db8::1").octets()[0] >> 5, 1);
    }

    #[test]
    fn ethernet_keeps_groups_and_hides_vendors() {
        let mut of = <Addresses>::new(b"a key");
        assert_eq!(of.mac([0xff; 6]), [0xff; 6]);
        assert_eq!(of.mac([1, 0x80, 0xc2, 0, 0, 14]), [1, 0x80, 0xc2, 0, 0, 14]);
        let host = of.mac([0, 0x1b, 0x21, 1, 2, 3]);
        assert_eq!(host[0] & (GROUP | LOCAL), LOCAL);
        assert_ne!(of.mac([0, 0x1b, 0x21, 1, 2, 4])[..3], host[..3]);
        assert!(
            of.mac([1, 0, 0x5e, 0x7f, 0xff, 0xfa])
                .starts_with(&GROUPS_V4)
        );
        assert!(of.mac([0x33, 0x33, 0xff, 1, 2, 3]).starts_with(&GROUPS_V6));
        assert_eq!(of.mac([0xab, 0, 0, 0, 0, 1])[0] & GROUP, GROUP);
    }

    #[test]
    fn another_key_gives_other_addresses() {
        let [one, two] =
            [&b"one"[..], b"two"].map(|key| <Addresses>::new(key).v4([198, 51, 100, 7]));
        assert_ne!(one, two);
    }

    proptest! {
        #[test]
        fn as_many_first_bits_are_shared_as_before(a: u32, b: u32, shared in 0_u32..=32) {
            let b = a ^ (b.checked_shr(shared).unwrap_or(0));
            let mut of = <Addresses>::new(b"a key");
            let [x, y] = [a, b].map(|address| u32::from_be_bytes(of.v4(address.to_be_bytes())));
            prop_assert_eq!((a ^ b).leading_zeros(), (x ^ y).leading_zeros());
            let special = |address: u32| {
                let of = Ipv4Addr::from(address);
                (of.is_loopback(), of.is_private(), of.is_multicast(), of.is_link_local(), of.is_broadcast())
            };
            prop_assert_eq!(special(a), special(x));
        }

        #[test]
        fn as_many_first_bits_are_shared_of_ipv6(a: u128, b: u128, shared in 0_u32..=128) {
            let b = a ^ (b.checked_shr(shared).unwrap_or(0));
            let mut of = <Addresses>::new(b"a key");
            let [x, y] = [a, b].map(|address| u128::from_be_bytes(of.v6(address.to_be_bytes())));
            prop_assert_eq!((a ^ b).leading_zeros(), (x ^ y).leading_zeros());
        }
    }
}

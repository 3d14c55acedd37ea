//! What an address says of where it is used.

use std::net::{IpAddr, Ipv4Addr};

/// Of a private network: RFC 1918, RFC 4193.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xfe00 == 0xfc00,
    }
}

/// Of this host, of one link, or of a private network: no host on the Internet can have it (RFC 1122, RFC 3927, RFC 1918, RFC 4291,
/// RFC 4193). Blocks for documents, benchmarks and reserved ones are not among them, and neither are prefixes of translators, such
/// as 64:ff9b::/96 (RFC 6052) and 64:ff9b:1::/48 (RFC 8215), behind which the Internet may stand.
pub fn is_near(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_of_link = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    address.is_loopback() || is_of_link || is_private(address)
}

/// Shared by the customers of a provider: 100.64.0.0/10 (RFC 6598).
pub fn is_shared(address: IpAddr) -> bool {
    let IpAddr::V4(v4) = address else {
        return false;
    };
    let [first, second, ..] = v4.octets();
    first == 100 && second & 0xc0 == 64
}

/// Reached over the Internet: none of those that have another use (RFC 6890).
pub fn is_public(address: IpAddr) -> bool {
    let other_use = match address {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_documentation()
                || v4.is_broadcast()
                || v4.octets()[0] == 0
                || v4.octets()[0] >= 240
                // Benchmarks (RFC 2544).
                || (v4 & Ipv4Addr::new(255, 254, 0, 0)) == Ipv4Addr::new(198, 18, 0, 0)
        }
        // Global unicast is 2000::/3, of which 2001:db8::/32 is for documents.
        IpAddr::V6(v6) => {
            let [first, second, ..] = v6.segments();
            first & 0xe000 != 0x2000 || (first == 0x2001 && second == 0xdb8)
        }
    };
    !other_use && !is_private(address) && !is_shared(address)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn near_is_what_no_host_of_the_internet_has() {
        let near = |text: &str| is_near(text.parse().unwrap());
        for text in [
            "127.9.9.9",
            "::1",
            "169.254.1.1",
            "fe80::1",
            "172.16.0.1",
            "fd12::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(near(text), "{text}");
        }
        for text in [
            "203.0.113.5",
            "198.51.100.5",
            "192.0.2.5",
            "198.18.0.5",
            "240.0.0.5",
            "0.0.0.5",
            "192.0.0.8",
            "192.88.99.1",
            "100.64.0.1",
            "9.9.9.9",
            "2001:db8::5",
            "64:ff9b::6440:4205",
            "64:ff9b:1::5",
            "::9.9.9.9",
            "100::1",
            "5f00::1",
            "fec0::1",
            "2002::1",
            "2001::1",
            "2606:4700::1",
            "::ffff:203.0.113.5",
            "::ffff:0:9.9.9.9",
        ] {
            assert!(!near(text), "{text}");
        }
    }

    #[test]
    fn uses_of_addresses_are_told_apart() {
        let of = |text: &str| {
            let address = text.parse().unwrap();
            [is_private(address), is_shared(address), is_public(address)]
        };
        for (text, expected) in [
            ("192.168.1.1", [true, false, false]),
            ("172.32.0.1", [false, false, true]),
            ("100.64.0.1", [false, true, false]),
            ("100.127.255.254", [false, true, false]),
            ("100.128.0.1", [false, false, true]),
            ("192.0.2.1", [false, false, false]),
            ("198.19.0.1", [false, false, false]),
            ("9.9.9.9", [false, false, true]),
            ("fd00::2", [true, false, false]),
            ("2001:db8::1", [false, false, false]),
            ("2a00:1450::1", [false, false, true]),
            ("fe80::1", [false, false, false]),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}

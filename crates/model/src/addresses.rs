//! What an address says of where it is used.

use std::net::{IpAddr, Ipv4Addr};

/// Of a private network: RFC 1918, RFC 4193.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xfe00 == 0xfc00,
    }
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

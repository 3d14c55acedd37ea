//! How public an address is. A page of a public server may not make this host ask what only its own network can reach, a
//! router's settings for one (WICG Local Network Access has browsers refuse the same).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// From everywhere to this host alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AddressSpace {
    Public,
    /// RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC 4291 section 2.5.6.
    Private,
    Loopback,
}

impl AddressSpace {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => Self::of_v6(v6),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [first, second, ..] = address.octets();
        let shared = first == 100 && (64..128).contains(&second);
        match () {
            // 0.0.0.0/8 leads to this host.
            () if address.is_loopback() || first == 0 => Self::Loopback,
            () if shared || address.is_private() || address.is_link_local() => Self::Private,
            () if address.is_multicast() || address.is_broadcast() => Self::Private,
            () => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        match () {
            () if address.is_loopback() || address.is_unspecified() => Self::Loopback,
            () if address.is_unique_local() || address.is_unicast_link_local() => Self::Private,
            () if address.is_multicast() => Self::Private,
            () => Self::Public,
        }
    }
}

/// Ports that belong to services that a request could harm or drive (WHATWG Fetch, "port blocking").
const BLOCKED_PORTS: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
    512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
    995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
    6669, 6679, 6697, 10080,
];

/// Whether a page may not lead to that port.
pub(super) fn is_blocked(port: u16) -> bool {
    BLOCKED_PORTS.contains(&port)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_as_public_as_their_rfcs_say() {
        for (address, space) in [
            ("192.0.2.1", AddressSpace::Public),
            ("2001:db8::1", AddressSpace::Public),
            ("172.31.0.1", AddressSpace::Private),
            ("172.32.0.1", AddressSpace::Public),
            ("100.64.0.1", AddressSpace::Private),
            ("100.128.0.1", AddressSpace::Public),
            ("169.254.169.254", AddressSpace::Private),
            ("fd00::1", AddressSpace::Private),
            ("fe80::1", AddressSpace::Private),
            ("127.1.2.3", AddressSpace::Loopback),
            ("0.0.0.0", AddressSpace::Loopback),
            ("::1", AddressSpace::Loopback),
            ("::ffff:127.0.0.1", AddressSpace::Loopback),
            ("::ffff:10.0.0.1", AddressSpace::Private),
        ] {
            assert_eq!(
                AddressSpace::of(address.parse().unwrap()),
                space,
                "{address}"
            );
        }
        assert!(is_blocked(25) && !is_blocked(80) && !is_blocked(8080));
    }
}

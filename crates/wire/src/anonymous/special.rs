//! Addresses that stay of their kind: what is loopback, private or multicast is so afterwards, and nothing else becomes it.

/// Addresses with the same first bits. IPv4 addresses are in the upper 32 bits.
pub(super) struct Range {
    value: u128,
    /// Which bits of the value count.
    mask: u128,
    /// How many bits stay unchanged.
    bits: u32,
    /// Whether the other bits stay too: such addresses do not identify their host.
    whole: bool,
}

/// IANA's registry of special addresses of IPv4 (RFC 6890), and groups of the local network (RFC 5771, section 4).
pub(super) const IPV4: &[Range] = &[
    v4([0, 0, 0, 0], 8, true),
    v4([10, 0, 0, 0], 8, false),
    v4([127, 0, 0, 0], 8, true),
    v4([169, 254, 0, 0], 16, false),
    v4([172, 16, 0, 0], 12, false),
    v4([192, 168, 0, 0], 16, false),
    v4([224, 0, 0, 0], 4, false),
    v4([224, 0, 0, 0], 24, true),
    v4([255, 255, 255, 255], 32, true),
];

/// The same of IPv6 (RFC 4291, section 2.4; RFC 4193), with multicast by RFC 4291, section 2.7.
pub(super) const IPV6: &[Range] = &[
    // Unspecified, and loopback.
    v6(0, 127, true),
    // Global unicast.
    v6(0x2000 << 112, 3, false),
    // Unique local.
    v6(0xfc00 << 112, 7, false),
    // Link-local: all of them have zeros up to the interface's identifier.
    v6(0xfe80 << 112, 64, false),
    // Flags and scope of a group stay.
    Range {
        value: 0xff00 << 112,
        mask: first(8),
        bits: 16,
        whole: false,
    },
    // Well-known groups, of any scope.
    Range {
        value: 0xff00 << 112,
        mask: first(96) & !(0x000f << 112),
        bits: 96,
        whole: true,
    },
    // Solicited-node groups end in 24 bits of a host's address.
    v6(0xff02 << 112 | 0x0001_ff00_0000, 104, false),
];

const fn v4(address: [u8; 4], bits: u32, whole: bool) -> Range {
    v6((u32::from_be_bytes(address) as u128) << 96, bits, whole)
}

const fn v6(value: u128, bits: u32, whole: bool) -> Range {
    Range {
        value,
        mask: first(bits),
        bits,
        whole,
    }
}

/// The first so many bits, of 128 at most.
pub(super) const fn first(bits: u32) -> u128 {
    match bits {
        0 => 0,
        _ => u128::MAX << (128 - bits),
    }
}

/// Whether the bit behind the first `depth` bits of an address stays: a range begins with these bits and has more, or
/// the address is one that stays whole.
pub(super) fn stays(ranges: &[Range], address: u128, depth: u32) -> bool {
    ranges.iter().any(|range| {
        let other = (address ^ range.value) & range.mask;
        let leads = depth < range.bits && other & first(depth) == 0;
        leads || range.whole && other == 0
    })
}

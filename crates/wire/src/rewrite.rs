//! Changes to the headers of a packet in place, which keep its checksums right (RFC 1624).

use std::net::Ipv4Addr;

use crate::checksum;
use crate::ip::{ICMP, ICMPV6, IpPacket, TCP, UDP};

/// Where the IPv4 header has its checksum and addresses, in bytes (RFC 791 section 3.1).
const IPV4_CHECKSUM: usize = 10;
const IPV4_SOURCE: usize = 12;
const IPV4_DESTINATION: usize = 16;

/// What the checksum field of a transport header holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportSum {
    Complete,
    /// The folded sum of the pseudo-header; the hardware is to complete it
    /// (`CHECKSUM_PARTIAL`, Linux `include/linux/skbuff.h`).
    Partial,
}

/// Sets the differentiated services codepoint (RFC 2474), 0…63; `true` when that changed the
/// packet.
pub fn set_dscp(packet: &mut [u8], dscp: u8) -> bool {
    change_traffic_class(packet, |class| dscp << 2 | class & 3)
}

/// Sets the ECN field to "not ECN-capable" (RFC 3168 section 5); `true` when that changed the
/// packet.
pub fn clear_ecn(packet: &mut [u8]) -> bool {
    change_traffic_class(packet, |class| class & !3)
}

fn change_traffic_class(packet: &mut [u8], change: impl Fn(u8) -> u8) -> bool {
    let Some(ip) = IpPacket::parse(packet) else {
        return false;
    };
    let old = ip.dscp() << 2 | ip.ecn() as u8;
    let new = change(old);
    if new == old {
        return false;
    }
    if ip.version() == 4 {
        replace(packet, 1, &[new], 0, IPV4_CHECKSUM);
    } else if let [b0, b1, ..] = packet {
        *b0 = *b0 & 0xf0 | new >> 4;
        *b1 = *b1 & 0x0f | new << 4;
    }
    true
}

/// Which end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where it comes from.
    Source,
    Destination,
}

impl End {
    fn address_at(self) -> usize {
        match self {
            Self::Source => IPV4_SOURCE,
            Self::Destination => IPV4_DESTINATION,
        }
    }
}

/// Gives an IPv4 packet another address and port (TCP, UDP) at one end, or another identifier
/// (ICMP echo, which has only one, whatever the end); `sum` is what its transport checksum
/// holds. A packet that is cut short, as ICMP errors quote them, is changed as far as it goes.
///
/// `false`, and nothing is changed, when it is no unfragmented IPv4 packet of these protocols
/// with its ports.
pub fn set_end(
    packet: &mut [u8],
    end: End,
    address: Ipv4Addr,
    port: u16,
    sum: TransportSum,
) -> bool {
    let Some(ip) = IpPacket::parse(packet).filter(|ip| ip.version() == 4) else {
        return false;
    };
    let (start, protocol) = (ip.header_len(), ip.protocol());
    let port_at = match (ip.ports(), ip.icmp_echo(), end) {
        (Some(_), _, End::Source) => start,
        (Some(_), _, End::Destination) => start + 2,
        (None, Some(_), _) if protocol == ICMP => start + 4,
        _ => return false,
    };
    let address_at = end.address_at();
    let sum_at = start + checksum_offset(protocol).unwrap_or_default();
    // UDP over IPv4 may go without (RFC 768).
    let has_sum = protocol != UDP || get(packet, sum_at) != Some(0);
    if has_sum && protocol != ICMP {
        match sum {
            TransportSum::Complete => update(packet, address_at, &address.octets(), 0, sum_at),
            TransportSum::Partial => {
                // The same arithmetic on a sum that is not complemented.
                put(packet, sum_at, !get(packet, sum_at).unwrap_or_default());
                update(packet, address_at, &address.octets(), 0, sum_at);
                put(packet, sum_at, !get(packet, sum_at).unwrap_or_default());
            }
        }
    }
    replace(packet, address_at, &address.octets(), 0, IPV4_CHECKSUM);
    let port = port.to_be_bytes();
    if has_sum && sum == TransportSum::Complete {
        replace(packet, port_at, &port, start, sum_at);
    } else {
        write(packet, port_at, &port);
    }
    if protocol == UDP && has_sum && get(packet, sum_at) == Some(0) {
        put(packet, sum_at, 0xffff); // zero means "none", and both are the same number
    }
    true
}

/// Gives an ICMP message over IPv4 another address at one end; `false` when it is none.
pub fn set_icmp_address(packet: &mut [u8], end: End, address: Ipv4Addr) -> bool {
    let is_icmp =
        IpPacket::parse(packet).is_some_and(|ip| ip.protocol() == ICMP && ip.version() == 4);
    if is_icmp {
        replace(
            packet,
            end.address_at(),
            &address.octets(),
            0,
            IPV4_CHECKSUM,
        );
    }
    is_icmp
}

/// Computes the checksum of an ICMP message over IPv4 anew, after what it quotes was changed.
pub fn refresh_icmp_checksum(packet: &mut [u8]) {
    let Some(ip) = IpPacket::parse(packet).filter(|ip| ip.protocol() == ICMP) else {
        return;
    };
    let (start, end) = (ip.header_len(), ip.total_len().min(packet.len()));
    let Some(at) = checksum_offset(ICMP).map(|offset| start + offset) else {
        return;
    };
    put(packet, at, 0);
    let sum = checksum::checksum(packet.get(start..end).unwrap_or_default());
    put(packet, at, sum);
}

/// Where a transport header has its checksum.
fn checksum_offset(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        ICMP | ICMPV6 => Some(2),
        _ => None,
    }
}

/// Writes bytes and updates the checksum at `sum_at`, which covers them; its first word is at
/// `origin`. What lies behind the packet's end is left out.
pub(crate) fn replace(packet: &mut [u8], at: usize, new: &[u8], origin: usize, sum_at: usize) {
    update(packet, at, new, origin, sum_at);
    write(packet, at, new);
}

/// Updates a checksum for bytes that are going to be written.
fn update(packet: &mut [u8], at: usize, new: &[u8], origin: usize, sum_at: usize) {
    let Some(mut sum) = get(packet, sum_at) else {
        return;
    };
    for (position, new) in (at..).zip(new) {
        let Some(old) = packet.get(position) else {
            break;
        };
        // A byte is the upper or lower half of its word.
        let shift = if (position - origin).is_multiple_of(2) {
            8
        } else {
            0
        };
        sum = checksum::updated(sum, u16::from(*old) << shift, u16::from(*new) << shift);
    }
    put(packet, sum_at, sum);
}

fn write(packet: &mut [u8], at: usize, new: &[u8]) {
    for (to, from) in packet.iter_mut().skip(at).zip(new) {
        *to = *from;
    }
}

fn get(packet: &[u8], at: usize) -> Option<u16> {
    let bytes = packet.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

fn put(packet: &mut [u8], at: usize, value: u16) {
    if let Some(field) = packet.get_mut(at..).and_then(|p| p.first_chunk_mut::<2>()) {
        *field = value.to_be_bytes();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::ip::Ecn;
    use proptest::prelude::*;

    /// An IPv4 packet with right checksums.
    pub(crate) fn ipv4(protocol: u8, transport: &[u8]) -> Vec<u8> {
        let total = (20 + transport.len()) as u16;
        let [l0, l1] = total.to_be_bytes();
        let mut p = vec![
            0x45, 0x03, l0, l1, 0x12, 0x34, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 7, 192, 0, 2, 9,
        ];
        let sum = checksum::checksum(&p);
        put(&mut p, IPV4_CHECKSUM, sum);
        p.extend(transport);
        let at = 20 + checksum_offset(protocol).unwrap();
        put(&mut p, at, 0);
        let sum = pseudo(&p).bytes(&p[20..]).checksum();
        put(&mut p, at, sum);
        p
    }

    fn pseudo(p: &[u8]) -> checksum::Sum {
        let ip = IpPacket::parse(p).unwrap();
        match ip.protocol() {
            ICMP => checksum::Sum::new(),
            other => checksum::pseudo_header(
                ip.source(),
                ip.destination(),
                other,
                ip.payload().len() as u32,
            ),
        }
    }

    pub(crate) fn is_sound(p: &[u8]) -> bool {
        checksum::checksum(&p[..20]) == 0 && pseudo(p).bytes(&p[20..]).checksum() == 0
    }

    fn tcp_header() -> Vec<u8> {
        let mut tcp = vec![0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 1, 0];
        tcp.resize(23, 0xab); // an odd length
        tcp
    }

    #[test]
    fn both_ends_of_all_three_protocols() {
        let udp = [0x30, 0x39, 0, 53, 0, 10, 0, 0, 1, 2].to_vec();
        let echo = [8, 0, 0, 0, 0x12, 0x34, 0, 1, 7].to_vec();
        for (protocol, transport) in [(TCP, tcp_header()), (UDP, udp), (ICMP, echo)] {
            for end in [End::Source, End::Destination] {
                let mut p = ipv4(protocol, &transport);
                assert!(is_sound(&p));
                let to = Ipv4Addr::new(203, 0, 113, 77);
                assert!(set_end(&mut p, end, to, 0xfedc, TransportSum::Complete));
                assert!(is_sound(&p), "{protocol} {end:?}");
                let ip = IpPacket::parse(&p).unwrap();
                let (address, port) = match end {
                    End::Source => (ip.source(), ip.flow().source_port),
                    End::Destination => (ip.destination(), ip.flow().destination_port),
                };
                assert_eq!(address, to);
                let id = ip.icmp_echo().map(|(_, id, _)| id);
                assert_eq!(id.unwrap_or(port), 0xfedc);
            }
        }
    }

    #[test]
    fn a_partial_checksum_stays_that_of_the_pseudo_header() {
        let mut p = ipv4(TCP, &tcp_header());
        let partial = pseudo(&p).folded();
        put(&mut p, 36, partial);
        let to = Ipv4Addr::new(203, 0, 113, 77);
        assert!(set_end(&mut p, End::Source, to, 9, TransportSum::Partial));
        assert_eq!(get(&p, 36), Some(pseudo(&p).folded()));
        assert_eq!(IpPacket::parse(&p).unwrap().ports(), Some((9, 80)));
    }

    #[test]
    fn udp_without_checksum_stays_without() {
        let mut p = ipv4(UDP, &[0x30, 0x39, 0, 53, 0, 8, 0, 0]);
        put(&mut p, 26, 0);
        let to = Ipv4Addr::new(1, 2, 3, 4);
        assert!(set_end(&mut p, End::Source, to, 9, TransportSum::Complete));
        assert_eq!(get(&p, 26), Some(0));
        assert_eq!(checksum::checksum(&p[..20]), 0);
    }

    #[test]
    fn codepoints() {
        let mut p = ipv4(UDP, &[0, 1, 0, 2, 0, 8, 0, 0]);
        assert!(clear_ecn(&mut p) && !clear_ecn(&mut p));
        assert!(set_dscp(&mut p, 46) && !set_dscp(&mut p, 46));
        assert!(is_sound(&p));
        assert_eq!(p[1], 0xb8);
        let mut p = vec![0x6b, 0xa1, 2, 3, 0, 0, 59, 64]; // class 0xba: DSCP 46, ECT(0)
        p.resize(40, 0);
        assert!(clear_ecn(&mut p));
        assert_eq!(p[..4], [0x6b, 0x81, 2, 3]);
        assert!(set_dscp(&mut p, 0));
        assert_eq!(p[..4], [0x60, 0x01, 2, 3]);
    }

    proptest! {
        #[test]
        fn sound_packets_stay_sound(
            protocol in prop::sample::select(vec![TCP, UDP]), body in proptest::collection::vec(any::<u8>(), 20..100),
            address: u32, port: u16, source: bool, dscp in 0u8..64,
        ) {
            let mut p = ipv4(protocol, &body);
            let end = if source { End::Source } else { End::Destination };
            prop_assert!(set_end(&mut p, end, address.into(), port, TransportSum::Complete));
            clear_ecn(&mut p);
            set_dscp(&mut p, dscp);
            prop_assert!(is_sound(&p));
            let ip = IpPacket::parse(&p).unwrap();
            prop_assert_eq!((ip.dscp(), ip.ecn()), (dscp, Ecn::NotEct));
        }

        #[test]
        fn arbitrary_bytes_are_survived(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..90), first in prop::sample::select(vec![0x45u8, 0x4f, 0x60, 0x00]),
            protocol in prop::sample::select(vec![ICMP, TCP, UDP, 44, ICMPV6]), partial: bool, port: u16, source: bool,
        ) {
            if let Some(b) = bytes.first_mut() { *b = first; }
            if let Some(b) = bytes.get_mut(9) { *b = protocol; }
            let before = bytes.clone();
            let end = if source { End::Source } else { End::Destination };
            let sum = if partial { TransportSum::Partial } else { TransportSum::Complete };
            if !set_end(&mut bytes, end, Ipv4Addr::LOCALHOST, port, sum) {
                prop_assert_eq!(&bytes, &before);
            }
            refresh_icmp_checksum(&mut bytes);
            let _ = set_dscp(&mut bytes, 1);
            if clear_ecn(&mut bytes) {
                prop_assert_eq!(IpPacket::parse(&bytes).unwrap().ecn(), Ecn::NotEct);
            }
            prop_assert_eq!(bytes.len(), before.len());
        }
    }
}

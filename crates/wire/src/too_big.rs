//! Writing the ICMP errors that a router sends about a packet too large for its next line:
//! "fragmentation needed" (RFC 1191 section 4) and "packet too big" (RFC 4443 section 3.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum;
use crate::ip::{ICMP, ICMPV6, IpPacket};

/// Most bytes of such an error over IPv4 (RFC 1812 section 4.3.2.3).
const LARGEST_V4: usize = 576;
/// Most bytes of such an error over IPv6: the least MTU (RFC 4443 section 2.4 c).
const LARGEST_V6: usize = 1280;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;
/// Hop limit of a router's own packets (IANA's default).
const HOPS: u8 = 64;
/// Internetwork control (RFC 1812 section 4.3.2.5).
const PRECEDENCE: u8 = 0xc0;

/// The error, from the router's address `from`, that limits the sender of `packet` to `mtu` bytes; `None` when no error
/// may be sent about it (RFC 1122 section 3.2.2, RFC 4443 section 2.4 e), or `from` is of the other version.
pub fn too_big(packet: &[u8], mtu: u16, from: IpAddr) -> Option<Vec<u8>> {
    let ip = IpPacket::parse(packet)?;
    if ip.is_icmp_error() {
        return None;
    }
    match (from, ip.source(), ip.destination()) {
        (IpAddr::V4(from), IpAddr::V4(to), IpAddr::V4(destination)) => {
            let answers = is_host(to) && is_answered_about(destination) && !ip.is_later_fragment();
            answers.then(|| too_big_v4(packet, mtu, from, to))
        }
        (IpAddr::V6(from), IpAddr::V6(to), IpAddr::V6(_)) => {
            // About multicast, too: that is this error's exception.
            let answers = !to.is_unspecified() && !to.is_multicast();
            answers.then(|| too_big_v6(packet, mtu, from, to))
        }
        _ => None,
    }
}

/// Whether an IPv4 source address belongs to a single other host.
fn is_host(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    first != 0 && first < 224 && !address.is_loopback()
}

fn is_answered_about(destination: Ipv4Addr) -> bool {
    !destination.is_multicast() && !destination.is_broadcast()
}

fn too_big_v4(packet: &[u8], mtu: u16, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let quoted = quote(packet, LARGEST_V4 - IPV4_HEADER - ICMP_HEADER);
    let [m0, m1] = mtu.to_be_bytes();
    // Destination unreachable, fragmentation needed and DF set.
    let mut icmp = vec![3, 4, 0, 0, 0, 0, m0, m1];
    icmp.extend_from_slice(quoted);
    write_checksum(&mut icmp, 2, checksum::Sum::new());

    let [l0, l1] = ((IPV4_HEADER + icmp.len()) as u16).to_be_bytes();
    let mut out = vec![0x45, PRECEDENCE, l0, l1, 0, 0, 0x40, 0, HOPS, ICMP, 0, 0];
    out.extend(from.octets());
    out.extend(to.octets());
    write_checksum(&mut out, 10, checksum::Sum::new());
    out.extend(icmp);
    out
}

fn too_big_v6(packet: &[u8], mtu: u16, from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let quoted = quote(packet, LARGEST_V6 - IPV6_HEADER - ICMP_HEADER);
    let [m0, m1] = mtu.to_be_bytes();
    let mut icmp = vec![2, 0, 0, 0, 0, 0, m0, m1];
    icmp.extend_from_slice(quoted);
    let length = icmp.len() as u16;
    let pseudo = checksum::pseudo_header(from.into(), to.into(), ICMPV6, length.into());
    write_checksum(&mut icmp, 2, pseudo);

    let [l0, l1] = length.to_be_bytes();
    let mut out = vec![0x60, 0, 0, 0, l0, l1, ICMPV6, HOPS];
    out.extend(from.octets());
    out.extend(to.octets());
    out.extend(icmp);
    out
}

fn quote(packet: &[u8], most: usize) -> &[u8] {
    packet.get(..most).unwrap_or(packet)
}

fn write_checksum(bytes: &mut [u8], at: usize, pseudo: checksum::Sum) {
    let sum = pseudo.bytes(bytes).checksum();
    if let Some(field) = bytes.get_mut(at..).and_then(|b| b.first_chunk_mut::<2>()) {
        *field = sum.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::ip::{TCP, UDP};
    use proptest::prelude::*;

    fn v4(protocol: u8, size: usize, edit: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let [l0, l1] = (size as u16).to_be_bytes();
        let mut p = vec![0x45, 0, l0, l1, 0, 1, 0x40, 0, 64, protocol, 0, 0];
        p.extend([10, 0, 0, 1, 192, 0, 2, 9]);
        p.resize(size, 0x5a);
        edit(&mut p);
        p
    }

    fn v6(next: u8, size: usize, source: &str) -> Vec<u8> {
        let [l0, l1] = ((size - 40) as u16).to_be_bytes();
        let mut p = vec![0x60, 0, 0, 0, l0, l1, next, 64];
        p.extend(source.parse::<Ipv6Addr>().unwrap().octets());
        p.extend("fd00:0:0:1::2".parse::<Ipv6Addr>().unwrap().octets());
        p.resize(size, 1);
        p
    }

    fn router(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn fragmentation_needed() {
        let packet = v4(TCP, 1500, |_| {});
        let error = too_big(&packet, 1400, router("10.0.0.2")).unwrap();
        let ip = IpPacket::parse(&error).unwrap();
        assert_eq!((error.len(), ip.total_len()), (576, 576));
        assert_eq!(checksum::checksum(&error[..20]), 0);
        assert_eq!(checksum::checksum(ip.payload()), 0);
        assert_eq!(
            (ip.source(), ip.destination()),
            (router("10.0.0.2"), router("10.0.0.1"))
        );
        assert_eq!(error[20..22], [3, 4]);
        assert_eq!(error[24..28], [0, 0, 0x05, 0x78]);
        assert_eq!(error[28..], packet[..548]);
    }

    #[test]
    fn packet_too_big() {
        let packet = v6(TCP, 1500, "fd00:0:0:1::1");
        let error = too_big(&packet, 1400, router("fd00:0:0:1::2")).unwrap();
        let ip = IpPacket::parse(&error).unwrap();
        assert_eq!(
            (error.len(), ip.total_len(), ip.protocol()),
            (1280, 1280, ICMPV6)
        );
        let pseudo = checksum::pseudo_header(ip.source(), ip.destination(), ICMPV6, 1240);
        assert_eq!(pseudo.bytes(ip.payload()).checksum(), 0);
        assert_eq!(error[40..42], [2, 0]);
        assert_eq!(error[44..48], [0, 0, 0x05, 0x78]);
        assert_eq!(error[48..], packet[..1232]);
    }

    #[test]
    fn about_some_packets_none_is_sent() {
        let from = router("10.0.0.2");
        let sent = |p: &[u8]| too_big(p, 1000, from).is_some();
        assert!(sent(&v4(UDP, 1500, |_| {})));
        assert!(sent(&v4(ICMP, 1500, |p| p[20] = 8)), "an echo is no error");
        for kind in [3, 11, 12] {
            assert!(!sent(&v4(ICMP, 1500, |p| p[20] = kind)), "{kind}");
        }
        assert!(!sent(&v4(UDP, 1500, |p| p[7] = 7)), "a later fragment");
        assert!(sent(&v4(UDP, 1500, |p| p[6] = 0x20)), "the first fragment");
        for destination in [224, 239] {
            assert!(!sent(&v4(UDP, 1500, |p| p[16] = destination)));
        }
        for source in [0, 127, 224, 255] {
            assert!(!sent(&v4(UDP, 1500, |p| p[12] = source)));
        }
        assert!(too_big(&v6(TCP, 1500, "fd00::1"), 1400, from).is_none());
        let from = router("fd00::2");
        assert!(too_big(&v6(ICMPV6, 1500, "fd00::1"), 1400, from).is_none());
        assert!(too_big(&v6(TCP, 1500, "::"), 1400, from).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..1500), is_v6: bool, mtu: u16) {
            if let Some(b) = bytes.first_mut() { *b = if is_v6 { 0x60 } else { 0x45 }; }
            let from = router(if is_v6 { "fd00::2" } else { "10.0.0.2" });
            if let Some(error) = too_big(&bytes, mtu, from) {
                let ip = IpPacket::parse(&error).unwrap();
                prop_assert_eq!(ip.total_len(), error.len());
                prop_assert_eq!(ip.source(), from);
                prop_assert!(error.len() <= 1280);
            }
        }
    }
}

//! Packets whole, cut into fragments, and of arbitrary bytes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;

fn udp_v4(tos: u8, fragment: u16) -> Vec<u8> {
    let mut p = vec![
        0x45, tos, 0, 30, 0x12, 0x34, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    p[6..8].copy_from_slice(&fragment.to_be_bytes());
    let sum = checksum::checksum(&p);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p.extend([0x30, 0x39, 0, 53, 0, 10, 0, 0, 1, 2]);
    p
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut p = vec![0x60, 0x20, 0, 0, 0, payload.len() as u8, next, 64];
    p.extend(Ipv6Addr::LOCALHOST.octets());
    p.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
    p.extend(payload);
    p
}

#[test]
fn an_ipv4_packet() {
    let bytes = udp_v4(0xb8, 0);
    let p = IpPacket::parse(&bytes).unwrap();
    assert_eq!(
        (p.version(), p.header_len(), p.total_len(), p.protocol()),
        (4, 20, 30, UDP)
    );
    assert_eq!((p.dscp(), p.ecn(), p.hop_limit()), (46, Ecn::NotEct, 64));
    assert_eq!(p.ports(), Some((12345, 53)));
    assert_eq!(p.flow().destination, "10.0.0.2".parse::<IpAddr>().unwrap());
    assert_eq!(p.payload().len(), 10);
}

#[test]
fn fragments_have_no_ports() {
    for fragment in [0x2000, 0x0001] {
        let bytes = udp_v4(0, fragment);
        let p = IpPacket::parse(&bytes).unwrap();
        assert!(p.is_fragment());
        assert_eq!((p.ports(), p.flow().source_port), (None, 0));
    }
}

#[test]
fn ipv6_behind_extension_headers() {
    let udp = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
    let mut payload = vec![43, 0, 0, 0, 0, 0, 0, 0]; // hop-by-hop, then routing
    payload.extend([UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend(udp);
    let bytes = v6(0, &payload);
    let p = IpPacket::parse(&bytes).unwrap();
    assert_eq!((p.version(), p.protocol(), p.header_len()), (6, UDP, 64));
    assert_eq!((p.ports(), p.ecn()), (Some((12345, 53)), Ecn::Ect0));

    let mut payload = vec![UDP, 0, 0, 0x08, 0, 0, 0, 1]; // fragment header, offset 1
    payload.extend(udp);
    let bytes = v6(44, &payload);
    let p = IpPacket::parse(&bytes).unwrap();
    assert_eq!(
        (p.is_fragment(), p.protocol(), p.ports()),
        (true, UDP, None)
    );
}

#[test]
fn an_echo_has_its_identifier_as_port() {
    let bytes = v6(ICMPV6, &[128, 0, 0, 0, 0x12, 0x34, 0, 7]);
    let p = IpPacket::parse(&bytes).unwrap();
    assert_eq!(p.icmp_echo(), Some((128, 0x1234, 7)));
    assert_eq!(
        (p.flow().source_port, p.flow().destination_port),
        (128, 0x1234)
    );
}

#[test]
fn marks_only_who_understands_and_keeps_the_checksum() {
    for (tos, marked, after) in [
        (0, false, Ecn::NotEct),
        (1, true, Ecn::Ce),
        (2, true, Ecn::Ce),
        (3, true, Ecn::Ce),
    ] {
        let mut p = udp_v4(tos | 0xb8, 0);
        assert_eq!(set_ce(&mut p), marked);
        assert_eq!(checksum::checksum(&p[..20]), 0);
        let p = IpPacket::parse(&p).unwrap();
        assert_eq!((p.ecn(), p.dscp()), (after, 46));
    }
    let mut p = v6(UDP, &[0; 8]);
    assert!(set_ce(&mut p));
    assert_eq!(IpPacket::parse(&p).unwrap().ecn(), Ecn::Ce);
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), version in 3u8..8) {
        if let Some(first) = bytes.first_mut() {
            *first = *first & 0x0f | version << 4;
        }
        if let Some(p) = IpPacket::parse(&bytes) {
            prop_assert!(p.header_len() <= bytes.len());
            prop_assert!(p.payload().len() <= bytes.len());
            let _ = (p.flow(), p.tcp_flags(), p.icmp_echo(), p.icmp_type(), p.dscp());
        }
        let marked = set_ce(&mut bytes);
        if let (true, Some(p)) = (marked, IpPacket::parse(&bytes)) {
            prop_assert_eq!(p.ecn(), Ecn::Ce);
        }
    }
}

//! What an answer or a quotation says of its probe.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;

fn set(v6: bool, transport: Transport, session: u32) -> ProbeSet {
    let (source, destination) = if v6 {
        ("fd00::1", "fd00::2")
    } else {
        ("10.0.0.1", "192.0.2.9")
    };
    ProbeSet {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        transport,
        session,
    }
}

const TRANSPORTS: [Transport; 3] = [
    Transport::Icmp { identifier: 0x4321 },
    Transport::Udp {
        source_port: 40_000,
        destination_port: 33_434,
    },
    Transport::Tcp {
        source_port: 50_000,
        destination_port: 443,
    },
];

fn probe(number: u16, flow: u16, size_bytes: u16) -> Numbered {
    Numbered {
        number,
        hop_limit: 5,
        flow,
        traffic_class: 0xb9,
        size_bytes,
        dont_fragment: true,
        ask_ecn: false,
        fill: 0,
    }
}

fn is_sound(packet: &[u8]) -> bool {
    let ip = IpPacket::parse(packet).unwrap();
    let sum = if ip.protocol() == ICMP {
        Sum::new()
    } else {
        checksum::pseudo_header(
            ip.source(),
            ip.destination(),
            ip.protocol(),
            ip.payload().len() as u32,
        )
    };
    sum.bytes(ip.payload()).checksum() == 0
}

proptest! {
    #[test]
    fn a_probe_is_known_by_its_quotation(
        v6: bool, which in 0usize..3, session: u32, number in 1..=MAX_NUMBER, flow in 0..FLOWS, size in 0u16..1600, quoted in 8usize..200,
    ) {
        let set = set(v6, TRANSPORTS[which], session);
        let packet = set.write(&probe(number, flow, size));
        let ip = IpPacket::parse(&packet).unwrap();
        prop_assert!(is_sound(&packet));
        prop_assert_eq!(ip.total_len(), packet.len());
        prop_assert_eq!((ip.hop_limit(), ip.traffic_class()), (5, 0xb9));
        prop_assert!(packet.len() >= set.min_bytes().into());
        let quote = &packet[..packet.len().min(set.ip_header_bytes() + quoted)];
        prop_assert_eq!(set.quoted(quote), Some(number));
        let other = ProbeSet { session: session ^ 0x5555_0000, ..set };
        if which == 2 {
            prop_assert_eq!(other.quoted(quote), None);
        }
    }

    #[test]
    fn the_flow_is_constant(v6: bool, which in 0usize..3, session: u32, one in 1..=MAX_NUMBER, two in 1..=MAX_NUMBER, flow in 0..FLOWS) {
        let set = set(v6, TRANSPORTS[which], session);
        let [a, b] = [one, two].map(|n| set.write(&probe(n, flow, 80)));
        let header = set.ip_header_bytes();
        // Ports, or type, code and checksum: what routers share by.
        prop_assert_eq!(&a[header..header + 4], &b[header..header + 4]);
        if v6 {
            prop_assert_eq!(&a[..4], &b[..4]);
        }
        let other = set.write(&probe(one, flow ^ 1, 80));
        prop_assert_ne!(&a[header..header + 4], &other[header..header + 4]);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..120), which in 0usize..3, v6: bool, protocol in 0u8..60) {
        let set = set(v6, TRANSPORTS[which], 7);
        let _ = (set.quoted(&bytes), set.answered(protocol, &bytes), set.answered(set.protocol(), &bytes));
    }
}

#[test]
fn answers_name_their_probe() {
    for v6 in [false, true] {
        let echo = set(v6, TRANSPORTS[0], 9);
        let packet = echo.write(&probe(77, 2, 80));
        let header = echo.ip_header_bytes();
        let request = Echo::parse(echo.version(), &packet[header..]).unwrap();
        let reply = Echo {
            kind: Kind::Reply,
            ..request
        }
        .write(echo.version());
        let named = |flow| Some(Named { number: 77, flow });
        assert_eq!(echo.answered(echo.protocol(), &reply), named(2));
        assert_eq!(echo.answered(TCP, &reply), None);
        let tcp = set(v6, TRANSPORTS[2], 0xffff_fff0);
        let mut segment = vec![0; 20];
        segment[..4].copy_from_slice(&[443u16, 50_001].map(u16::to_be_bytes).concat());
        segment[8..12].copy_from_slice(&0xffff_fff0u32.wrapping_add(78).to_be_bytes());
        assert_eq!(tcp.answered(TCP, &segment), named(1));
        segment[1] = 80;
        assert_eq!(tcp.answered(TCP, &segment), None);
        let reset = tcp.reset(77, 1).unwrap();
        assert!(is_sound(&reset));
        assert_eq!(IpPacket::parse(&reset).unwrap().tcp_flags(), Some(ip::RST));
    }
}

#[test]
fn a_nat_may_change_ports_and_checksum() {
    let udp = set(false, TRANSPORTS[1], 9);
    let mut packet = udp.write(&probe(77, 0, 60));
    packet[20..22].copy_from_slice(&1024u16.to_be_bytes());
    packet[26] ^= 0x55;
    assert_eq!(udp.quoted(&packet), Some(77), "by the mark");
    let mut packet = udp.write(&probe(77, 0, 60));
    packet.truncate(28);
    packet[26] ^= 0x55;
    assert_eq!(udp.quoted(&packet), Some(77), "by the identification");
}

#[test]
fn what_fills_a_probe_leaves_its_checksum_and_its_name_alone() {
    for v6 in [false, true] {
        for transport in [TRANSPORTS[0], TRANSPORTS[1]] {
            let set = set(v6, transport, 0x1234_5678);
            let [zeros, ones] = [0, 0xff].map(|fill| {
                set.write(&Numbered {
                    fill,
                    ..probe(9, 0, 200)
                })
            });
            assert!(is_sound(&zeros) && is_sound(&ones));
            assert_eq!(set.quoted(&ones), Some(9));
            let filled = ones.iter().filter(|byte| **byte == 0xff).count();
            let least = 200 - usize::from(set.min_bytes());
            assert!(filled >= least, "{filled} of {least}");
            // What routers share traffic by is the same: the first four bytes above IP.
            let at = set.ip_header_bytes();
            assert_eq!(zeros[at..at + 4], ones[at..at + 4]);
        }
    }
}

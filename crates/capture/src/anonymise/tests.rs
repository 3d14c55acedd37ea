//! What is copied of packets of every kind, and what never is.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_wire::checksum::{checksum, pseudo_header};
use proptest::prelude::*;

use super::*;
use crate::packet::{Packet, Transport, decode};
use crate::testing::{Built, LINUX_SYN, ipv4, raw};

/// LINKTYPE_ETHERNET and LINKTYPE_RAW of libpcap.
const ETHERNET: u16 = 1;
const RAW: u16 = 101;
/// What payload is made of, and no header has.
const SECRET: &[u8] = b"the password is swordfish";

fn frame(link: u16, bytes: &[u8]) -> Frame<'_> {
    Frame {
        unix_ns: 7,
        link,
        bytes,
        original_bytes: bytes.len() as u32,
    }
}

fn anonymous(link: u16, bytes: &[u8]) -> Vec<u8> {
    let mut anonymiser = Anonymiser::new(b"a key");
    let of = anonymiser.frame(&frame(link, bytes));
    assert_eq!((of.unix_ns, of.link), (7, link));
    assert_eq!(of.original_bytes as usize, bytes.len());
    of.bytes.to_vec()
}

fn other(address: [u8; 4]) -> [u8; 4] {
    Addresses::new(b"a key").v4(address)
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for field in [ports[0], ports[1], 8 + payload.len() as u16, 0x1234] {
        datagram.extend(field.to_be_bytes());
    }
    [&datagram, payload].concat()
}

fn in_ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let ends = [0, 0x1b, 0x21, 1, 2, 3, 0, 0x1b, 0x21, 4, 5, 6];
    [&ends[..], &kind.to_be_bytes(), payload].concat()
}

const HOSTS: [[u8; 4]; 2] = [[198, 51, 100, 7], [203, 0, 113, 9]];

#[test]
fn a_segment_keeps_its_header_and_its_checksums_are_right() {
    let built = Built {
        options: &LINUX_SYN,
        ..Built::default()
    };
    let packet = raw(&built);
    let made = anonymous(RAW, &packet);
    assert_eq!(made.len(), packet.len());
    assert_eq!(made[12..16], other([10, 0, 0, 1]));
    assert_eq!(made[20..36], packet[20..36]);
    assert_eq!(made[40..60], LINUX_SYN);
    assert_eq!(checksum(&made[..20]), 0);
    let pseudo = pseudo_header(
        other([10, 0, 0, 1]).into(),
        other([10, 0, 0, 2]).into(),
        6,
        40,
    );
    assert_eq!(pseudo.bytes(&made[20..]).checksum(), 0);
}

#[test]
fn payload_is_cut_whatever_it_is() {
    let tcp = [&raw(&Built::default()), SECRET].concat();
    let mut tcp = tcp;
    tcp[3] += SECRET.len() as u8;
    let quoted = [
        &[3, 3, 0, 0, 0, 0, 0, 0][..],
        &ipv4(17, HOSTS[0], HOSTS[1], &udp([5, 53], SECRET)),
    ]
    .concat();
    let packets = [
        (tcp, 40),
        (ipv4(17, HOSTS[0], HOSTS[1], &udp([40_000, 53], SECRET)), 28),
        (
            ipv4(17, HOSTS[0], HOSTS[1], &udp([40_000, 4789], SECRET)),
            28,
        ),
        (
            ipv4(
                1,
                HOSTS[0],
                HOSTS[1],
                &[&[8, 0, 0, 0, 0, 1, 0, 1], SECRET].concat(),
            ),
            28,
        ),
        (ipv4(1, HOSTS[0], HOSTS[1], &quoted), 56),
        (
            ipv4(2, HOSTS[0], HOSTS[1], &[&[0x22, 0, 0, 0], SECRET].concat()),
            24,
        ),
        (
            ipv4(
                47,
                HOSTS[0],
                HOSTS[1],
                &[&[0, 0, 0x12, 0x34], SECRET].concat(),
            ),
            24,
        ),
        (
            ipv4(
                50,
                HOSTS[0],
                HOSTS[1],
                &[&[0, 0, 0, 1, 0, 0, 0, 2], SECRET].concat(),
            ),
            28,
        ),
        (
            ipv4(132, HOSTS[0], HOSTS[1], &[&[1; 12], SECRET].concat()),
            32,
        ),
        (ipv4(200, HOSTS[0], HOSTS[1], SECRET), 20),
    ];
    for (packet, length) in packets {
        let made = anonymous(RAW, &packet);
        assert_eq!(made.len(), length, "{packet:02x?}");
        // Padding of the frame, and what lies in tunnels.
        let framed = in_ethernet(0x0800, &[&packet, SECRET].concat());
        assert_eq!(anonymous(ETHERNET, &framed).len(), 14 + length);
        let gre = [&[0x80, 0, 0x65, 0x58, 0, 0, 0, 0][..], &framed].concat();
        let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &framed].concat();
        for (inner, headers) in [
            (ipv4(47, HOSTS[0], HOSTS[1], &gre), 20 + 8 + 14),
            (
                ipv4(17, HOSTS[0], HOSTS[1], &udp([4000, 4789], &vxlan)),
                20 + 16 + 14,
            ),
            (ipv4(4, HOSTS[0], HOSTS[1], &packet), 20),
        ] {
            let made = anonymous(RAW, &inner);
            assert_eq!(made.len(), headers + length);
            assert!(!HOSTS.iter().any(|host| holds(&made, host)), "{made:02x?}");
            assert!(!holds(&made, &[0, 0x1b, 0x21]));
        }
    }
}

#[test]
fn of_what_is_not_understood_nothing_is_copied() {
    assert!(anonymous(147, SECRET).is_empty());
    assert!(anonymous(RAW, SECRET).is_empty());
    assert_eq!(anonymous(ETHERNET, &in_ethernet(0x1234, SECRET)).len(), 14);
    assert_eq!(anonymous(ETHERNET, &in_ethernet(25, SECRET)).len(), 14);
    // A later fragment has no header of what it carries.
    let mut fragment = ipv4(17, HOSTS[0], HOSTS[1], SECRET);
    fragment[7] = 1;
    assert_eq!(anonymous(RAW, &fragment).len(), 20);
}

#[test]
fn addresses_within_are_replaced_as_those_outside() {
    let quoted = ipv4(6, HOSTS[0], HOSTS[1], &[1, 187, 200, 0, 9, 9, 9, 9]);
    let error = [&[11, 0, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
    let made = anonymous(RAW, &ipv4(1, [198, 51, 100, 1], HOSTS[0], &error));
    assert_eq!(made.len(), 20 + 8 + 28);
    assert_eq!(made[16..20], other(HOSTS[0]));
    assert_eq!(made[40..44], other(HOSTS[0]));
    assert_eq!(made[44..48], other(HOSTS[1]));
    assert_eq!(made[48..56], quoted[20..28]);
    assert_eq!(checksum(&made[20..]), 0);
    let ask = [
        &[0, 1, 8, 0, 6, 4, 0, 1][..],
        &[0, 0x1b, 0x21, 4, 5, 6],
        &HOSTS[0],
        &[0; 6],
        &HOSTS[1],
        SECRET,
    ]
    .concat();
    let made = anonymous(ETHERNET, &in_ethernet(0x0806, &ask));
    assert_eq!(made.len(), 14 + 28);
    assert_eq!(made[22..28], made[6..12]);
    assert_eq!(made[28..32], other(HOSTS[0]));
    assert_eq!(made[32..38], [0; 6]);
    assert_eq!(made[38..42], other(HOSTS[1]));
}

#[test]
fn a_neighbour_of_ipv6_is_not_named() {
    let address = [
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56,
    ];
    let group = [
        0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 0x56,
    ];
    let asks = [
        &[135, 0, 0, 0, 0, 0, 0, 0][..],
        &address,
        &[1, 1, 0, 0x1b, 0x21, 4, 5, 6],
    ]
    .concat();
    let packet = [
        &[0x60, 0, 0, 0, 0, 32, 58, 255][..],
        &address,
        &group,
        &asks,
    ]
    .concat();
    let made = anonymous(ETHERNET, &in_ethernet(0x86dd, &packet));
    assert_eq!(made.len(), 14 + 40 + 32);
    assert_eq!(made[22..38], made[62..78]);
    assert!(!holds(&made, &[0x12, 0x34, 0x56]), "{made:02x?}");
    assert!(!holds(&made, &[0, 0x1b, 0x21]));
    let mut of = Addresses::new(b"a key");
    let pseudo = pseudo_header(of.v6(address).into(), of.v6(group).into(), 58, 32);
    assert_eq!(pseudo.bytes(&made[54..]).checksum(), 0);
}

#[test]
fn options_lose_keys_and_addresses() {
    // Fast Open with a cookie, MPTCP with a key, SACK permitted.
    let options = [
        34, 6, 9, 9, 9, 9, 30, 12, 0, 0x81, 9, 9, 9, 9, 9, 9, 9, 9, 4, 2,
    ];
    let built = Built {
        options: &options,
        ..Built::default()
    };
    let made = anonymous(RAW, &raw(&built));
    assert_eq!(
        made[40..],
        [
            34, 6, 0, 0, 0, 0, 30, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 2
        ]
    );
}

#[test]
fn frames_of_wireless_lans_have_other_addresses_and_no_names() {
    let ends = [
        [0, 0x1b, 0x21, 1, 2, 3],
        [0, 0x1b, 0x21, 4, 5, 6],
        [0, 0x1b, 0x21, 7, 8, 9],
    ]
    .concat();
    let frame = |control: [u8; 2], carried: &[u8]| {
        [&control[..], &[0, 0], &ends, &[0, 0], carried].concat()
    };
    let segment = [
        &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..],
        &raw(&Built::default()),
        SECRET,
    ]
    .concat();
    let beacon = frame([0x80, 0], SECRET);
    let (data, encrypted) = (frame([8, 1], &segment), frame([8, 0x41], &segment));
    for (bytes, length) in [(beacon, 24), (data, 24 + 8 + 40), (encrypted, 24)] {
        let made = anonymous(105, &bytes);
        assert_eq!(made.len(), length);
        assert!(!holds(&made, &[0, 0x1b, 0x21]));
        // The card's report, here with a place and the flags of a check sequence, loses all but these.
        let radiotap = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[7; 8], &[0x10]].concat();
        let reported = [&radiotap[..], &bytes, &[9; 4]].concat();
        let mut anonymiser = Anonymiser::new(b"a key");
        let of = anonymiser.frame(&super::tests::frame(127, &reported));
        assert_eq!(of.bytes[..9], [0, 0, 9, 0, 2, 0, 0, 0, 0x10]);
        assert_eq!(of.bytes[9..], made);
        assert_eq!(of.original_bytes as usize, reported.len() - 8);
    }
}

/// What an analysis distinguishes packets by: protocol, numbers, flags, window and payload.
fn shape(packet: &Packet<'_>) -> [u32; 6] {
    let protocol = packet.network.map_or(0, |network| network.protocol);
    match packet.transport {
        Transport::Tcp(s) => [
            protocol.into(),
            s.seq,
            s.ack,
            s.flags.into(),
            s.window.into(),
            s.payload_bytes,
        ],
        _ => [protocol.into(), 0, 0, 0, 0, 0],
    }
}

proptest! {
    /// Nothing panics, and neither a copy nor a copy of it is longer.
    #[test]
    fn any_bytes_of_any_link(link in prop::sample::select(vec![0_u16, 1, 9, 50, 51, 101, 105, 113, 127, 276, 999]),
                             bytes in prop::collection::vec(any::<u8>(), 0..200), wire in 0_u32..3000) {
        let of = Frame { original_bytes: wire, ..frame(link, &bytes) };
        let mut anonymiser = Anonymiser::new(b"a key");
        let made = anonymiser.frame(&of).bytes.to_vec();
        prop_assert!(made.len() <= bytes.len());
        let again = Frame { original_bytes: wire, ..frame(link, &made) };
        prop_assert!(anonymiser.frame(&again).bytes.len() <= made.len());
    }

    /// In a damaged packet, what follows may be taken for a header, but payload is not copied unchanged.
    #[test]
    fn damaged_headers_bring_no_payload(damage in prop::collection::vec((0_usize..90, any::<u8>()), 0..4), which in 0_usize..4) {
        let quoted = ipv4(17, HOSTS[0], HOSTS[1], &udp([5, 53], SECRET));
        let framed = in_ethernet(0x0800, &quoted);
        let (gre, vxlan) = ([0x80, 0, 0x65, 0x58, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 7, 0]);
        let mut packet = in_ethernet(0x0800, &match which {
            0 => quoted,
            1 => ipv4(1, HOSTS[0], HOSTS[1], &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &quoted].concat()),
            2 => ipv4(47, HOSTS[0], HOSTS[1], &[&gre[..], &framed].concat()),
            _ => ipv4(17, HOSTS[0], HOSTS[1], &udp([4000, 4789], &[&vxlan[..], &framed].concat())),
        });
        let headers = packet.len() - SECRET.len();
        for (at, byte) in damage {
            packet[at % headers] = byte;
        }
        let made = anonymous(ETHERNET, &packet);
        prop_assert!(!holds(&made, SECRET), "{:02x?}", made);
    }

    /// A segment is the same to an analysis but for its addresses, and its payload is nowhere.
    #[test]
    fn segments_stay_what_they_are(seq: u32, ack: u32, flags: u8, window: u16, payload in 0_usize..1400) {
        let built = Built { seq, ack, flags, window, payload, ..Built::default() };
        let mut packet = in_ethernet(0x0800, &raw(&built));
        let headers = packet.len() - payload;
        packet[headers..].fill(0xa5);
        let made = anonymous(ETHERNET, &packet);
        prop_assert_eq!(made.len(), headers);
        let cut = Frame { original_bytes: packet.len() as u32, ..frame(ETHERNET, &made) };
        prop_assert_eq!(shape(&decode(&cut)), shape(&decode(&frame(ETHERNET, &packet))));
    }
}

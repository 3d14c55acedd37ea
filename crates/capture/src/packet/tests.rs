//! Headers of every kind that is read into.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::testing::{Built, ipv4, raw};

fn names(link: u16, bytes: &[u8]) -> (String, End) {
    let packet = decode(&Frame {
        unix_ns: 0,
        link,
        bytes,
        original_bytes: bytes.len() as u32,
    });
    let layers: Vec<&str> = packet
        .layers
        .to_vec()
        .iter()
        .map(|layer| layer.name())
        .collect();
    (layers.join(":"), packet.end)
}

fn syn() -> Vec<u8> {
    raw(&Built {
        payload: 10,
        ..Built::default()
    })
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), payload].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [
        &[0x60, 0, 0, 0][..],
        &length,
        &[next, 64],
        &[0; 15],
        &[1],
        &[0; 15],
        &[2],
        payload,
    ]
    .concat()
}

#[test]
fn every_link_and_tunnel() {
    let tcp = syn()[20..].to_vec();
    let udp = |port: u16, payload: &[u8]| {
        let length = (8 + payload.len() as u16).to_be_bytes();
        let udp = [
            &[0xc0, 0][..],
            &port.to_be_bytes(),
            &length,
            &[0, 0],
            payload,
        ]
        .concat();
        ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &udp)
    };
    let gre = [&[0x20, 0, 8, 0, 0, 0, 0, 9][..], &syn()].concat();
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(0x0800, &syn())].concat();
    let fragment6 = [&[6, 0, 0, 1, 0, 0, 0, 5][..], &tcp].concat();
    let cases: Vec<(u16, Vec<u8>, &str)> = vec![
        (1, ethernet(0x0800, &syn()), "eth:ip:tcp:http"),
        (
            1,
            ethernet(0x88a8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], &syn()].concat()),
            "eth:vlan:vlan:ip:tcp:http",
        ),
        (
            1,
            ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], &syn()].concat()),
            "eth:mpls:ip:tcp:http",
        ),
        (
            1,
            ethernet(
                0x8864,
                &[&[0x11, 0, 0, 1, 0, 52, 0, 0x21][..], &syn()].concat(),
            ),
            "eth:pppoe:ppp:ip:tcp:http",
        ),
        (1, ethernet(0x0806, &[0; 28]), "eth:arp"),
        (1, ethernet(38, &[0x42; 38]), "eth:llc"),
        (1, ethernet(0x86dd, &ipv6(6, &tcp)), "eth:ipv6:tcp:http"),
        (
            1,
            ethernet(
                0x86dd,
                &ipv6(
                    0,
                    &[&[60, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0][..], &tcp].concat(),
                ),
            ),
            "eth:ipv6:tcp:http",
        ),
        (
            1,
            ethernet(0x86dd, &ipv6(44, &fragment6)),
            "eth:ipv6:tcp:http",
        ),
        (
            1,
            ethernet(0x0800, &ipv4(4, [1; 4], [2; 4], &syn())),
            "eth:ip:ip:tcp:http",
        ),
        (
            1,
            ethernet(0x0800, &ipv4(41, [1; 4], [2; 4], &ipv6(6, &tcp))),
            "eth:ip:ipv6:tcp:http",
        ),
        (
            1,
            ethernet(0x0800, &ipv4(47, [1; 4], [2; 4], &gre)),
            "eth:ip:gre:ip:tcp:http",
        ),
        (
            1,
            ethernet(0x0800, &udp(4789, &vxlan)),
            "eth:ip:udp:vxlan:eth:ip:tcp:http",
        ),
        (1, ethernet(0x0800, &udp(53, &[0; 12])), "eth:ip:udp:dns"),
        (
            113,
            [
                &[0, 4, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0][..],
                &syn(),
            ]
            .concat(),
            "sll:ip:tcp:http",
        ),
        (
            276,
            [&[8, 0][..], &[0; 18], &syn()].concat(),
            "sll2:ip:tcp:http",
        ),
        (101, syn(), "raw:ip:tcp:http"),
        (0, [&[2, 0, 0, 0][..], &syn()].concat(), "null:ip:tcp:http"),
        (
            9,
            [&[0xff, 3, 0, 0x21][..], &syn()].concat(),
            "ppp:ip:tcp:http",
        ),
        (9, [&[0x21][..], &syn()].concat(), "ppp:ip:tcp:http"),
    ];
    for (link, bytes, expected) in cases {
        assert_eq!(names(link, &bytes), (expected.to_owned(), End::Whole));
    }
}

#[test]
fn only_the_first_fragment_has_ports() {
    let mut packet = syn();
    packet[6..8].copy_from_slice(&[0x20, 0]);
    assert_eq!(names(101, &packet).0, "raw:ip:tcp:http");
    packet[6..8].copy_from_slice(&[0x20, 5]);
    assert_eq!(
        names(101, &packet),
        ("raw:ip:fragment".to_owned(), End::Whole)
    );
}

#[test]
fn what_is_cut_and_what_is_malformed() {
    let whole = syn();
    let cut = decode(&Frame {
        unix_ns: 0,
        link: 101,
        bytes: &whole[..30],
        original_bytes: 50,
    });
    assert_eq!(cut.end, End::Cut);
    assert_eq!(names(101, &whole[..30]).1, End::Malformed);
    // Options and payload beyond the capture, but the header is here.
    let Transport::Tcp(segment) = decode(&Frame {
        unix_ns: 0,
        link: 101,
        bytes: &whole[..40],
        original_bytes: 50,
    })
    .transport
    else {
        panic!();
    };
    assert_eq!(segment.payload_bytes, 10);
    // Padding of a short frame is no payload.
    let padded = [&whole[..], &[0; 9]].concat();
    let Transport::Tcp(segment) = decode(&Frame {
        unix_ns: 0,
        link: 101,
        bytes: &padded,
        original_bytes: 59,
    })
    .transport
    else {
        panic!();
    };
    assert_eq!(segment.payload_bytes, 10);
    assert_eq!(names(9999, &whole), ("other".to_owned(), End::Unread));
}

#[test]
fn tunnels_within_tunnels_end() {
    let mut packet = syn();
    for _ in 0..50 {
        packet = ipv4(4, [1; 4], [2; 4], &packet);
    }
    assert_eq!(names(101, &packet).1, End::Unread);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_survived(
        link in proptest::sample::select(vec![0_u16, 1, 9, 50, 51, 101, 113, 276]),
        head in proptest::sample::select(vec![vec![], vec![0x45], vec![0x60], ethernet(0x0800, &[0x45]), ethernet(0x8847, &[])]),
        tail in proptest::collection::vec(any::<u8>(), 0..200), wire in 0_u32..300,
    ) {
        let bytes = [head, tail].concat();
        let packet = decode(&Frame { unix_ns: 0, link, bytes: &bytes, original_bytes: wire.max(bytes.len() as u32) });
        prop_assert!(packet.layers.to_vec().len() <= 8);
        if let Transport::Tcp(segment) = packet.transport {
            let _ = (segment.options.timestamps(), segment.options.sack().count(), segment.options.offer(true));
        }
    }
}

/// A data frame towards the access point: control, duration, three addresses, sequence.
fn wlan(subtype: u8, flags: u8, more: &[u8], carried: &[u8]) -> Vec<u8> {
    let addresses = [[2_u8; 6], [4; 6], [6; 6]].concat();
    let control = [subtype << 4 | 8, flags, 44, 0];
    [&control[..], &addresses, &[0x10, 0], more, carried].concat()
}

fn snap(packet: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], packet].concat()
}

#[test]
fn frames_of_wireless_lans() {
    let carried = snap(&syn());
    let checked = [&carried[..], &[9; 4]].concat();
    let encrypted = [&[1, 0, 0, 0x20, 0, 0, 0, 0][..], &carried].concat();
    let radiotap = |flags: u8, frame: &[u8]| {
        // Times, flags and rate, the times aligned to eight bytes.
        let header = [
            0, 0, 26, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, flags, 2, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        [&header[..], frame].concat()
    };
    // The flags of a header of two words of fields, of which the second has none, are eight bytes further.
    let two_words = [
        &[0, 0, 13, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0x20][..],
        &wlan(8, 1, &[0, 0, 0, 0], &carried),
    ]
    .concat();
    let cases: Vec<(u16, Vec<u8>, &str, End)> = vec![
        (
            105,
            wlan(0, 1, &[], &carried),
            "wlan:ip:tcp:http",
            End::Whole,
        ),
        (
            105,
            wlan(0, 2, &[], &carried),
            "wlan:ip:tcp:http",
            End::Whole,
        ),
        (
            105,
            wlan(8, 1, &[0, 0], &carried),
            "wlan:ip:tcp:http",
            End::Whole,
        ),
        (
            105,
            wlan(0, 3, &[8; 6], &carried),
            "wlan:ip:tcp:http",
            End::Whole,
        ),
        (
            105,
            wlan(8, 0x83, &[0; 12], &carried),
            "wlan:ip:tcp:http",
            End::Whole,
        ),
        (105, wlan(4, 1, &[], &[]), "wlan", End::Whole),
        (105, wlan(8, 0x41, &[0, 0], &encrypted), "wlan", End::Whole),
        (105, wlan(8, 1, &[0x80, 0], &carried), "wlan", End::Unread),
        (
            105,
            wlan(0, 1, &[], &[0x42, 0x42, 3, 0, 0, 0, 0, 0]),
            "wlan:llc",
            End::Whole,
        ),
        (105, vec![0x80, 0, 0, 0, 1, 2, 3], "wlan", End::Whole),
        (105, vec![0xb4, 0, 0, 0, 1, 2, 3], "wlan", End::Whole),
        (105, vec![0x0b, 0, 0, 0], "wlan", End::Malformed),
        (
            127,
            radiotap(0, &wlan(0, 1, &[], &carried)),
            "radiotap:wlan:ip:tcp:http",
            End::Whole,
        ),
        (
            127,
            radiotap(0x10, &wlan(0, 1, &[], &checked)),
            "radiotap:wlan:ip:tcp:http",
            End::Whole,
        ),
        (
            127,
            radiotap(0x20, &wlan(8, 1, &[0, 0, 0, 0], &carried)),
            "radiotap:wlan:ip:tcp:http",
            End::Whole,
        ),
        (127, two_words, "radiotap:wlan:ip:tcp:http", End::Whole),
        (
            127,
            radiotap(0x50, &wlan(0, 1, &[], &checked)),
            "radiotap:wlan",
            End::Whole,
        ),
        (127, vec![0, 0, 4, 0], "radiotap", End::Malformed),
        (127, vec![1, 0, 8, 0], "radiotap", End::Unread),
    ];
    for (link, bytes, expected, end) in cases {
        let (layers, found) = names(link, &bytes);
        assert_eq!((layers.as_str(), found), (expected, end), "{bytes:02x?}");
    }
}

#[test]
fn a_check_sequence_is_no_payload() {
    let mut segment = wlan(0, 1, &[], &snap(&raw(&Built::default())));
    segment.extend([9; 4]);
    let bytes = [&[0, 0, 9, 0, 2, 0, 0, 0, 0x10][..], &segment].concat();
    // As if the network card was to write the length.
    let at = bytes.len() - 44 + 2;
    let mut bytes = bytes;
    bytes[at..at + 2].fill(0);
    let packet = decode(&Frame {
        unix_ns: 0,
        link: 127,
        bytes: &bytes,
        original_bytes: bytes.len() as u32,
    });
    let Transport::Tcp(segment) = packet.transport else {
        panic!("{packet:?}");
    };
    assert_eq!(segment.payload_bytes, 0);
}

#[test]
fn retries_and_what_is_encrypted_are_told() {
    let packet = |flags: u8| {
        let bytes = wlan(8, flags, &[0, 0], &snap(&syn()));
        decode(&Frame {
            unix_ns: 0,
            link: 105,
            bytes: &bytes,
            original_bytes: bytes.len() as u32,
        })
        .wireless
        .unwrap()
        .control
        .unwrap()
    };
    assert!(packet(0x09).is_retry() && !packet(0x09).is_protected());
    assert!(packet(0x41).is_protected() && !packet(0x41).is_retry());
}

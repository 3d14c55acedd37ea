//! Handshakes of both kinds, however they are divided and captured.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::packet::{Transport, decode};
use crate::read::Frame;
use crate::testing::{Built, raw};

const MS: u64 = 1_000_000;

fn extension(kind: u16, value: &[u8]) -> Vec<u8> {
    [
        &kind.to_be_bytes()[..],
        &(value.len() as u16).to_be_bytes(),
        value,
    ]
    .concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[kind][..], &length[1..], body].concat()
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 1][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// A ClientHello with a large key share before the name.
fn client_hello(name: &str) -> Vec<u8> {
    let length = name.len() as u16;
    let list = [
        &(length + 3).to_be_bytes()[..],
        &[0],
        &length.to_be_bytes(),
        name.as_bytes(),
    ]
    .concat();
    let extensions = [
        extension(51, &[7; 1300]),
        extension(0, &list),
        extension(43, &[2, 3, 4]),
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[9; 32],
        &[32],
        &[8; 32],
        &[0, 4, 0x13, 1, 0x13, 2],
        &[1, 0],
        &(extensions.len() as u16).to_be_bytes(),
        &extensions,
    ]
    .concat();
    message(1, &body)
}

fn server_hello(random: [u8; 32], chosen: Option<u16>) -> Vec<u8> {
    let extensions = chosen.map_or_else(Vec::new, |version| extension(43, &version.to_be_bytes()));
    let body = [
        &[3, 3][..],
        &random,
        &[0],
        &[0x13, 1, 0],
        &(extensions.len() as u16).to_be_bytes(),
        &extensions,
    ]
    .concat();
    message(2, &body)
}

/// Payload of a side at a sequence number, of which so many bytes were captured.
fn feed(tls: &mut Tls, is_up: bool, seq: u32, payload: &[u8], captured: usize, now: u64) {
    let ports = if is_up { [40_000, 443] } else { [443, 40_000] };
    let built = Built {
        ports,
        seq,
        payload: payload.len(),
        ..Built::default()
    };
    let mut bytes = raw(&built);
    let begins = bytes.len() - payload.len();
    bytes[begins..].copy_from_slice(payload);
    let packet = decode(&Frame {
        unix_ns: now,
        link: 101,
        bytes: &bytes[..begins + captured.min(payload.len())],
        original_bytes: bytes.len() as u32,
    });
    let Transport::Tcp(segment) = packet.transport else {
        panic!("{packet:?}");
    };
    tls.segment(is_up, &segment, now);
}

/// A handshake whose segments have so many bytes, of which so many were captured; round trips take 20 ms.
fn handshake(chosen: Option<u16>, random: [u8; 32], segment: usize, captured: usize) -> TlsResult {
    let hello = record(22, &client_hello("www.example.org"));
    let answer = [
        record(22, &server_hello(random, chosen)),
        record(20, &[1]),
        record(23, &[5; 900]),
    ]
    .concat();
    let finished = [record(20, &[1]), record(23, &[6; 53])].concat();
    let request = record(23, &[4; 300]);
    assert!(Tls::begins(&hello));
    let mut tls = Tls::new(1001, Some(u32::MAX - 3), 0);
    let parts: [(bool, u64, Vec<u8>); 4] = [
        (true, 0, hello),
        (false, 20, answer),
        (true, 21, finished),
        (true, 25, request),
    ];
    let mut at = [u32::MAX - 3, 1001];
    for (is_up, ms, bytes) in parts {
        for part in bytes.chunks(segment) {
            let seq = &mut at[usize::from(is_up)];
            feed(&mut tls, is_up, *seq, part, captured, ms * MS);
            *seq = seq.wrapping_add(part.len() as u32);
        }
    }
    tls.result()
}

#[test]
fn a_handshake_of_version_1_3() {
    for segment in [1, 7, 500, 1400, 9000] {
        let tls = handshake(Some(0x0304), [9; 32], segment, 9000);
        assert_eq!(
            tls.server_name.as_deref(),
            Some("www.example.org"),
            "{segment}"
        );
        assert_eq!(tls.version.as_deref(), Some("1.3"));
        assert_eq!(
            (tls.server_hello_s, tls.application_data_s),
            (Some(0.02), Some(0.025))
        );
        assert!(!tls.retried);
    }
}

#[test]
fn a_handshake_of_version_1_2_and_a_second_hello() {
    let tls = handshake(None, [9; 32], 1400, 9000);
    assert_eq!(tls.version.as_deref(), Some("1.2"));
    assert_eq!(tls.application_data_s, Some(0.021));
    let mut random = [9; 32];
    random[..8].copy_from_slice(&[0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11]);
    assert!(handshake(Some(0x0304), random, 1400, 9000).retried);
}

#[test]
fn a_capture_of_headers_has_times_alone() {
    let tls = handshake(Some(0x0304), [9; 32], 1400, 40);
    assert_eq!((tls.server_name, tls.version), (None, None));
    assert_eq!(
        (tls.server_hello_s, tls.application_data_s),
        (Some(0.02), None)
    );
}

#[test]
fn a_segment_that_was_lost_is_waited_for() {
    let hello = record(22, &client_hello("www.example.org"));
    let (first, second) = hello.split_at(700);
    let mut tls = Tls::new(1, Some(1), 0);
    for (at, part) in [
        (1, first),
        (701 + 700, &[3; 10][..]),
        (701, second),
        (1, first),
    ] {
        feed(&mut tls, true, at, part, 9000, 0);
    }
    assert_eq!(tls.result().server_name.as_deref(), Some("www.example.org"));
}

#[test]
fn other_connections_are_none() {
    assert!(!Tls::begins(b"GET / HTTP/1.1"));
    assert!(!Tls::begins(&[22, 3, 1]));
    assert!(!Tls::begins(&record(22, &[2; 9])));
}

proptest! {
    /// Nothing panics whatever the sides send, and the name is short and printable.
    #[test]
    fn any_bytes(parts in prop::collection::vec((any::<bool>(), 0_u32..64, prop::collection::vec(any::<u8>(), 1..64), 0_usize..64), 0..20)) {
        let mut tls = Tls::new(0, Some(0), 0);
        feed(&mut tls, true, 0, &record(22, &client_hello("a"))[..90], 9000, 0);
        for (is_up, seq, bytes, captured) in parts {
            feed(&mut tls, is_up, seq + if is_up { 60 } else { 0 }, &bytes, captured, 0);
        }
        let name = tls.result().server_name.unwrap_or_default();
        prop_assert!(name.len() <= 255 && name.chars().all(|c| c.is_ascii_graphic()));
    }
}

//! Packets that the path or a network card changed are followed all the same.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::results::capture::sides::Changed;
use plumb_wire::ip::{ACK, SYN};

use super::testing::{MS, Path, S, with_ident};
use crate::testing::{Built, LINUX_SYN, ipv4, raw};

/// A segment when it is sent and when it is received: translated, its numbers rewritten, and clamped.
fn both_ways(built: &Built<'_>, ident: u32, shift: u32) -> [Vec<u8>; 2] {
    let sent = with_ident(raw(built), ident);
    let up = built.ports[0] > 1023;
    let mut received = with_ident(
        raw(&Built {
            seq: if up {
                built.seq.wrapping_add(shift)
            } else {
                built.seq
            },
            ..*built
        }),
        ident,
    );
    // At the server's side, the client is another.
    let (address, port) = if up { (12, 20) } else { (16, 22) };
    let outside = if up { &mut received } else { &mut sent.clone() };
    outside[address..address + 4].copy_from_slice(&[192, 0, 2, 9]);
    outside[port..port + 2].copy_from_slice(&50_001_u16.to_be_bytes());
    let outside = outside.clone();
    match up {
        true => [sent, outside],
        false => [outside, sent],
    }
}

#[test]
fn what_the_middle_changes_is_told_and_followed() {
    const SHIFT: u32 = 123_456;
    let mut path = Path::default();
    let syn = Built {
        seq: 1000,
        flags: SYN,
        options: &LINUX_SYN,
        ..Built::default()
    };
    let [sent, mut received] = both_ways(&syn, 1, SHIFT);
    // Clamped to 1400, and SACK is made NOPs; three hops, and marks are bleached.
    received[42..44].copy_from_slice(&1400_u16.to_be_bytes());
    received[44..46].copy_from_slice(&[1, 1]);
    path.up(S, &sent, 10 * MS, &received);
    let answer = Built {
        ports: [80, 40_000],
        seq: 5000,
        ack: 1001 + SHIFT,
        flags: SYN | ACK,
        options: &LINUX_SYN,
        ..Built::default()
    };
    let [sent, mut received] = both_ways(&answer, 0, 0);
    received[28..32].copy_from_slice(&1001_u32.to_be_bytes());
    path.down(S + 10 * MS, &sent, 10 * MS, &received);
    for n in 0..200_u32 {
        let at = 2 * S + u64::from(n) * 20 * MS;
        let data = Built {
            seq: 1001 + n * 1000,
            ack: 5001,
            payload: 1000,
            ..Built::default()
        };
        let [mut sent, mut received] = both_ways(&data, 2 + n, SHIFT);
        (sent[1], sent[8]) = (0xb9, 64);
        (received[1], received[8]) = (0x01, 61);
        path.up(at, &sent, 10 * MS, &received);
        let ack = Built {
            ports: [80, 40_000],
            seq: 5001,
            ack: 2001 + n * 1000 + SHIFT,
            ..Built::default()
        };
        let [sent, mut received] = both_ways(&ack, 900 + n, 0);
        received[28..32].copy_from_slice(&(2001 + n * 1000).to_be_bytes());
        if n != 77 {
            path.down(at + 10 * MS, &sent, 10 * MS, &received);
        } else {
            path.server.push((at + 10 * MS, sent));
        }
    }
    let result = path.matched();
    assert_eq!((result.up.both, result.up.lost), (201, 0), "{result:#?}");
    assert_eq!((result.down.both, result.down.lost), (200, 1));
    let of = |what: Changed| {
        let found = result.changes.iter().find(|change| change.what == what);
        let found = found.unwrap_or_else(|| panic!("{what:?}: {:#?}", result.changes));
        (
            found.before.as_deref(),
            found.after.as_deref(),
            found.packets,
        )
    };
    assert_eq!(of(Changed::Ttl), (Some("64"), Some("61"), 200));
    assert_eq!(of(Changed::Dscp), (Some("46"), Some("0"), 200));
    assert_eq!(of(Changed::Mss), (Some("1460"), Some("1400"), 1));
    assert_eq!(of(Changed::TcpOption), (Some("SACK permitted"), None, 1));
    assert_eq!(
        of(Changed::Sequence),
        (Some("as sent"), Some("rewritten"), 1)
    );
    let source = (Some("10.0.0.1:40000"), Some("192.0.2.9:50001"), 201);
    assert_eq!(of(Changed::Source), source);
    let destination = (Some("192.0.2.9:50001"), Some("10.0.0.1:40000"), 200);
    assert_eq!(of(Changed::Destination), destination);
}

#[test]
fn segments_that_a_card_splits_are_those_of_the_wire() {
    let mut path = Path::default();
    let syn = Built {
        flags: SYN,
        options: &[2, 4, 0x05, 0xb4],
        ..Built::default()
    };
    let sent = with_ident(raw(&syn), 1);
    path.up(S, &sent, 5 * MS, &sent);
    let mut lost = 0;
    for n in 0..100_u32 {
        let at = S + u64::from(n + 1) * 10 * MS;
        // Eleven segments, the last one short; every other time the card joins them again.
        let whole = Built {
            seq: 1 + n * 15_000,
            payload: 15_000,
            ..Built::default()
        };
        path.client
            .push((at, with_ident(raw(&whole), 100 + n * 11)));
        let mut from = 0;
        for piece in 0..11 {
            let length = (15_000 - from).min(1460);
            let part = Built {
                seq: whole.seq + from as u32,
                payload: length,
                ..whole
            };
            from += length;
            match (n % 10, piece) {
                (7, 4) => lost += 1,
                _ => {
                    let part = with_ident(raw(&part), 100 + n * 11 + piece);
                    path.server
                        .push((at + 5 * MS + u64::from(piece) * 10_000, part));
                }
            }
        }
        let ack = with_ident(
            raw(&Built {
                ports: [80, 40_000],
                ack: whole.seq + 15_000,
                ..Built::default()
            }),
            500 + n,
        );
        path.down(at + 6 * MS, &ack, 5 * MS, &ack);
    }
    let result = path.matched();
    assert_eq!(result.up.lost, lost, "{result:#?}");
    assert_eq!(result.up.both, 1 + 1100 - lost);
    assert_eq!(result.up.far_only, 0);
    assert_eq!(result.sides[0].joined_segments, 100);
    assert_eq!(result.sides[1].joined_segments, 0);
}

#[test]
fn a_checksum_that_the_card_is_to_write_is_no_change_and_counted() {
    let of = |count: u32, as_sent: u16| {
        let mut path = Path::default();
        for n in 0..count {
            let built = Built {
                seq: 1 + n * 100,
                payload: 100,
                ..Built::default()
            };
            let (mut sent, mut received) = (with_ident(raw(&built), n), with_ident(raw(&built), n));
            sent[36..38].copy_from_slice(&as_sent.to_be_bytes());
            received[36..38].copy_from_slice(&0x1234_u16.to_be_bytes());
            path.up(S + u64::from(n) * MS, &sent, 5 * MS, &received);
        }
        path.matched()
    };
    // 10.0.0.1 and 10.0.0.2, protocol 6, 120 bytes: RFC 9293, section 3.1.
    let pseudo = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + 120;
    let offloaded = of(10, pseudo);
    assert_eq!(offloaded.up.both, 10, "{offloaded:#?}");
    assert!(offloaded.changes.is_empty(), "{offloaded:#?}");
    let counts = offloaded.sides.iter().map(|side| side.unwritten_checksums);
    assert_eq!(counts.collect::<Vec<_>>(), [10, 0]);
    // Any other checksum was rewritten on the path.
    let rewritten = of(10, pseudo + 1);
    assert_eq!(rewritten.changes[0].what, Changed::Checksum);
    assert_eq!(rewritten.sides[0].unwritten_checksums, 0);
}

#[test]
fn echoes_are_followed_through_a_translation() {
    let mut path = Path::default();
    let echo = |kind: u8, id: u16, n: u8, inside: bool| {
        let mut message = vec![kind, 0, 0, 0];
        message.extend(id.to_be_bytes());
        message.extend([0, n]);
        message.extend([n; 48]);
        let client = if inside {
            [10, 0, 0, 1]
        } else {
            [192, 0, 2, 9]
        };
        let server = [198, 51, 100, 1];
        match kind {
            8 => ipv4(1, client, server, &message),
            _ => ipv4(1, server, client, &message),
        }
    };
    for n in 0..20_u8 {
        let at = S + u64::from(n) * 100 * MS;
        path.up(at, &echo(8, 5, n, true), 8 * MS, &echo(8, 9, n, false));
        match n {
            4 => path.server.push((at + 8 * MS, echo(0, 9, n, false))),
            _ => path.down(
                at + 8 * MS,
                &echo(0, 9, n, false),
                8 * MS,
                &echo(0, 5, n, true),
            ),
        }
    }
    let result = path.matched();
    assert_eq!((result.up.both, result.up.lost), (20, 0), "{result:#?}");
    assert_eq!((result.down.both, result.down.lost), (19, 1));
    let delay = result.up.delay.unwrap().delay_s;
    assert!((delay.p50 - 0.008).abs() < 1e-4, "{delay:?}");
}

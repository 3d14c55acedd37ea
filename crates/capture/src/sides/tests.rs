//! Losses, order and delays by clocks that differ.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::testing::{MS, Path, S, matched, udp, with_ident};

#[test]
fn losses_order_and_delays_are_those_of_the_path() {
    let mut path = Path::default();
    let (mut lost, mut late, mut twice) = ([0, 0], 0, 0);
    let mut most_queue = 0;
    for n in 0..30_000_u32 {
        let at = S + u64::from(n) * MS;
        // Grows and shrinks more slowly than packets follow each other, so that none overtakes.
        let phase = u64::from(n % 200);
        let queue = phase.min(200 - phase) * MS / 4;
        let sent = udp(true, n);
        match n % 1000 {
            1 => {
                path.client.push((at, sent));
                lost[0] += 1;
            }
            // Three others come before it.
            500 => {
                path.up(at, &sent, 15 * MS + queue + 3 * MS + MS / 2, &sent);
                late += 1;
            }
            700 => {
                path.up(at, &sent, 15 * MS + queue, &sent);
                path.server.push((at + 15 * MS + queue + MS / 3, sent));
                twice += 1;
            }
            _ => path.up(at, &sent, 15 * MS + queue, &sent),
        }
        // The late ones wait longest.
        most_queue = most_queue.max(queue + u64::from(n % 1000 == 500) * 7 * MS / 2);
        let sent = udp(false, n);
        match n % 500 {
            3 => {
                path.server.push((at, sent));
                lost[1] += 1;
            }
            _ => path.down(at, &sent, 15 * MS, &sent),
        }
    }
    let result = path.matched();
    let (up, down) = (&result.up, &result.down);
    assert_eq!((up.lost, down.lost), (lost[0], lost[1]), "{result:?}");
    assert_eq!((up.both, down.both), (30_000 - lost[0], 30_000 - lost[1]));
    assert_eq!((up.reordered, down.reordered), (late, 0));
    assert_eq!((up.duplicated, down.duplicated), (twice, 0));
    assert_eq!((up.far_only, down.far_only), (0, 0));
    let clocks = &result.clocks;
    // In the middle of 31 s: 7 s, and 50 ppm of 16 s.
    assert!(
        (clocks.offset_s.unwrap() - 7.0008).abs() < 1e-4,
        "{clocks:?}"
    );
    assert!(
        (clocks.skew_ratio.unwrap() - 50e-6).abs() < 3e-6,
        "{clocks:?}"
    );
    let delay = up.delay.unwrap();
    assert!((delay.delay_s.min - 0.015).abs() < 1e-4, "{delay:?}");
    assert!((0.015..0.0155).contains(&delay.uncertainty_s), "{delay:?}");
    let queue_s = most_queue as f64 / 1e9;
    let measured = up.queueing_s.unwrap();
    assert!(
        (measured.max - queue_s).abs() < 1e-4,
        "{measured:?} {queue_s}"
    );
    assert!(down.queueing_s.unwrap().max < 1e-4);
    assert_eq!(result.changes, []);
}

#[test]
fn of_one_direction_there_is_queueing_and_no_delay() {
    let mut path = Path::default();
    for n in 0..100_u32 {
        let sent = udp(true, n);
        path.up(
            S + u64::from(n) * MS,
            &sent,
            9 * MS + u64::from(n) * MS / 10,
            &sent,
        );
    }
    let result = path.matched();
    assert_eq!((result.up.both, result.down.both), (100, 0));
    assert_eq!(result.up.delay, None);
    assert!((result.up.queueing_s.unwrap().max - 0.0099).abs() < 1e-4);
    assert!(
        result
            .clocks
            .incomparable
            .is_some_and(|why| why.contains("one direction alone"))
    );
}

#[test]
fn only_the_time_that_both_captures_cover_counts() {
    let mut path = Path::default();
    for n in 0..10_000_u32 {
        let at = S + u64::from(n) * MS;
        for up in [true, false] {
            let sent = udp(up, n);
            // The server's side was captured from 3 s to 7 s, and every hundredth packet is lost.
            let during = (3000..7000).contains(&(n + u32::from(up) * 5));
            match (up, n % 100 == 50) {
                (true, true) => path.client.push((at, sent)),
                (true, false) if during => path.up(at, &sent, 5 * MS, &sent),
                (true, false) => path.client.push((at, sent)),
                (false, _) if during => path.down(at, &sent, 5 * MS, &sent),
                (false, _) => path.client.push((at + 5 * MS, sent)),
            }
        }
    }
    // Other traffic of the client, which does not pass the server.
    let mut elsewhere = udp(true, 9);
    elsewhere[19] = 77;
    path.client.push((5 * S, elsewhere));
    let result = path.matched();
    assert_eq!(result.up.lost, 40, "{result:#?}");
    assert_eq!((result.down.lost, result.down.far_only), (0, 0));
    assert_eq!(result.sides[0].elsewhere_packets, 1);
    assert!((11_900..=12_100).contains(&result.sides[0].outside_packets));
}

/// What a host sends once for each segment that comes too late, all alike and without identification.
fn alike() -> Vec<u8> {
    with_ident(udp(true, 0), 0)
}

#[test]
fn one_of_two_packets_that_are_alike_may_be_lost() {
    let mut path = Path::default();
    for n in 0..100_u32 {
        path.up(
            S + u64::from(n) * MS,
            &udp(true, 1 + n),
            9 * MS,
            &udp(true, 1 + n),
        );
    }
    path.up(S + 50 * MS, &alike(), 9 * MS, &alike());
    path.client.push((S + 50 * MS + MS / 50, alike()));
    let result = path.matched();
    assert_eq!((result.up.both, result.up.lost), (101, 1), "{result:?}");
    assert_eq!(result.sides[0].twice_packets, 0);
}

#[test]
fn what_a_capture_has_twice_was_not_lost() {
    let mut path = Path::default();
    for n in 0..100_u32 {
        let at = S + u64::from(n) * MS;
        let sent = with_ident(udp(true, n), 0);
        path.up(at, &sent, 9 * MS, &sent);
        path.client.push((at + MS / 50, sent));
    }
    path.up(S + 101 * MS, &udp(true, 100), 9 * MS, &udp(true, 100));
    let result = path.matched();
    assert_eq!((result.up.both, result.up.lost), (101, 0), "{result:?}");
    assert_eq!(result.sides[0].twice_packets, 100);
}

proptest! {
    #[test]
    fn no_packets_do_harm(
        client in proptest::collection::vec((any::<u64>(), proptest::collection::vec(any::<u8>(), 0..90)), 0..60),
        same in any::<u64>(), ip in any::<bool>(),
    ) {
        let as_ip = |mut bytes: Vec<u8>| {
            if let (true, Some(first)) = (ip, bytes.first_mut()) {
                *first = if *first % 2 == 0 { 0x45 } else { 0x60 };
            }
            bytes
        };
        let client: Vec<_> = client.into_iter().map(|(at, bytes)| (at, as_ip(bytes))).collect();
        let server: Vec<_> = client.iter().map(|(at, bytes)| (at.wrapping_add(same), bytes.clone())).collect();
        let result = matched(client, server);
        prop_assert!(result.up.loss_ratio.is_none_or(|ratio| (0.0..=1.0).contains(&ratio)));
    }
}

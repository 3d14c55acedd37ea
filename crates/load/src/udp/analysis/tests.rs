#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::*;
use proptest::prelude::*;

const MS: i64 = 1_000_000;

/// Packets sent one a millisecond, that come in this order, one a millisecond.
fn arrivals(order: &[u64]) -> Vec<Packet> {
    order
        .iter()
        .zip(100..)
        .map(|(sequence, ms)| Packet {
            sequence: *sequence,
            sent_ns: *sequence as i64 * MS,
            received_ns: ms * MS,
            payload_bytes: 100,
            ecn: 2,
        })
        .collect()
}

fn analyse(window: usize, packets: &[Packet], announced: Option<u64>) -> Findings {
    let mut analysis = Analysis::with_window(window);
    packets.iter().for_each(|packet| analysis.record(packet));
    analysis.finish(announced.map(|datagrams| End {
        datagrams,
        at_ns: 0,
    }))
}

#[test]
fn all_in_order() {
    let found = analyse(window::PACKETS, &arrivals(&[0, 1, 2, 3, 4]), Some(5));
    let receiver = found.receiver;
    assert_eq!((found.known, found.min_delay_ns), (5, Some(100 * MS)));
    assert_eq!(
        (receiver.received, receiver.received_bytes, receiver.lost),
        (5, 500, 0)
    );
    assert_eq!(receiver.reordering.reordered, 0);
    assert_eq!(receiver.ecn.ect0, 5);
    assert_eq!(
        receiver.reordering.density,
        [plumb_model::results::udp::Displacement {
            places: 0,
            packets_ratio: 1.0
        }]
    );
    let (jitter, ipdv, pdv) = (
        receiver.jitter_s.unwrap(),
        receiver.ipdv_s.unwrap(),
        receiver.pdv_s.unwrap(),
    );
    assert_eq!((jitter.max, ipdv.count, pdv.max), (0.0, 4, 0.0));
}

#[test]
fn nothing_came() {
    let found = analyse(window::PACKETS, &[], None);
    assert_eq!((found.known, found.min_delay_ns), (0, None));
    assert_eq!(found.receiver.loss_ratio, 0.0);
    let found = analyse(window::PACKETS, &[], Some(7));
    assert_eq!((found.known, found.receiver.lost), (7, 7));
    assert_eq!(found.receiver.losses.periods, 1);
}

/// RFC 4737, section 4.2: of 1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11 the last three of the middle are
/// late by 4, 5 and 6 places.
#[test]
fn extent_counts_places_from_the_first_that_overtook() {
    let order = [0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10];
    let reordering = analyse(window::PACKETS, &arrivals(&order), None)
        .receiver
        .reordering;
    let (extent, late) = (reordering.extent.unwrap(), reordering.late_s.unwrap());
    assert_eq!(reordering.reordered, 3);
    assert_eq!((extent.min, extent.p50, extent.max), (4.0, 5.0, 6.0));
    assert_eq!((late.min, late.max), (0.004, 0.006));
}

fn shares(order: &[u64]) -> Vec<(i32, f64)> {
    let density = analyse(window::PACKETS, &arrivals(order), None)
        .receiver
        .reordering
        .density;
    density
        .iter()
        .map(|d| (d.places, d.packets_ratio * order.len() as f64))
        .map(|(places, count)| (places, count.round()))
        .collect()
}

/// Like the examples of RFC 5236, section 4: with numbers from 0.
#[test]
fn displacements_leave_lost_packets_out() {
    // Packet 1 comes after 3: late by two places; the two that overtook it are early by one.
    assert_eq!(shares(&[0, 2, 3, 1, 4]), [(-1, 2.0), (0, 2.0), (2, 1.0)]);
    // Packet 3 is lost: those after it are where they should be.
    assert_eq!(shares(&[0, 1, 2, 4, 5]), [(0, 5.0)]);
    // Packet 3 is lost and 5 overtakes 4.
    assert_eq!(shares(&[0, 1, 2, 5, 4, 6]), [(-1, 1.0), (0, 4.0), (1, 1.0)]);
}

#[test]
fn what_comes_below_the_window_is_too_late_to_tell() {
    let found = analyse(4, &arrivals(&[0, 1, 9, 2, 6, 7]), None);
    let receiver = found.receiver;
    assert_eq!((receiver.too_late, receiver.received), (1, 5));
    assert_eq!((receiver.lost, receiver.losses.periods), (5, 2));
}

#[test]
fn a_jump_beyond_all_measure_takes_no_time() {
    let found = analyse(window::PACKETS, &arrivals(&[0, u64::MAX - 1, 5]), None);
    assert_eq!(found.known, u64::MAX);
    assert_eq!(found.receiver.lost, u64::MAX - 2);
    assert_eq!(found.receiver.too_late, 1);
}

#[test]
fn variation_is_told_apart() {
    // Delays of 10, 10, 14, 10 ms; packet 2 is lost.
    let packet = |sequence: u64, delay_ms: i64| Packet {
        sequence,
        sent_ns: sequence as i64 * MS,
        received_ns: (sequence as i64 + delay_ms) * MS,
        payload_bytes: 100,
        ecn: 0,
    };
    let packets = [packet(0, 10), packet(1, 10), packet(3, 14), packet(4, 10)];
    let receiver = analyse(window::PACKETS, &packets, None).receiver;
    let ipdv = receiver.ipdv_s.unwrap();
    assert_eq!((ipdv.count, ipdv.min, ipdv.max), (2, -0.004, 0.0));
    let pdv = receiver.pdv_s.unwrap();
    assert_eq!((pdv.count, pdv.min), (4, 0.0));
    assert!((pdv.max - 0.004).abs() < 1e-9);
    // 0, then 4/16, then 4/16 + (4 − 4/16)/16 ms.
    let jitter = receiver.jitter_s.unwrap();
    assert!((jitter.max - (0.25 + 3.75 / 16.0) / 1e3).abs() < 1e-8);
}

/// The same by looking at everything at once.
struct Oracle {
    lost: Vec<u64>,
    duplicates: u64,
    /// Extent and lateness of the reordered packets.
    reordered: Vec<(u64, i64)>,
    ipdv_ns: Vec<i64>,
}

fn oracle(packets: &[Packet], sent: u64) -> Oracle {
    let mut unique: Vec<Packet> = Vec::new();
    let mut duplicates = 0;
    for packet in packets {
        if unique.iter().any(|p| p.sequence == packet.sequence) {
            duplicates += 1;
        } else {
            unique.push(*packet);
        }
    }
    let reordered = unique.iter().enumerate().filter_map(|(i, packet)| {
        let j = unique[..i]
            .iter()
            .position(|p| p.sequence > packet.sequence)?;
        Some(((i - j) as u64, packet.received_ns - unique[j].received_ns))
    });
    let delay = |sequence: u64| {
        let packet = unique.iter().find(|p| p.sequence == sequence)?;
        Some(packet.received_ns - packet.sent_ns)
    };
    Oracle {
        lost: (0..sent).filter(|s| delay(*s).is_none()).collect(),
        duplicates,
        reordered: reordered.collect(),
        ipdv_ns: (1..sent)
            .filter_map(|s| Some(delay(s)? - delay(s - 1)?))
            .collect(),
    }
}

/// Packets of a path that loses, repeats and delays, in order of arrival.
fn path() -> impl Strategy<Value = (Vec<Packet>, u64)> {
    let fate = (0..10u8, 0..10u8, 0..20i64, 0..20i64);
    proptest::collection::vec(fate, 1..120).prop_map(|fates| {
        let mut packets = Vec::new();
        for ((lost, twice, delay, again), sequence) in fates.iter().zip(0u64..) {
            let copy = |ms: i64| Packet {
                sequence,
                sent_ns: sequence as i64 * MS,
                received_ns: (sequence as i64 + ms) * MS + sequence as i64,
                payload_bytes: 100,
                ecn: 0,
            };
            if *lost > 1 {
                packets.push(copy(*delay));
                if *twice == 0 {
                    packets.push(copy(*delay + *again));
                }
            }
        }
        packets.sort_by_key(|packet| packet.received_ns);
        (packets, fates.len() as u64)
    })
}

proptest! {
    /// A window of 64 is more than any packet here is late by, and less than the packets, so
    /// that it moves.
    #[test]
    fn counts_are_exact((packets, sent) in path()) {
        let expected = oracle(&packets, sent);
        let receiver = analyse(64, &packets, Some(sent)).receiver;
        prop_assert_eq!(receiver.lost, expected.lost.len() as u64);
        prop_assert_eq!(receiver.duplicates, expected.duplicates);
        prop_assert_eq!(receiver.received + receiver.lost, sent);
        prop_assert_eq!(receiver.too_late, 0);

        let periods = expected.lost.iter().filter(|s| !expected.lost.contains(&s.wrapping_sub(1))).count();
        prop_assert_eq!(receiver.losses.periods, periods as u64);
        let distances = expected.lost.windows(2).map(|w| w[1] - w[0]);
        prop_assert_eq!(
            receiver.losses.distance.map(|d| (d.count, d.max)),
            distances.clone().max().map(|max| (distances.count() as u64, max as f64))
        );

        let reordering = receiver.reordering;
        prop_assert_eq!(reordering.reordered, expected.reordered.len() as u64);
        let largest = |all: &mut dyn Iterator<Item = f64>| all.fold(None, |m: Option<f64>, v| Some(m.map_or(v, |m| m.max(v))));
        prop_assert_eq!(reordering.extent.map(|d| d.max), largest(&mut expected.reordered.iter().map(|(e, _)| *e as f64)));
        let late = largest(&mut expected.reordered.iter().map(|(_, ns)| *ns as f64 / 1e9));
        prop_assert_eq!(reordering.late_s.map(|d| d.max), late);
        let sum: f64 = reordering.density.iter().map(|d| d.packets_ratio).sum();
        prop_assert!(receiver.received == 0 || (sum - 1.0).abs() < 1e-9);

        let ipdv = receiver.ipdv_s.map(|d| (d.count, d.min, d.max));
        let all = || expected.ipdv_ns.iter().map(|ns| *ns as f64 / 1e9);
        prop_assert_eq!(ipdv, largest(&mut all()).map(|max| {
            (expected.ipdv_ns.len() as u64, all().fold(max, f64::min), max)
        }));
    }

    #[test]
    fn any_packets_are_survived(packets in proptest::collection::vec((any::<u64>(), any::<i64>(), any::<i64>()), 0..50), announced: Option<u64>) {
        let packets: Vec<_> = packets.into_iter().map(|(sequence, sent_ns, received_ns)| Packet {
            sequence: sequence.min(u64::MAX - 1), sent_ns, received_ns, payload_bytes: 1, ecn: 3,
        }).collect();
        analyse(16, &packets, announced);
    }
}

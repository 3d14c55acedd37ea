//! When packets leave a shaper, to the nanosecond.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::cell::Cell;
use crate::packet::tests::{ACK, tcp, udp};
use crate::segment::Crossing;
use crate::spec::AnyCell;
use crate::spec::CellSpec;

fn shaper(pairs: &[(&str, &str)]) -> Shaper {
    Shaper::new(spec(pairs), 1, Time::ZERO)
}

fn spec(pairs: &[(&str, &str)]) -> ShaperSpec {
    match CellSpec::from_pairs("shaper", pairs).unwrap() {
        CellSpec::Shaper(spec) => spec,
        other => panic!("{other:?}"),
    }
}

fn set(shaper: &mut Shaper, now: Time, key: &str, value: &str) {
    let changed = CellSpec::Shaper(shaper.spec().clone()).with(&[(key, value)]);
    shaper.set(now, &changed.unwrap());
}

fn ns(ns: u64) -> Time {
    Time::from_nanos(ns)
}

fn departures(shaper: &mut Shaper) -> Vec<u64> {
    std::iter::from_fn(|| shaper.dequeue(ns(1 << 60)))
        .map(|(at, _)| at.as_nanos())
        .collect()
}

#[test]
fn serialises_to_the_nanosecond() {
    let mut s = shaper(&[("rate", "20mbit"), ("framing", "docsis")]);
    s.enqueue(ns(1_000), udp(1500, 1, 0));
    s.enqueue(ns(1_000), udp(1500, 1, 0));
    s.enqueue(ns(2_000_000), udp(40, 1, 0));
    // 1518 bytes take 607.2 µs, 64 bytes 25.6 µs.
    assert_eq!(departures(&mut s), [608_200, 1_215_400, 2_025_600]);
}

#[test]
fn fractions_of_a_nanosecond_add_up_exactly() {
    // 100 bytes at 3 Gbit/s are 266 2/3 ns.
    let mut s = shaper(&[("rate", "3gbit")]);
    for _ in 0..6 {
        s.enqueue(ns(0), udp(100, 1, 0));
    }
    assert_eq!(departures(&mut s), [266, 533, 800, 1066, 1333, 1600]);
}

#[test]
fn a_packet_on_the_line_goes_on_at_the_new_rate() {
    let mut s = shaper(&[("rate", "8mbit")]);
    s.enqueue(ns(0), udp(1000, 1, 0)); // 1 ms
    s.enqueue(ns(0), udp(1000, 1, 0));
    set(&mut s, ns(250_000), "rate", "4mbit");
    assert_eq!(departures(&mut s), [1_750_000, 3_750_000]);
    // No fraction of a nanosecond of the old rate is left over as time of the new one.
    let mut s = shaper(&[("rate", "3gbit")]);
    s.enqueue(ns(0), udp(100, 1, 0));
    s.enqueue(ns(0), udp(100, 1, 0));
    set(&mut s, ns(100), "rate", "8kbit");
    assert_eq!(departures(&mut s), [62_500_100, 162_500_100]);
}

#[test]
fn large_segments_keep_the_line_for_250_us_at_most() {
    // 2 segments of 1518 bytes take 242.88 µs at 100 Mbit/s.
    let mut s = shaper(&[("rate", "100mbit"), ("framing", "docsis")]);
    assert_eq!(s.crossing(), Crossing::Whole);
    s.enqueue(ns(0), tcp(false, 5 * 1448, 1448, ACK));
    assert_eq!(departures(&mut s), [242_880, 485_760, 607_200]);
    // At 20 Mbit/s one takes longer already.
    let mut s = shaper(&[("rate", "20mbit"), ("framing", "docsis")]);
    assert_eq!(s.crossing(), Crossing::Split);
    s.enqueue(ns(0), tcp(false, 2 * 1448, 1448, ACK));
    assert_eq!(departures(&mut s), [607_200, 1_214_400]);
    // At 10 Gbit/s all pass as one; an AQM wants each by itself.
    let mut s = shaper(&[("rate", "10gbit"), ("framing", "docsis")]);
    s.enqueue(ns(0), tcp(false, 20 * 1448, 1448, ACK));
    assert_eq!(departures(&mut s), [24_288]);
    let mut s = shaper(&[
        ("rate", "10gbit"),
        ("framing", "docsis"),
        ("queue", "fq_codel"),
    ]);
    assert_eq!(s.crossing(), Crossing::Split);
    s.enqueue(ns(0), tcp(false, 20 * 1448, 1448, ACK));
    assert_eq!(departures(&mut s).len(), 20);
}

#[test]
fn a_segment_makes_room_in_the_nanosecond_of_its_last_bit() {
    // 1500 bytes at 7 Gbit/s are 1714.29 ns: by itself the first of the two would leave at
    // 1714, and a packet that comes then finds its room free.
    for (at, dropped) in [(1713, 1), (1714, 0)] {
        let mut s = shaper(&[("rate", "7gbit"), ("limit", "2p")]);
        s.enqueue(ns(0), tcp(false, 2 * 1448, 1448, ACK));
        s.enqueue(ns(at), udp(100, 1, 0));
        assert_eq!(s.stats(ns(at), "shaper").dropped_packets(), dropped, "{at}");
    }
}

#[test]
fn a_full_buffer_of_time_delays_for_that_time() {
    let mut s = shaper(&[
        ("rate", "20mbit"),
        ("framing", "docsis"),
        ("limit", "700ms"),
    ]);
    for _ in 0..1300 {
        s.enqueue(ns(0), udp(1500, 1, 0));
    }
    let out = departures(&mut s);
    // 1152 frames are 699.5 ms; one more would exceed the limit.
    assert_eq!(
        (out.len(), out.last().copied()),
        (1152, Some(1152 * 607_200))
    );
    let stats = s.stats(ns(1 << 40), "shaper");
    assert_eq!(stats.dropped["overflow"], 148);
    assert_eq!(stats.sojourn_s.unwrap().max, 0.699_494_4);
}

#[test]
fn the_queues_delay_is_sampled_on_a_grid() {
    let mut s = shaper(&[("rate", "8mbit")]);
    for _ in 0..25 {
        s.enqueue(ns(5_000_000), udp(1000, 1, 0)); // 1 ms each, 25 ms from 5 ms on
    }
    let stats = s.stats(ns(40_000_001), "shaper");
    let series = stats.queue_delay.unwrap();
    let points: Vec<_> = series
        .points()
        .map(|(t, v)| ((t * 1e3) as u64, (v * 1e6).round() as u64))
        .collect();
    assert_eq!(
        points,
        [(0, 0), (10, 20_000), (20, 10_000), (30, 0), (40, 0)]
    );
    assert_eq!(stats.queue_delay_s.unwrap().max, 0.020);
}

#[test]
fn another_queue_takes_over_what_waits() {
    let mut s = shaper(&[("rate", "8mbit"), ("limit", "1000p")]);
    for port in 0..20 {
        s.enqueue(ns(0), udp(1000, port, 0));
    }
    set(&mut s, ns(2_500_000), "queue", "fq_codel");
    set(&mut s, ns(2_600_000), "queue", "codel");
    set(&mut s, ns(2_700_000), "queue", "fifo");
    let out = departures(&mut s);
    assert_eq!(out, (1..=20).map(|i| i * 1_000_000).collect::<Vec<_>>());
}

#[test]
fn a_burst_leaves_at_once_and_then_the_rate_holds() {
    // 1000 bytes are 1 ms at 8 Mbit/s; the bucket holds 2.5 of them.
    let mut s = shaper(&[("rate", "8mbit"), ("burst", "2500B")]);
    for _ in 0..4 {
        s.enqueue(ns(7), udp(1000, 1, 0));
    }
    assert_eq!(departures(&mut s), [7, 7, 500_007, 1_500_007]);
    // Half a millisecond later there are 500 bytes, and after ten no more than 2500.
    s.enqueue(ns(2_000_007), udp(1000, 1, 0));
    assert_eq!(departures(&mut s), [2_500_007]);
    for _ in 0..3 {
        s.enqueue(ns(12_500_007), udp(1000, 1, 0));
    }
    assert_eq!(departures(&mut s), [12_500_007, 12_500_007, 13_000_007]);
    // A packet larger than the bucket waits for tokens of its own.
    let mut s = shaper(&[("rate", "8mbit"), ("burst", "400B")]);
    s.enqueue(ns(0), udp(1000, 1, 0));
    s.enqueue(ns(0), udp(1000, 1, 0));
    assert_eq!(departures(&mut s), [600_000, 1_600_000]);
}

#[test]
fn a_burst_takes_no_room_in_the_queue_and_large_segments_are_split() {
    let mut s = shaper(&[("rate", "1gbit"), ("burst", "4500B"), ("limit", "1p")]);
    assert_eq!(s.crossing(), Crossing::Split);
    s.enqueue(ns(0), tcp(false, 5 * 1448, 1448, ACK));
    // Three at once, one waits, the fifth finds no room.
    assert_eq!(departures(&mut s), [0, 0, 0, 12_000]);
    assert_eq!(s.stats(ns(12_000), "shaper").dropped["overflow"], 1);
}

#[test]
fn a_burst_leaves_no_faster_than_the_peak_rate() {
    let pairs = [
        ("rate", "8mbit"),
        ("burst", "3000B"),
        ("peak_rate", "80mbit"),
    ];
    let mut s = shaper(&pairs);
    for _ in 0..6 {
        s.enqueue(ns(0), udp(1000, 1, 0));
    }
    // 0.1 ms each while there are tokens; the bucket stays full while the first leaves, and the
    // fourth packet waits for what the first three left: 1 ms of tokens from then on.
    assert_eq!(
        departures(&mut s),
        [100_000, 200_000, 300_000, 1_100_000, 2_100_000, 3_100_000]
    );
    // It rested: 1000 bytes are there, and the peak's line has saved nothing up.
    s.enqueue(ns(5_000_000), udp(1000, 1, 0));
    assert_eq!(departures(&mut s), [5_100_000]);
}

#[test]
fn a_scheduled_rate_changes_in_its_nanosecond() {
    let cell = |period: &str| {
        let schedule = "[{ at = '0s', rate = '8mbit' }, { at = '10ms', rate = '4mbit' }]";
        let mut pairs = vec![("schedule", schedule), ("limit", "100p")];
        if !period.is_empty() {
            pairs.push(("period", period));
        }
        shaper(&pairs)
    };
    // 0.5 ms of each, then 4 Mbit/s, asked for only at the end.
    let mut s = cell("");
    for at in [9_500_000, 9_500_000] {
        s.enqueue(ns(at), udp(1000, 1, 0));
    }
    assert_eq!(departures(&mut s), [11_000_000, 13_000_000]);
    // Back at 8 Mbit/s from 12 ms on, and again after a thousand periods.
    for base in [0, 12_000_000_000] {
        let mut s = cell("12ms");
        for _ in 0..3 {
            s.enqueue(ns(base + 9_500_000), udp(1000, 1, 0));
        }
        let out = [11_000_000, 12_500_000, 13_500_000].map(|at| base + at);
        assert_eq!(departures(&mut s), out);
    }
    // One packet over many periods: 10 ms of 8 and 2 ms of 4 Mbit/s are 11 kB.
    let mut s = shaper(&[
        (
            "schedule",
            "[{ at = '0s', rate = '8kbit' }, { at = '10ms', rate = '4kbit' }]",
        ),
        ("period", "12ms"),
    ]);
    s.enqueue(ns(0), udp(1100, 1, 0));
    assert_eq!(departures(&mut s), [1_200_000_000]);
}

#[test]
fn a_limit_in_time_follows_the_schedule() {
    let schedule = "[{ at = '0s', rate = '8mbit' }, { at = '10ms', rate = '800kbit' }]";
    let admitted = |at: u64| {
        let mut s = shaper(&[("schedule", schedule), ("limit", "20ms")]);
        for _ in 0..50 {
            s.enqueue(ns(at), udp(1000, 1, 0));
        }
        departures(&mut s).len()
    };
    assert_eq!((admitted(0), admitted(10_000_000)), (20, 2));
}

#[test]
fn a_rate_that_is_set_keeps_the_tokens_and_what_was_sent() {
    let mut s = shaper(&[("rate", "8mbit"), ("burst", "2000B")]);
    for _ in 0..4 {
        s.enqueue(ns(0), udp(1000, 1, 0));
    }
    set(&mut s, ns(500_000), "rate", "80mbit");
    assert_eq!(departures(&mut s), [0, 0, 550_000, 650_000]);
    set(&mut s, ns(1_000_000), "burst", "1500B");
    s.enqueue(ns(1_000_000), udp(1000, 1, 0));
    s.enqueue(ns(1_000_000), udp(1000, 1, 0));
    assert_eq!(departures(&mut s), [1_000_000, 1_050_000]);
}

/// An ATM cell of 53 bytes carries 48 (ITU-T I.361); PTM sends 65 for 64 (IEEE 802.3
/// clause 61).
#[test]
fn cells_and_blocks_keep_the_line() {
    // Payloads of one cell and of one byte more: with 40 bytes of overhead 8 and 9 bytes
    // of IP would do, and 56 and 57 make two and three cells.
    for (framing, size, wire) in [
        ("pppoe-llcsnap", 56, 2 * 53),
        ("pppoe-llcsnap", 57, 3 * 53),
        ("pppoe-llcsnap", 1500, 33 * 53),
        ("ipoa-vcmux", 40, 53),
        ("ipoa-vcmux", 41, 2 * 53),
        ("pppoe-ptm", 98, 128 + 2),
        ("pppoe-ptm", 99, 129 + 3),
        ("bridged-ptm", 1500, 1522 + 24),
    ] {
        let mut s = shaper(&[("rate", "8mbit"), ("framing", framing)]);
        s.enqueue(ns(0), udp(size, 1, 0));
        s.enqueue(ns(0), udp(size, 1, 0));
        // 1 µs for each byte.
        assert_eq!(
            departures(&mut s),
            [wire * 1000, wire * 2000],
            "{framing} {size}"
        );
    }
}

#[test]
fn contradictions_in_a_schedule_are_named() {
    let schedule = |text| ("schedule", text);
    for (pairs, says) in [
        (vec![("burst", "1kB")], "`rate` (or a schedule)"),
        (
            vec![
                ("rate", "1mbit"),
                schedule("[{ at = '0s', rate = '1mbit' }]"),
            ],
            "not both",
        ),
        (
            vec![schedule("[{ at = '1s', rate = '1mbit' }]")],
            "at = \"0s\"",
        ),
        (
            vec![schedule("[{ at = '0s', rate = '0mbit' }]")],
            "outage is a cell",
        ),
        (
            vec![schedule(
                "[{ at = '0s', rate = '1mbit' }, { at = '2s', rate = '2mbit' }, { at = '2s', rate = '1mbit' }]",
            )],
            "goes back",
        ),
        (
            vec![
                schedule("[{ at = '0s', rate = '1mbit' }, { at = '2s', rate = '2mbit' }]"),
                ("period", "2s"),
            ],
            "longer",
        ),
        (
            vec![("rate", "1mbit"), ("period", "2s")],
            "needs a schedule",
        ),
        (
            vec![("rate", "1mbit"), ("peak_rate", "2mbit")],
            "needs a burst",
        ),
        (
            vec![("rate", "2mbit"), ("peak_rate", "1mbit"), ("burst", "3kB")],
            "below the rate",
        ),
    ] {
        let error = CellSpec::from_pairs("shaper", &pairs)
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn mistakes_are_named() {
    let cell = CellSpec::Shaper(spec(&[("rate", "8mbit")]));
    for (key, value, says) in [
        ("rate", "fast", "20mbit"),
        ("rate", "0", "at least 1 bit/s"),
        ("queue", "fq_codl", "did you mean 'fq_codel'?"),
        ("target", "5ms", "expected one of `rate`, `schedule`"),
        ("framing", "docis", "docsis"),
        ("framing", "overhead 300", "-64 to 256"),
        ("limit", "0", "more than none"),
    ] {
        let error = cell.with(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

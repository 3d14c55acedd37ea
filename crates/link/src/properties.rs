//! What holds for every chain, whatever passes it and whenever it is asked.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use proptest::prelude::*;

use crate::cell::middlebox::icmp_kind::tests::icmp;
use crate::chain::{Chain, build, build_link};
use crate::packet::Packet;
use crate::packet::tests::{ACK, tcp, udp};
use crate::segment::split;
use crate::spec::{CellSpec, ChainSpec, NamedCell};
use crate::stats::ChainStats;
use crate::time::Time;

/// What comes in: after how long, what.
#[derive(Debug, Clone)]
struct Arrival {
    gap_ns: u64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Udp { size: usize, port: u16, tos: u8 },
    Tcp { v6: bool, payload: usize },
    Icmp { v6: bool, kind: u8 },
}

impl What {
    fn packet(&self) -> Packet {
        match *self {
            Self::Udp { size, port, tos } => udp(size, port, tos),
            Self::Tcp { v6, payload } => tcp(v6, payload, 1440, ACK),
            Self::Icmp { v6, kind } => icmp(v6, kind, 0),
        }
    }
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![
        Just(0u64),
        1..1_000u64,
        1_000..2_000_000u64,
        Just(30_000_000)
    ];
    let udp = (28usize..1500, 1u16..5, any::<u8>()).prop_map(|(size, port, tos)| What::Udp {
        size,
        port,
        tos,
    });
    let tcp = (any::<bool>(), 0usize..40_000).prop_map(|(v6, payload)| What::Tcp { v6, payload });
    let icmp = (any::<bool>(), 0u8..140).prop_map(|(v6, kind)| What::Icmp { v6, kind });
    let arrival =
        (gap, prop_oneof![udp, tcp, icmp]).prop_map(|(gap_ns, what)| Arrival { gap_ns, what });
    proptest::collection::vec(arrival, 1..80)
}

/// Cells of the kinds that need no more than one or two examples.
const OTHER_CELLS: &[(&str, &[(&str, &str)])] = &[
    ("loss", &[("ratio", "10%")]),
    ("gilbert_elliott", &[("p", "10%"), ("r", "30%")]),
    ("markov4", &[("p13", "10%"), ("p31", "30%"), ("p14", "5%")]),
    ("periodic_loss", &[("every", "5"), ("match", "tcp")]),
    ("index_loss", &[("packets", "2-9")]),
    ("delay", &[("delay", "9ms"), ("jitter", "5ms")]),
    (
        "delay",
        &[
            ("delay", "9ms"),
            ("jitter", "5ms"),
            ("distribution", "pareto"),
            ("reordering", "true"),
        ],
    ),
    ("duplicate", &[("ratio", "10%")]),
    ("corrupt", &[("ratio", "10%")]),
    (
        "reorder",
        &[("ratio", "10%"), ("extent", "3"), ("hold", "7ms")],
    ),
    ("policer", &[("rate", "1mbit"), ("burst", "20kB")]),
    ("packet_rate", &[("per_second", "2000"), ("limit", "20p")]),
    (
        "outage",
        &[("at", "10ms"), ("lasts", "8ms"), ("every", "40ms")],
    ),
    (
        "outage",
        &[
            ("at", "10ms"),
            ("lasts", "8ms"),
            ("every", "40ms"),
            ("random", "true"),
            ("hold", "true"),
        ],
    ),
    ("sleep", &[("after", "4ms"), ("wakes", "7ms")]),
    (
        "wifi",
        &[
            ("rate", "20mbit"),
            ("failure", "50%"),
            ("attempts", "3"),
            ("busy", "1ms"),
        ],
    ),
    ("wifi", &[("rate", "300mbit"), ("queue", "fq_codel")]),
    ("mtu", &[("bytes", "1000")]),
    ("mtu", &[("bytes", "1300"), ("icmp", "false")]),
    ("icmp_filter", &[("types", "['echo-request']")]),
    ("icmp_limit", &[("per_second", "100"), ("burst", "2")]),
    ("icmp_deprioritise", &[("delay", "3ms"), ("jitter", "2ms")]),
    ("strip_tcp_options", &[]),
    ("mss_clamp", &[("bytes", "1200")]),
    ("ecn_bleach", &[]),
    ("ecn_bleach", &[("only", "ect1")]),
    ("ecn_syn_drop", &[]),
    ("dscp_bleach", &[("dscp", "10")]),
];

fn chains() -> impl Strategy<Value = ChainSpec> {
    let steps = "[{ at = '0s', rate = '123456789' }, { at = '3ms', rate = '2mbit' }]";
    let rate = prop::sample::select(vec![
        vec![("rate", "1mbit")],
        vec![("rate", "20mbit")],
        vec![("rate", "123456789")],
        vec![("rate", "1gbit")],
        vec![("rate", "20mbit"), ("burst", "4kB")],
        vec![
            ("rate", "20mbit"),
            ("burst", "40kB"),
            ("peak_rate", "1gbit"),
        ],
        vec![("schedule", steps)],
        vec![("schedule", steps), ("period", "7ms"), ("burst", "4kB")],
    ]);
    let framing = prop::sample::select(vec!["raw", "docsis", "pppoe-llcsnap", "bridged-ptm"]);
    let queue = prop::sample::select(vec![
        vec![("queue", "fifo"), ("limit", "30kB")],
        vec![("queue", "fifo"), ("limit", "20p")],
        vec![("queue", "fifo"), ("limit", "40ms")],
        vec![("queue", "codel"), ("target", "1ms"), ("interval", "5ms")],
        vec![
            ("queue", "fq_codel"),
            ("target", "1ms"),
            ("interval", "5ms"),
            ("flows", "4"),
            ("limit", "50p"),
        ],
        vec![("queue", "fifo"), ("drop", "head"), ("limit", "30kB")],
        vec![
            (
                "queue",
                "{type='red', min='3kB', max='9kB', limit='20kB', avpkt='500B', burst=10}",
            ),
            ("ecn", "true"),
        ],
        vec![
            ("queue", "pie"),
            ("target", "1ms"),
            ("tupdate", "1ms"),
            ("limit", "50p"),
        ],
        vec![("queue", "docsis_pie"), ("target", "1ms"), ("limit", "50p")],
        vec![(
            "queue",
            "{type='priority', bands=[{ports=[2], queue='codel'}, {dscp=[0]}, {}]}",
        )],
        vec![(
            "queue",
            "{type='host_fair', by='source', buckets=2, leaf={type='pie', limit='9p'}}",
        )],
        vec![("queue", "dualpi2"), ("target", "1ms"), ("limit", "50p")],
        vec![
            ("queue", "cake"),
            ("memory_limit", "30kB"),
            ("ack_filter", "ack-filter"),
        ],
        vec![
            ("queue", "cake"),
            ("rtt", "lan"),
            ("tins", "diffserv8"),
            ("wash", "true"),
        ],
    ]);
    let shaper = (rate, framing, queue).prop_map(|(rate, framing, queue)| {
        let mut pairs = vec![("framing", framing)];
        pairs.extend(rate);
        pairs.extend(queue);
        CellSpec::from_pairs("shaper", &pairs).unwrap()
    });
    let delay = prop::sample::select(vec!["0ns", "1ns", "9ms"])
        .prop_map(|delay| CellSpec::from_pairs("delay", &[("delay", delay)]).unwrap());
    let trace = prop::sample::select(vec![
        vec![("opportunities_ms", "[1]")],
        vec![("opportunities_ms", "[0, 2, 2, 2, 9]"), ("queue", "codel")],
        vec![
            ("opportunities_ms", "[3, 4]"),
            ("framing", "raw"),
            ("limit", "20p"),
        ],
    ])
    .prop_map(|pairs| CellSpec::from_pairs("trace", &pairs).unwrap());
    let other = prop::sample::select(OTHER_CELLS.to_vec())
        .prop_map(|(kind, pairs)| CellSpec::from_pairs(kind, pairs).unwrap());
    proptest::collection::vec(prop_oneof![shaper, delay, trace, other], 0..4).prop_map(|cells| {
        let named = cells.into_iter().enumerate().map(|(i, cell)| NamedCell {
            name: i.to_string(),
            cell,
        });
        ChainSpec(named.collect())
    })
}

/// Times and bytes of the packets that left at the end, and of those that cells sent back. Which of two cells sends
/// first in the same instant is not defined.
#[derive(Debug, Default, PartialEq)]
struct Departures {
    onward: Vec<(Time, Vec<u8>)>,
    back: Vec<(Time, Vec<u8>)>,
}

const END: Time = Time::from_nanos(60_000_000_000);

/// Sends everything through, and asks for departures with `poll` before each arrival.
fn pass(
    chain: &mut Chain,
    arrivals: &[Arrival],
    mut poll: impl FnMut(&mut Chain, Time, &mut Departures),
) -> Departures {
    let mut out = Departures::default();
    let mut now = Time::ZERO;
    for arrival in arrivals {
        now += Duration::from_nanos(arrival.gap_ns);
        poll(chain, now, &mut out);
        chain.enqueue(now, arrival.what.packet());
    }
    poll(chain, END, &mut out);
    collect(chain, END, &mut out);
    out.back.sort();
    out
}

fn collect(chain: &mut Chain, now: Time, out: &mut Departures) {
    while let Some((at, packet)) = chain.dequeue(now) {
        assert!(at <= now);
        if packet.back {
            out.back.push((at, packet.into_data()));
        } else {
            out.onward.push((at, packet.into_data()));
        }
    }
}

/// At every event, as an ideal driver would.
fn exactly(chain: &mut Chain, now: Time, out: &mut Departures) {
    while let Some(event) = chain.next_event().filter(|at| *at <= now) {
        let known = (out.onward.len(), out.back.len());
        collect(chain, event, out);
        let more = out.onward.iter().skip(known.0);
        assert!(
            more.chain(out.back.iter().skip(known.1))
                .all(|(at, _)| *at == event),
            "something left before the event that announced it"
        );
        assert!(
            chain.next_event().is_none_or(|next| next > event),
            "an event that does not go away"
        );
    }
}

fn conserved(stats: &ChainStats) {
    for cell in stats.cells.values() {
        assert_eq!(
            cell.offered.packets + cell.duplicated.packets,
            cell.delivered.packets + cell.dropped_packets() + cell.backlog.packets
        );
        assert_eq!(
            cell.offered.bytes + cell.duplicated.bytes,
            cell.delivered.bytes + cell.dropped_bytes + cell.backlog.bytes
        );
    }
    let dropped: u64 = stats.dropped.values().sum();
    assert_eq!(
        stats.offered.packets + stats.duplicated.packets,
        stats.delivered.packets + dropped + stats.backlog.packets
    );
    assert_eq!(
        stats.offered.bytes + stats.duplicated.bytes,
        stats.delivered.bytes + stats.dropped_bytes + stats.backlog.bytes
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn late_polling_changes_nothing(spec in chains(), arrivals in arrivals()) {
        let mut exact = build(&spec, 1).unwrap();
        let mut late = build(&spec, 1).unwrap();
        let mut odd = build(&spec, 1).unwrap();
        let on_time = pass(&mut exact, &arrivals, exactly);
        prop_assert!(on_time.onward.windows(2).all(|w| w[0].0 <= w[1].0));
        prop_assert_eq!(&pass(&mut late, &arrivals, |_, _, _| {}), &on_time);
        let mut turn = 0;
        let sometimes = pass(&mut odd, &arrivals, |chain, now, out| {
            turn += 1;
            if turn % 3 == 0 {
                collect(chain, now, out);
                let _ = chain.stats(now);
            }
        });
        prop_assert_eq!(&sometimes, &on_time);
        prop_assert_eq!(exact.stats(END), late.stats(END));
        prop_assert_eq!(exact.stats(END), odd.stats(END));
    }

    #[test]
    fn everything_is_accounted_for_at_any_time(spec in chains(), arrivals in arrivals()) {
        let mut chain = build(&spec, 1).unwrap();
        let out = pass(&mut chain, &arrivals, |chain, now, out| {
            conserved(&chain.stats(now));
            collect(chain, now, out);
        });
        let stats = chain.stats(END);
        conserved(&stats);
        prop_assert_eq!(stats.backlog.packets, 0);
        let payload: f64 = stats.payload.points().map(|(_, bytes)| bytes).sum();
        prop_assert_eq!(payload as u64, stats.delivered_tcp_payload_bytes);
        prop_assert!(out.onward.len() as u64 <= stats.delivered.packets);
        let json = serde_json::to_string(&stats).unwrap();
        let again: ChainStats = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(again.delivered, stats.delivered);
    }

    /// What both directions share does not depend on when either of them is asked, and accounts
    /// for everything.
    #[test]
    fn a_shared_medium_is_asked_in_any_way(
        arrivals in arrivals(),
        sides in proptest::collection::vec(0usize..2, 80),
        polls in proptest::collection::vec(0usize..4, 80),
        kind in prop::sample::select(vec![
            vec![("type", "half_duplex"), ("rate", "10mbit")],
            vec![("type", "half_duplex"), ("rate", "100mbit"), ("propagation", "2400ns"), ("queue", "codel")],
            vec![("type", "duplex_mismatch"), ("rate", "10mbit"), ("half", "first")],
            vec![("type", "duplex_mismatch"), ("rate", "100mbit"), ("half", "second"), ("limit", "5p")],
            vec![("type", "nat"), ("address", "10.0.0.2"), ("max_mappings", "2")],
        ]),
    ) {
        let spec = ChainSpec(vec![CellSpec::from_pairs(kind[0].1, &kind[1..]).unwrap().into()]);
        let run = |polls: &[usize]| {
            let mut ends = build_link(&spec, &spec, [1, 2]).unwrap();
            let mut out = [Departures::default(), Departures::default()];
            let mut now = Time::ZERO;
            for ((arrival, side), poll) in arrivals.iter().zip(&sides).zip(polls) {
                now += Duration::from_nanos(arrival.gap_ns);
                for end in 0..2 {
                    if poll & (1 << end) != 0 {
                        exactly(&mut ends[end], now, &mut out[end]);
                        collect(&mut ends[end], now, &mut out[end]);
                        conserved(&ends[end].stats(now));
                    }
                }
                ends[*side].enqueue(now, arrival.what.packet());
                conserved(&ends[*side].stats(now));
            }
            for end in [0, 1] {
                collect(&mut ends[end], END, &mut out[end]);
            }
            let stats = ends.each_mut().map(|end| end.stats(END));
            (out, stats)
        };
        let (out, stats) = run(&[0; 80]);
        for stats in &stats {
            conserved(stats);
            prop_assert_eq!(stats.backlog.packets, 0);
            let lost = |cause| stats.dropped.get(cause).copied().unwrap_or(0);
            // With carrier sense nothing is received damaged, and no collision is late.
            if kind[0].1 == "half_duplex" {
                prop_assert_eq!(lost("late_collision") + lost("fcs_error"), 0);
            }
        }
        prop_assert_eq!(run(&polls), (out, stats));
    }

    /// A FIFO takes, drops and delivers the same segments whether they come in large segments
    /// or one by one in the same instant, and the last of each large one leaves when it would
    /// have by itself.
    #[test]
    fn a_fifo_treats_large_segments_like_their_packets(
        arrivals in arrivals(),
        rate in prop::sample::select(vec![
            vec![("rate", "50mbit")],
            vec![("rate", "100mbit")],
            vec![("rate", "123456789")],
            vec![("rate", "1gbit")],
            vec![("rate", "3gbit")],
            vec![("rate", "3gbit"), ("burst", "9kB")],
            vec![("schedule", "[{ at = '0s', rate = '3gbit' }, { at = '99us', rate = '123456789' }]"), ("period", "100007ns")],
        ]),
        limit in prop::sample::select(vec!["30kB", "31234B", "20p", "1ms", "1p", "1B"]),
        framing in prop::sample::select(vec!["raw", "docsis", "pppoe-llcsnap"]),
    ) {
        let mut pairs = vec![("limit", limit), ("framing", framing)];
        pairs.extend(rate);
        let spec = ChainSpec(vec![CellSpec::from_pairs("shaper", &pairs).unwrap().into()]);
        let mut whole = build(&spec, 1).unwrap();
        let mut single = build(&spec, 1).unwrap();
        let mut now = Time::ZERO;
        for arrival in &arrivals {
            now += Duration::from_nanos(arrival.gap_ns);
            whole.enqueue(now, arrival.what.packet());
            for packet in split(arrival.what.packet(), 1) {
                single.enqueue(now, packet);
            }
        }
        let mut whole_out = Vec::new();
        while let Some((at, packet)) = whole.dequeue(END) {
            let last = packet.segments() as usize - 1;
            whole_out.extend(split(packet, 1).enumerate().map(|(i, p)| ((i == last).then_some(at), p.into_data())));
        }
        let mut single_out = Departures::default();
        collect(&mut single, END, &mut single_out);
        let single_out = single_out.onward;
        prop_assert_eq!(whole_out.len(), single_out.len());
        for ((whole_at, whole_data), (single_at, single_data)) in whole_out.iter().zip(&single_out) {
            prop_assert_eq!(whole_data, single_data);
            prop_assert!(whole_at.is_none_or(|at| at == *single_at));
        }
        let (a, b) = (whole.stats(END), single.stats(END));
        prop_assert_eq!((a.delivered, a.dropped, a.dropped_bytes), (b.delivered, b.dropped, b.dropped_bytes));
    }

    /// Through several lines a packet leaves no earlier for coming in a large segment, and later
    /// by no more than is said.
    #[test]
    fn large_segments_are_late_by_no_more_than_is_said(
        arrivals in arrivals(),
        rates in proptest::collection::vec(prop::sample::select(vec!["100mbit", "300mbit", "123456789", "1gbit", "3gbit"]), 1..4),
    ) {
        let cells = rates.iter().enumerate().map(|(i, rate)| NamedCell {
            name: i.to_string(),
            cell: CellSpec::from_pairs("shaper", &[("rate", *rate)]).unwrap(),
        });
        let spec = ChainSpec(cells.collect());
        let mut whole = build(&spec, 1).unwrap();
        let mut single = build(&spec, 1).unwrap();
        let mut now = Time::ZERO;
        for arrival in &arrivals {
            now += Duration::from_nanos(arrival.gap_ns);
            whole.enqueue(now, arrival.what.packet());
            for packet in split(arrival.what.packet(), 1) {
                single.enqueue(now, packet);
            }
        }
        let mut late = Duration::ZERO;
        let (mut pieces, mut packets) = (0, 0);
        while let Some((at, packet)) = whole.dequeue(END) {
            pieces += usize::from(packet.segments() > 1);
            for _ in split(packet, 1) {
                let (by_itself, _) = single.dequeue(END).unwrap();
                packets += 1;
                prop_assert!(at >= by_itself);
                late = late.max(at - by_itself);
            }
        }
        prop_assert!(single.dequeue(END).is_none() && packets >= arrivals.len());
        let said = whole.stats(END).piece_error_s;
        prop_assert!(late.as_secs_f64() <= said, "{late:?} {said}");
        prop_assert_eq!(said > 0.0, pieces > 0);
        prop_assert_eq!(single.stats(END).piece_error_s, 0.0);
    }

    /// Cells come and change while packets pass: nothing is lost, nothing overtakes.
    #[test]
    fn surgery_loses_and_reorders_nothing(
        arrivals in arrivals(),
        operations in proptest::collection::vec(0usize..8, 80),
    ) {
        let delay: NamedCell = toml::from_str("type = 'delay'\ndelay = '3ms'").unwrap();
        let shaper: NamedCell = toml::from_str("type = 'shaper'\nrate = '20mbit'\nqueue = { type = 'fifo', limit = '1000000p' }").unwrap();
        let mut chain = Chain::new(1);
        let mut operations = operations.into_iter();
        let mut sent = 0u32;
        let mut now = Time::ZERO;
        let mut out = Departures::default();
        for arrival in &arrivals {
            now += Duration::from_nanos(arrival.gap_ns);
            // What is not possible at the moment is refused, which is part of the test.
            let _ = match operations.next() {
                Some(0) => chain.insert(now, None, &delay),
                Some(1) => chain.insert(now, Some(0), &shaper),
                Some(2) => chain.set(now, "delay", &[("delay", "100us")]),
                Some(3) => chain.set(now, "shaper", &[("rate", "5mbit")]),
                Some(4) => chain.set(now, "shaper", &[("limit", "999999p")]),
                Some(5) => chain.set(now, "shaper", &[("queue", "{ type = 'priority', bands = [{}] }")]),
                Some(6) => chain.set(now, "shaper", &[("queue", "{ type = 'fifo', limit = '1000000p' }")]),
                _ => Ok(()),
            };
            let mut packet = udp(500, 1, 0);
            packet.data[24..28].copy_from_slice(&sent.to_be_bytes());
            sent += 1;
            chain.enqueue(now, packet);
            collect(&mut chain, now, &mut out);
            conserved(&chain.stats(now));
        }
        collect(&mut chain, END, &mut out);
        let order: Vec<u32> = out.onward.iter().map(|(_, data)| u32::from_be_bytes(data[24..28].try_into().unwrap())).collect();
        prop_assert_eq!(order, (0..sent).collect::<Vec<_>>());
        prop_assert!(out.onward.windows(2).all(|w| w[0].0 <= w[1].0));
    }
}

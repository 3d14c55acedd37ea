//! What a chain does with its cells and packets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::packet::tests::{ACK, ipv4_header, tcp, udp};
use crate::spec::CellSpec;
use crate::spec::ChainSpec;
use crate::stats::DropCause;
use plumb_wire::probe_key::ProbeKey;
use plumb_wire::virtio::VirtioHeader;

fn chain(text: &str) -> Chain {
    #[derive(serde::Deserialize)]
    struct File {
        chain: ChainSpec,
    }
    build(&toml::from_str::<File>(text).unwrap().chain, 1).unwrap()
}

fn us(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

fn ping(seq: u8) -> Packet {
    let mut data = ipv4_header(84, 1, 0);
    data.extend([8, 0, 0, 0, 0x12, 0x34, 0, seq]);
    data.resize(84, 0);
    Packet::new(data, VirtioHeader::default(), Time::ZERO)
}

#[test]
fn a_shared_cell_is_set_in_both_directions() {
    let cell = CellSpec::from_pairs("half_duplex", &[("rate", "10mbit")]).unwrap();
    let spec = ChainSpec(vec![cell.into()]);
    let mut ends = build_link(&spec, &spec, [1, 2]).unwrap();
    for end in &mut ends {
        assert!(end.is_shared("half_duplex") && !end.is_shared("delay"));
        let pairs = [("rate", "100mbit"), ("propagation", "500ns")];
        end.set(us(0), "half_duplex", &pairs).unwrap();
    }
    ends[1].enqueue(us(0), udp(1500, 1, 0));
    let (at, _) = ends[1].dequeue(us(200)).unwrap();
    assert_eq!(at, Time::from_nanos((1500 + 18 + 8) * 80 + 500));
}

#[test]
fn times_add_up_along_the_chain() {
    let mut c = chain(
        r#"chain = [
            { type = "shaper", rate = "20mbit", framing = "docsis" },
            { type = "delay", delay = "9ms" },
        ]"#,
    );
    c.enqueue(us(0), udp(1500, 1, 0));
    c.enqueue(us(0), udp(1500, 1, 0));
    // The line is free at 607.2 µs, which is not visible outside before the delay is over.
    assert_eq!(c.next_event(), Some(Time::from_nanos(9_607_200)));
    assert!(c.dequeue(us(9_000)).is_none());
    assert_eq!(c.next_event(), Some(Time::from_nanos(9_607_200)));
    let out: Vec<u64> = std::iter::from_fn(|| c.dequeue(us(20_000)))
        .map(|(at, _)| at.as_nanos())
        .collect();
    assert_eq!(out, [9_607_200, 10_214_400]);
    assert_eq!(c.next_event(), None);
}

#[test]
fn the_error_of_large_segments_is_said() {
    let lines = r#"chain = [
        { type = "shaper", rate = "1gbit" },
        { type = "delay", delay = "1ms" },
        { type = "shaper", name = "slow", rate = "500mbit" },
    ]"#;
    let mut c = chain(lines);
    c.enqueue(us(0), udp(1500, 1, 0));
    assert_eq!(c.stats(us(9_000)).piece_error_s, 0.0);
    // 10 packets of 1500 bytes: 120 µs and 240 µs.
    c.enqueue(us(10_000), tcp(false, 10 * 1448, 1448, ACK));
    let stats = c.stats(us(20_000));
    assert_eq!(stats.crossing, Crossing::Whole);
    assert_eq!(stats.piece_error_s, 360e-6);
}

#[test]
fn without_cells_packets_pass_at_once() {
    let mut c = Chain::new(1);
    c.enqueue(us(7), udp(100, 1, 0));
    assert_eq!(c.next_event(), Some(us(7)));
    assert_eq!(c.dequeue(us(7)).unwrap().0, us(7));
    assert_eq!(c.crossing(), Crossing::Whole);
}

#[test]
fn a_reply_leaves_at_once_whatever_is_behind() {
    let mut c =
        chain(r#"chain = [{ type = "mtu", bytes = 1400 }, { type = "delay", delay = "5ms" }]"#);
    c.enqueue(us(7), udp(1500, 1, 0));
    assert_eq!(c.next_event(), Some(us(7)));
    let (at, reply) = c.dequeue(us(7)).unwrap();
    assert!(at == us(7) && reply.back);
}

#[test]
fn probes_are_recorded_with_their_exact_times() {
    let mut c = chain(
        r#"chain = [{ type = "shaper", rate = "8mbit", queue = { type = "fifo", limit = "2p" } }, { type = "delay", delay = "5ms" }]"#,
    );
    c.enqueue(us(10), ping(1));
    c.enqueue(us(20), udp(100, 1, 0));
    c.enqueue(us(30), ping(2)); // the buffer is full
    let stats = c.stats(us(100_000));
    assert_eq!((stats.delivered.packets, stats.dropped["overflow"]), (2, 1));
    let records: Vec<_> = c.probes().records().copied().collect();
    assert_eq!(records.len(), 2);
    assert_eq!(
        (records[0].key, records[0].entered),
        (ProbeKey::Icmp { id: 0x1234, seq: 1 }, us(10))
    );
    assert_eq!((records[0].left, records[1].left), (Some(us(5_094)), None));
}

#[test]
fn what_becomes_of_each_packet_is_kept_when_asked_for() {
    let mut c = chain(
        r#"chain = [{ type = "shaper", rate = "8mbit", queue = { type = "fifo", limit = "2p" } }]"#,
    );
    c.enqueue(us(0), udp(1000, 1, 0)); // not asked for yet
    c.keep_outcomes(true);
    c.enqueue(us(10), udp(1000, 2, 0));
    c.enqueue(us(20), udp(500, 3, 0)); // the buffer is full
    while c.dequeue(us(5_000)).is_some() {}
    let (outcomes, missed) = c.take_outcomes();
    let brief: Vec<_> = outcomes
        .iter()
        .map(|o| (o.number, o.flow.unwrap().source_port, o.end.clone()))
        .collect();
    let left = |at| End::Left { at, marked: false };
    let dropped = End::Dropped {
        cell: "shaper".to_owned(),
        cause: DropCause::Overflow,
    };
    assert_eq!(missed, 0);
    assert_eq!(
        brief,
        [
            (0, 1, left(us(1_000))),
            (1, 2, left(us(2_000))),
            (2, 3, dropped)
        ]
    );
    assert!(c.take_outcomes().0.is_empty());
}

#[test]
fn delivered_payload_over_time() {
    let mut c = chain(r#"chain = [{ type = "delay", delay = "150ms" }]"#);
    c.enqueue(us(0), tcp(false, 10_000, 1448, ACK));
    c.enqueue(us(60_000), tcp(false, 500, 1448, ACK));
    c.enqueue(us(60_000), udp(500, 1, 0));
    let stats = c.stats(us(350_000));
    let bytes: Vec<f64> = stats.payload.points().map(|(_, bytes)| bytes).collect();
    assert_eq!(bytes, [0.0, 10_000.0, 500.0, 0.0]);
    assert_eq!(stats.delivered_tcp_payload_bytes, 10_500);
    assert_eq!(stats.delivered.packets, 7 + 1 + 1);
}

#[test]
fn mistakes_name_what_there_is() {
    let mut c = chain(r#"chain = [{ type = "delay", delay = "1ms" }]"#);
    let error = c
        .set(us(0), "shaper", &[("rate", "1mbit")])
        .unwrap_err()
        .to_string();
    assert_eq!(error, "no cell 'shaper' in this chain: it has delay");
    let twice = ChainSpec(vec![
        toml::from_str("type = 'delay'\ndelay = '1ms'").unwrap();
        2
    ]);
    assert!(matches!(build(&twice, 1), Err(ChainError::Taken { .. })));
}

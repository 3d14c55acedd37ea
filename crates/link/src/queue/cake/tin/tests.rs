//! How the flows of a tin take turns.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::packet::tests::udp;
use plumb_model::framing::Framing;

/// 20 Mbit/s in bytes a second, of which the quantum is 610 bytes.
const RATE: u64 = 2_500_000;

fn tin(isolation: Isolation) -> Tin {
    Tin::new(TinSettings::new(
        isolation,
        RATE,
        Duration::from_millis(100),
    ))
}

/// The flow number `i` of a set: all of a set hash to the same place.
fn flow(i: u32, source: u32) -> Hashes {
    Hashes {
        flow: 40 + i * QUEUES as u32,
        source,
        destination: 7,
    }
}

fn offer(tin: &mut Tin, hashes: Hashes, size: usize) {
    let mut packet = udp(size, 1, 0);
    packet.frame(&Framing::default());
    tin.enqueue(Time::ZERO, packet, hashes, |_| None, &mut Random::new(1));
}

fn serve(tin: &mut Tin, ms: u64) -> Option<usize> {
    let mut service = Service {
        now: Time::from_nanos(ms * 1_000_000),
        random: &mut Random::new(1),
        tally: &mut Tally::new(),
        look_after_decaying: true,
    };
    loop {
        match tin.dequeue(&mut service) {
            None if tin.is_active() => {}
            packet => return packet.map(|packet| packet.data.len()),
        }
    }
}

#[test]
fn the_quantum_follows_the_rate() {
    let quantum =
        |bps: u64| TinSettings::new(Isolation::Flows, bps / 8, Duration::from_millis(100)).quantum;
    assert_eq!(
        [1_000_000, 20_000_000, 1_000_000_000].map(quantum),
        [300, 610, 1514]
    );
}

#[test]
fn eight_flows_of_one_set_have_queues_of_their_own_and_the_ninth_shares() {
    let mut tin = tin(Isolation::Flows);
    for i in 0..8 {
        assert_eq!(tin.place(flow(i, 0)), 40 + i as usize);
        offer(&mut tin, flow(i, 0), 100 + i as usize);
    }
    // Each comes back to its own, whichever was last.
    assert_eq!(tin.place(flow(5, 0)), 45);
    assert_eq!(tin.place(flow(0, 0)), 40);
    assert_eq!(tin.place(flow(8, 0)), 40);
    // It took the queue over: the first flow, whose hash is gone, shares it now.
    assert_eq!(tin.flows[40].hash, flow(8, 0).flow);
    assert_eq!(tin.place(flow(0, 0)), 40);
    // All are served, and when all are at rest, a queue is given away.
    let served: Vec<usize> = (0..8).filter_map(|_| serve(&mut tin, 1)).collect();
    assert_eq!(served, (100..108).collect::<Vec<_>>());
    for ms in 0..20 {
        serve(&mut tin, 1000 + ms);
    }
    assert!(tin.flows.iter().all(|flow| flow.state == State::None));
    assert_eq!(tin.place(flow(9, 0)), 40);
}

#[test]
fn an_emptied_flow_is_kept_in_mind_for_an_interval() {
    let mut tin = tin(Isolation::Flows);
    offer(&mut tin, flow(0, 0), 100);
    assert_eq!(serve(&mut tin, 1), Some(100));
    // Found empty: it decays until 101 ms, and keeps its queue from others.
    assert_eq!(serve(&mut tin, 2), None);
    assert_eq!(tin.flows[40].state, State::Decaying);
    assert!(!tin.is_active());
    assert_eq!(tin.place(flow(1, 0)), 41);
    assert_eq!(serve(&mut tin, 100), None);
    assert_eq!(tin.flows[40].state, State::Decaying);
    assert_eq!(serve(&mut tin, 101), None);
    assert_eq!(tin.flows[40].state, State::None);
    // One that decays becomes sparse again with its next packet.
    offer(&mut tin, flow(0, 0), 100);
    serve(&mut tin, 200);
    serve(&mut tin, 201);
    offer(&mut tin, flow(0, 0), 100);
    assert_eq!(tin.flows[40].state, State::Sparse);
    assert!(tin.decaying_flows.is_empty());
}

#[test]
fn a_flow_comes_to_rest_while_others_are_busy() {
    let mut tin = tin(Isolation::Flows);
    offer(&mut tin, flow(0, 0), 100);
    for _ in 0..5 {
        offer(&mut tin, flow(1, 0), 1000);
    }
    assert_eq!(serve(&mut tin, 1), Some(100));
    assert_eq!(serve(&mut tin, 2), Some(1000));
    assert_eq!(tin.flows[40].state, State::Decaying);
    assert_eq!(serve(&mut tin, 101), Some(1000));
    assert_eq!(tin.flows[40].state, State::None);
}

#[test]
fn the_flows_of_a_host_share_its_quantum_once_they_are_bulk() {
    let mut tin = tin(Isolation::DualSrchost);
    for _ in 0..20 {
        for i in 0..3 {
            offer(&mut tin, flow(i, 1), 1000);
        }
        offer(&mut tin, flow(3, 2), 1000);
    }
    for _ in 0..8 {
        serve(&mut tin, 1);
    }
    let load = |i: usize| {
        tin.hosts
            .load(tin.flows[40 + i].hosts, tin.settings.isolation)
    };
    assert_eq!([0, 1, 2, 3].map(load), [3, 3, 3, 1]);
    // A third of 610 on average; what is rounded is 0.3 bytes at most.
    let mut random = Random::new(1);
    let shares: Vec<i64> = (0..3000).map(|_| share(610, 3, &mut random)).collect();
    assert!(shares.iter().all(|share| (203..=204).contains(share)));
    let sum: i64 = shares.iter().sum();
    assert!((sum - 3000 * 610 / 3).abs() < 150, "{sum}");
}

#[test]
fn a_bulk_flow_that_is_taken_over_counts_for_its_new_host() {
    let mut tin = tin(Isolation::TripleIsolate);
    for i in 0..8 {
        for _ in 0..4 {
            offer(&mut tin, flow(i, 1), 1000);
        }
    }
    for _ in 0..8 {
        serve(&mut tin, 1);
    }
    serve(&mut tin, 1);
    assert!(tin.flows[40].state == State::Bulk);
    offer(&mut tin, flow(8, 2), 1000);
    let dual = Isolation::DualSrchost;
    assert_eq!(tin.hosts.load(tin.flows[40].hosts, dual), 1);
    assert_eq!(tin.hosts.load(tin.flows[41].hosts, dual), 7);
}

#[test]
fn the_last_packet_of_a_queue_is_not_dropped() {
    let mut tin = tin(Isolation::Flows);
    for size in 100..103 {
        offer(&mut tin, flow(0, 0), size);
    }
    tin.flows[40].cobalt = Cobalt::certain();
    assert_eq!(serve(&mut tin, 1), Some(102));
    assert_eq!(tin.backlog().packets, 0);
}

#[test]
fn a_tin_is_due_after_what_it_sent_at_its_rate() {
    let mut tin = tin(Isolation::Flows);
    // 1000 bytes are 400 µs. Within its rate it is due from its schedule on, above from now.
    let us = |us: u64| Time::from_nanos(us * 1000);
    tin.charge(us(0), 1000);
    assert_eq!(tin.next_packet(), us(400));
    tin.charge(us(100), 1000);
    assert_eq!(tin.next_packet(), us(500));
    tin.charge(us(50), 1000);
    assert_eq!(tin.next_packet(), us(500));
    tin.charge(us(2000), 1000);
    assert_eq!(tin.next_packet(), us(900));
}

//! UDP streams between the client and the responder over loopback.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{RawClient, Responder, alone, in_turn, plan, run, udp_plan};
use plumb_load::{ClientError, EndedEarly, PhasePlan, Progress, UdpOutcome};
use plumb_model::direction::OneDirection;
use plumb_model::results::Direction;
use plumb_wire::native::control::flow::udp::{Ecn, Pattern, Times, UdpFlow};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage, Start};
use plumb_wire::native::datagram;
use plumb_wire::native::echo::{Datagram, Kind};

fn constant(pps: f64) -> UdpFlow {
    UdpFlow {
        dscp: Some(10),
        ecn: Some(Ecn::Ect1),
        ..UdpFlow::new(500, Pattern::Constant { pps })
    }
}

/// What holds for any stream whose packets all came.
fn whole(outcome: &UdpOutcome, slots: u64) {
    let sender = outcome.result.sender.as_ref().unwrap();
    let receiver = outcome.result.receiver.as_ref().unwrap();
    assert_eq!(outcome.result.error, None);
    assert_eq!(sender.sent + sender.missed + sender.refused, slots);
    // How many it misses is the machine's affair; that it says so is plumb's.
    assert!(sender.sent > 0, "{sender:?}");
    assert_eq!((receiver.received, receiver.lost), (sender.sent, 0));
    assert_eq!((receiver.duplicates, receiver.reordering.reordered), (0, 0));
    assert_eq!(receiver.ecn.ect1, receiver.received);
    assert_eq!(receiver.received_bytes, sender.sent_bytes);
    assert_eq!((receiver.dropped_here, receiver.lost_on_path), (0, Some(0)));
    // One clock for both ends, and a delay of microseconds.
    let delay_ns = outcome.min_delay_ns.unwrap();
    assert!((0..5_000_000).contains(&delay_ns), "{delay_ns}");
    assert!(!outcome.clock_stepped);
    assert!(outcome.series["bps"].points().count() > 0);
    let points = |name: &str| outcome.series[name].points().map(|(_, value)| value);
    assert!(points("loss_ratio").all(|ratio| ratio == 0.0));
    let largest = points("pdv_max_s").fold(0.0, f64::max);
    assert!(
        (largest - receiver.pdv_s.unwrap().max).abs() < 1e-6,
        "{largest}"
    );
    assert!(
        points("pdv_s")
            .zip(points("pdv_max_s"))
            .all(|(mean, max)| mean <= max)
    );
}

#[test]
fn every_packet_of_both_ways_is_accounted_for() {
    let _alone = alone();
    let responder = Responder::start();
    let mut client = responder.client();
    let outcome = run(&mut client, &udp_plan(2, 1, &constant(1000.0), 500)).unwrap();
    assert!(outcome.down.is_none() && outcome.up.is_none());
    let ways: Vec<_> = outcome
        .udp
        .iter()
        .map(|o| (o.result.direction, o.result.stream))
        .collect();
    assert_eq!(
        ways,
        [
            (Direction::Down, 0),
            (Direction::Down, 1),
            (Direction::Up, 0)
        ]
    );
    // However late a busy machine gets to a stream: its schedule begins a millisecond after its phase
    // at the latest, and at most one slot of the last is cut off.
    outcome.udp.iter().for_each(|o| {
        let sender = o.result.sender.as_ref().unwrap();
        let slots = sender.sent + sender.missed + sender.refused;
        assert!((499..=500).contains(&slots), "{sender:?}");
        whole(o, slots);
    });
    // The session goes on, also with TCP.
    let outcome = run(&mut client, &plan(1, 0, 300)).unwrap();
    assert!(outcome.down.is_some() && outcome.udp.is_empty());
}

#[test]
fn a_phase_lasts_as_long_as_it_was_asked_to_where_packets_are_few() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    // 2.25 packets in the time, of which the last leaves at 889 ms; and a time that ends silent.
    let sparse = UdpFlow::new(500, Pattern::Constant { pps: 2.25 });
    let silent = UdpFlow::new(
        500,
        Pattern::OnOff {
            pps: 100.0,
            on_s: 0.2,
            off_s: 5.0,
            times: Times::Fixed,
        },
    );
    // The third packet is of the interval after it, which is not over: it makes the rate no higher.
    for (flow, slots, of_s) in [(sparse, 3, 3.0 / 2.25), (silent, 20, 1.0)] {
        let outcome = run(&mut client, &udp_plan(1, 1, &flow, 1000)).unwrap();
        assert_eq!((outcome.duration_s, outcome.ended_early), (1.0, None));
        for udp in &outcome.udp {
            let sender = udp.result.sender.as_ref().unwrap();
            let received = udp.result.receiver.as_ref().unwrap().received;
            // Those that a busy machine was too late for are left out.
            assert_eq!(sender.sent + sender.missed, slots, "{sender:?}");
            assert_eq!(received, sender.sent);
            assert_eq!(udp.result.bps, Some(received as f64 * 4000.0 / of_s));
        }
    }
}

#[test]
fn trains_arrive_whole() {
    let _turn = in_turn();
    let responder = Responder::start();
    let flow = UdpFlow {
        gso: Some(10),
        gro: true,
        ..constant(5000.0)
    };
    let outcome = run(&mut responder.client(), &udp_plan(1, 1, &flow, 300)).unwrap();
    for outcome in &outcome.udp {
        let sender = outcome.result.sender.as_ref().unwrap();
        assert_eq!(sender.sent % 10, 0);
        whole(outcome, sender.sent + sender.missed + sender.refused);
        assert_eq!(
            (outcome.result.gso_segments, outcome.result.gro),
            (10, true)
        );
    }
}

#[test]
fn as_fast_as_possible_ends_with_the_budget() {
    let _turn = in_turn();
    let responder = Responder::start();
    let flow = UdpFlow::new(1000, Pattern::Max);
    let limited = PhasePlan {
        byte_limit: Some(2_000_000),
        ..udp_plan(1, 0, &flow, 60_000)
    };
    let begun = Instant::now();
    let outcome = run(&mut responder.client(), &limited).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(40));
    let result = &outcome.udp[0].result;
    assert_eq!(result.sender.as_ref().unwrap().sent, 2000);
    assert_eq!(result.asked_bps, None);
    assert!(result.sender.as_ref().unwrap().lateness_s.is_none());
}

#[test]
fn a_budget_that_is_no_number_of_packets_is_spent_all_the_same() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    for (down, up) in [(1, 0), (0, 1)] {
        let limited = PhasePlan {
            byte_limit: Some(100_300),
            ..udp_plan(down, up, &constant(1000.0), 5000)
        };
        let outcome = run(&mut client, &limited).unwrap();
        assert_eq!(outcome.ended_early, Some(EndedEarly::Budget));
        let result = &outcome.udp[0].result;
        let sender = result.sender.as_ref().unwrap();
        assert_eq!(sender.sent, 200);
        // The time in which they were sent, not that in which nothing came any more.
        let of_s = (sender.sent + sender.missed + sender.refused) as f64 / 1000.0;
        let bps = result.bps.unwrap();
        assert!((bps * of_s / 800_000.0 - 1.0).abs() < 1e-6, "{bps}");
    }
}

#[test]
fn a_cancelled_stream_still_counts_exactly() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let cancel = AtomicBool::new(false);
    let plan = udp_plan(1, 1, &constant(2000.0), 10_000);
    // As soon as both directions carry.
    let carries = |now: Progress| {
        if now.down_bps > 0.0 && now.up_bps > 0.0 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let outcome = client.run_phase(&plan, &carries, &cancel).unwrap();
    assert_eq!(outcome.ended_early, Some(EndedEarly::Cancelled));
    for outcome in &outcome.udp {
        let sender = outcome.result.sender.as_ref().unwrap();
        let slots = sender.sent + sender.missed + sender.refused;
        // Of 20,000: half of them are five seconds.
        assert!(slots < 10_000, "{sender:?}");
        whole(outcome, slots);
    }
}

#[test]
fn what_came_before_the_responder_went_is_kept() {
    let _turn = in_turn();
    let mut responder = Responder::start();
    let mut client = responder.client();
    let plan = udp_plan(1, 1, &constant(1000.0), 10_000);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(600));
            responder.stop();
        });
        run(&mut client, &plan).unwrap()
    });
    assert_eq!(outcome.ended_early, Some(EndedEarly::FarEndLost));
    assert!(outcome.lost.unwrap().contains("shuts down"));
    let [down, up] = outcome.udp.as_slice() else {
        panic!("{:?}", outcome.udp)
    };
    assert!(down.result.sender.is_none() && up.result.receiver.is_none());
    assert!(down.result.receiver.as_ref().unwrap().received > 100);
    assert!(up.result.sender.as_ref().unwrap().sent > 100 && up.result.bps.is_none());
}

#[test]
fn a_small_buffer_that_overflows_is_told_from_the_path() {
    let _turn = in_turn();
    let responder = Responder::start();
    let flow = UdpFlow {
        receive_buffer_bytes: Some(4096),
        gso: Some(20),
        ..UdpFlow::new(1000, Pattern::Constant { pps: 5000.0 })
    };
    let outcome = run(&mut responder.client(), &udp_plan(1, 0, &flow, 300)).unwrap();
    let receiver = outcome.udp[0].result.receiver.clone().unwrap();
    assert!(receiver.lost > 10, "{receiver:?}");
    // The end may be among what is dropped; it is said again.
    assert!((receiver.lost..receiver.lost + 20).contains(&receiver.dropped_here));
    assert_eq!(receiver.lost_on_path, Some(0));
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let refused = run(&mut client, &udp_plan(1, 0, &constant(0.0), 100)).unwrap_err();
    assert!(matches!(
        refused,
        ClientError::PhaseRefused {
            reason: Refusal::Malformed,
            ..
        }
    ));
    let small = UdpFlow::new(10, Pattern::Max);
    let refused = run(&mut client, &udp_plan(1, 0, &small, 100)).unwrap_err();
    assert!(refused.to_string().contains("32 ("), "{refused}");
}

/// A client by hand whose stream is asked for from another address than that of its control
/// connection, or with a token that nobody has.
#[test]
fn nothing_is_sent_to_whoever_did_not_ask() {
    let _turn = in_turn();
    let responder = Responder::start();
    let client = RawClient::connect(responder.address, [127, 0, 0, 5]);
    client.send(&ClientMessage::Start(Start {
        phase: 1,
        flows: udp_plan(1, 0, &constant(1000.0), 1000).flows,
        duration_s: 1.0,
        byte_limit: None,
    }));
    assert_eq!(client.receive(), ServerMessage::Ready { phase: 1 });
    let socket = |source: [u8; 4]| {
        let socket = UdpSocket::bind((std::net::Ipv4Addr::from(source), 0)).unwrap();
        socket.connect(responder.address).unwrap();
        let wait = Duration::from_millis(200);
        socket.set_read_timeout(Some(wait)).unwrap();
        socket
    };
    let name = Preamble {
        token: client.token,
        phase: 1,
        stream: 0,
        role: OneDirection::Down,
        tls: false,
    };
    let mut buffer = [0; 2000];
    let thief = socket([127, 0, 0, 6]);
    thief.send(&datagram::attach(&name)).unwrap();
    let guess = socket([127, 0, 0, 5]);
    let mut forged = name;
    forged.token.0[0] ^= 1;
    guess.send(&datagram::attach(&forged)).unwrap();
    assert!(thief.recv(&mut buffer).is_err() && guess.recv(&mut buffer).is_err());

    let owner = socket([127, 0, 0, 5]);
    for _ in 0..3 {
        owner.send(&datagram::attach(&name)).unwrap();
    }
    assert_eq!(client.receive(), ServerMessage::Started { phase: 1 });
    let len = owner.recv(&mut buffer).unwrap();
    let tag = datagram::Tag::of(&name);
    assert!(matches!(
        tag.parse(&buffer[..len]),
        Some(datagram::Datagram::Data { .. })
    ));
    assert!(thief.recv(&mut buffer).is_err() && guess.recv(&mut buffer).is_err());
    // The echo beside it still answers everybody.
    thief.send(&Datagram::cookie_request(9).write(64)).unwrap();
    let len = thief.recv(&mut buffer).unwrap();
    assert_eq!(
        Datagram::parse(&buffer[..len]).map(|d| d.kind),
        Some(Kind::CookieReply)
    );
}

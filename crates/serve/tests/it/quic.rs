//! QUIC streams between the client and the responder over loopback.

use std::time::Duration;

use crate::common::{Responder, in_turn, plan, run};
use plumb_load::{ClientError, EndedEarly, PhasePlan};
use plumb_model::direction::OneDirection;
use plumb_model::results::Direction;
use plumb_wire::native::control::Refusal;
use plumb_wire::native::control::flow::quic::QuicFlow;
use plumb_wire::native::control::flow::{Flow, Flows};

fn quic_plan(down: u32, up: u32, cc: Option<&str>, ms: u64) -> PhasePlan {
    let flows = |count, role| Flows {
        count,
        role,
        flow: Flow::Quic(QuicFlow {
            cc: cc.map(str::to_owned),
            dscp: Some(10),
        }),
    };
    PhasePlan {
        flows: vec![flows(down, OneDirection::Down), flows(up, OneDirection::Up)],
        ..plan(0, 0, ms)
    }
}

#[test]
fn both_ways_carry_and_are_accounted_for() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    for cc in [None, Some("reno"), Some("bbr")] {
        let outcome = run(&mut client, &quic_plan(2, 1, cc, 400)).unwrap();
        assert!(outcome.down.is_none() && outcome.up.is_none());
        let ways: Vec<_> = outcome.quic.iter().map(|q| q.result.direction).collect();
        assert_eq!(ways, [Direction::Down, Direction::Up]);
        for (quic, streams) in outcome.quic.iter().zip([2, 1]) {
            let result = &quic.result;
            assert_eq!(result.cc, cc.unwrap_or("cubic"));
            assert_eq!(result.streams.len(), streams);
            for stream in &result.streams {
                let sender = stream.sender.as_ref().unwrap();
                assert_eq!(stream.error, None);
                assert!(stream.bytes > 0 && stream.bytes < sender.sent_bytes);
                assert!(stream.handshake_s.is_some_and(|s| s > 0.0 && s < 0.4));
                assert!(sender.sent_packets > sender.lost_packets);
            }
            assert!(quic.series["bps"].points().any(|(_, bps)| bps > 0.0));
            assert!(quic.series["cwnd_bytes"].points().count() > 1);
        }
    }
    // The session goes on, also with TCP.
    let outcome = run(&mut client, &plan(1, 0, 300)).unwrap();
    assert!(outcome.down.is_some() && outcome.quic.is_empty());
}

#[test]
fn the_budget_holds() {
    let _turn = in_turn();
    let responder = Responder::start();
    let limited = PhasePlan {
        byte_limit: Some(3_000_000),
        ..quic_plan(1, 0, None, 5000)
    };
    let outcome = run(&mut responder.client(), &limited).unwrap();
    assert_eq!(outcome.ended_early, Some(EndedEarly::Budget));
    assert_eq!(outcome.quic[0].result.bytes, Some(3_000_000));
}

#[test]
fn what_came_before_the_responder_went_is_kept() {
    let _turn = in_turn();
    let mut responder = Responder::start();
    let mut client = responder.client();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            responder.stop();
        });
        run(&mut client, &quic_plan(1, 1, None, 10_000)).unwrap()
    });
    assert_eq!(outcome.ended_early, Some(EndedEarly::FarEndLost));
    let [down, up] = outcome.quic.as_slice() else {
        panic!("{:?}", outcome.quic)
    };
    assert!(down.result.bytes > Some(0) && down.result.streams[0].sender.is_none());
    assert!(up.result.bytes.is_none() && up.result.streams[0].sender.is_some());
}

#[test]
fn what_quic_does_not_have_is_refused() {
    let _turn = in_turn();
    let responder = Responder::start();
    let refused = run(
        &mut responder.client(),
        &quic_plan(1, 0, Some("vegas"), 300),
    );
    assert!(matches!(
        refused,
        Err(ClientError::PhaseRefused {
            reason: Refusal::Malformed,
            ..
        })
    ));
}

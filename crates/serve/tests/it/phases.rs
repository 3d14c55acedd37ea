//! The client and the responder over loopback: what a phase reports.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{RawClient, Responder, flows, in_turn, plan, run};
use plumb_load::{ClientError, DirectionOutcome, EndedEarly, PhasePlan};
use plumb_model::protocol::Protocol;
use plumb_serve::{Config, ServeError, Server};
use plumb_wire::native::control::Refusal;
use plumb_wire::native::control::flow::TcpFlow;

/// What holds for one direction of any phase that went well.
fn check(outcome: &DirectionOutcome, streams: usize, duration_s: f64) {
    let result = &outcome.result;
    let ids: Vec<_> = result.streams.iter().map(|s| s.id as usize).collect();
    assert_eq!(ids, (0..streams).collect::<Vec<_>>());
    assert!(
        result
            .streams
            .iter()
            .all(|s| s.bytes > 0 && s.error.is_none()),
        "{:?}",
        result.streams
    );
    let sum: u64 = result.streams.iter().map(|s| s.bytes).sum();
    assert!(
        result.bytes.abs_diff(sum) <= streams as u64,
        "{} {sum}",
        result.bytes
    );
    assert!((result.bps * duration_s / (result.bytes as f64 * 8.0) - 1.0).abs() < 1e-6);
    let l = result.tcp.limited;
    assert!(
        (l.rwnd_ratio + l.sndbuf_ratio + l.app_ratio + l.network_ratio - 1.0).abs() < 1e-9,
        "{l:?}"
    );
    assert_eq!(result.cc, "cubic");
    // What is in flight is looked at ten times a second, when the loopback may have delivered all of it:
    // scenarios/limited-receiver.toml compares it with a window.
    assert!(result.tcp.mss_bytes > 1000, "{:?}", result.tcp);
    assert!(
        result.tcp.min_rtt_s.is_some_and(|rtt| rtt > 0.0),
        "{:?}",
        result.tcp
    );
    assert!(
        result.tcp.send_buffer_bytes.is_some() && result.tcp.max_srtt_s >= result.tcp.min_rtt_s
    );
    assert!(
        result.tcp_receiver.receive_buffer_bytes.is_some()
            && result.tcp_receiver.max_window_bytes.is_some()
    );
    assert!(
        result.cpu.local_ratio.is_some_and(|r| r > 0.0)
            && result.cpu.remote_ratio.is_some_and(|r| r > 0.0)
    );
    for name in [
        "bps",
        "cwnd_bytes",
        "srtt_s",
        "retransmits",
        "in_flight_bytes",
    ] {
        let series = &outcome.series[name];
        assert!(!series.t_s.is_empty(), "{name}");
        assert!(
            series.t_s.iter().all(|t| (0.0..=duration_s).contains(t)),
            "{name}: {:?}",
            series.t_s
        );
    }
    // The bins cover the phase: together they hold what was counted.
    let (mut before, mut bits) = (0.0, 0.0);
    for (t_s, bps) in outcome.series["bps"].points() {
        bits += bps * (t_s - before);
        before = t_s;
    }
    assert!(
        (bits / 8.0 / result.bytes as f64 - 1.0).abs() < 0.1,
        "{} {}",
        bits / 8.0,
        result.bytes
    );
}

#[test]
fn down_up_and_both() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    assert!(client.welcome().host.kernel.starts_with("Linux"));
    assert_eq!(client.welcome().udp_port, Some(responder.address.port()));
    let told = Cell::new(0);
    for (down, up) in [(1, 0), (0, 1), (3, 0), (0, 3), (2, 2)] {
        let progress = |progress: plumb_load::Progress| {
            told.set(told.get() + 1);
            assert!(progress.elapsed < Duration::from_secs(80));
        };
        let outcome = client
            .run_phase(&plan(down, up, 800), &progress, &AtomicBool::new(false))
            .unwrap();
        assert_eq!(
            (outcome.ended_early, outcome.notes.as_slice()),
            (None, &[] as &[String])
        );
        assert!(
            outcome.duration_s >= 0.8 && outcome.duration_s < 80.0,
            "{}",
            outcome.duration_s
        );
        assert_eq!(
            (outcome.down.is_some(), outcome.up.is_some()),
            (down > 0, up > 0)
        );
        for (direction, streams) in [(&outcome.down, down), (&outcome.up, up)] {
            direction
                .iter()
                .for_each(|d| check(d, streams as usize, outcome.duration_s));
        }
    }
    assert!(told.get() > 0);
}

#[test]
fn a_budget_ends_a_phase() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let limit = 50_000_000;
    for (down, up) in [(2, 0), (0, 2), (1, 1)] {
        let plan = PhasePlan {
            byte_limit: Some(limit),
            ..plan(down, up, 60_000)
        };
        let outcome = run(&mut client, &plan).unwrap();
        assert_eq!(outcome.ended_early, Some(EndedEarly::Budget));
        let bytes = [&outcome.down, &outcome.up]
            .into_iter()
            .flatten()
            .map(|d| d.result.bytes)
            .sum::<u64>();
        // Where both ends send, neither knows what the other has on the way: a send buffer.
        let above = if down > 0 && up > 0 { limit / 5 } else { 0 };
        assert!(
            (limit * 98 / 100..=limit + above).contains(&bytes),
            "{down} {up}: {bytes}"
        );
        let errors = [&outcome.down, &outcome.up]
            .into_iter()
            .flatten()
            .flat_map(|d| &d.result.streams);
        assert!(
            errors.clone().all(|s| s.error.is_none()),
            "{:?}",
            errors.collect::<Vec<_>>()
        );
    }
}

fn tcp(cc: &str) -> TcpFlow {
    TcpFlow {
        cc: Some(cc.to_owned()),
        ..TcpFlow::default()
    }
}

#[test]
fn congestion_controls_are_those_that_ran() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let with = |cc: &str| PhasePlan {
        flows: flows(1, 1, tcp(cc)),
        ..plan(1, 1, 200)
    };
    let outcome = run(&mut client, &with("reno")).unwrap();
    assert_eq!(
        (
            outcome.down.unwrap().result.cc,
            outcome.up.unwrap().result.cc
        ),
        ("reno".into(), "reno".into())
    );
    let outcome = run(&mut client, &with("no_such")).unwrap();
    assert_ne!(outcome.down.unwrap().result.cc, "no_such");
    assert_eq!(outcome.notes.len(), 2, "{:?}", outcome.notes);
    assert!(
        outcome
            .notes
            .iter()
            .all(|n| n.contains("no_such") && n.contains("host: ")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn refusals_say_why_and_leave_the_session() {
    let _turn = in_turn();
    let responder = Responder::with(Config {
        max_streams: 4,
        max_duration: Duration::from_secs(2),
        ..Config::default()
    });
    let mut client = responder.client();
    let mut refused = |plan: &PhasePlan| match run(&mut client, plan) {
        Err(ClientError::PhaseRefused {
            reason, message, ..
        }) => (reason, message),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&plan(3, 2, 100)).0, Refusal::Streams);
    assert_eq!(refused(&plan(0, 0, 100)).0, Refusal::Streams);
    let (reason, message) = refused(&plan(1, 0, 3000));
    assert!(
        reason == Refusal::Duration && message.contains("2 s"),
        "{message}"
    );
    assert_eq!(
        refused(&PhasePlan {
            flows: flows(1, 0, tcp("a name with blanks")),
            ..plan(1, 0, 100)
        })
        .0,
        Refusal::Malformed
    );
    assert!(run(&mut client, &plan(2, 2, 100)).is_ok());
}

#[test]
fn a_cancelled_phase_keeps_what_it_has() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let cancel = AtomicBool::new(false);
    let progress = |p: plumb_load::Progress| {
        cancel.store(p.elapsed > Duration::from_millis(300), Ordering::Relaxed)
    };
    let begun = Instant::now();
    let outcome = client
        .run_phase(&plan(1, 1, 60_000), &progress, &cancel)
        .unwrap();
    assert_eq!(
        outcome.ended_early,
        Some(EndedEarly::Cancelled),
        "{:?}",
        outcome.lost
    );
    assert!(
        outcome.duration_s > 0.3 && outcome.duration_s < 30.0,
        "{:?}",
        begun.elapsed()
    );
    assert!(outcome.down.unwrap().result.bytes > 0 && outcome.up.unwrap().result.bytes > 0);
    assert!(matches!(
        client.run_phase(&plan(1, 0, 100), &|_| (), &cancel),
        Err(ClientError::Cancelled { .. })
    ));
    run(&mut client, &plan(1, 0, 100)).expect("the session goes on");
}

#[test]
fn clients_from_two_addresses_at_once() {
    let _turn = in_turn();
    let responder = Responder::start();
    let other = RawClient::connect(responder.address, [127, 0, 0, 2]);
    let data = other.start_download(2.0);
    let mut client = responder.client();
    let outcome = run(&mut client, &plan(1, 1, 500)).unwrap();
    assert!(outcome.down.unwrap().result.bytes > 0);
    data.set_read_timeout(Some(crate::common::TIMEOUT)).unwrap();
    std::io::Read::read_exact(&mut &data, &mut vec![0; 10_000_000]).unwrap();
    // From the same address it is refused.
    let same = RawClient::connect(responder.address, [127, 0, 0, 1]);
    let _data = same.start_download(2.0);
    match run(&mut client, &plan(1, 0, 100)) {
        Err(ClientError::PhaseRefused {
            reason: Refusal::Busy,
            message,
            ..
        }) => {
            assert!(message.contains("127.0.0.1"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_port_in_use_is_said_so() {
    let responder = Responder::start();
    let listen = vec![responder.address];
    match Server::bind(Config {
        listen,
        ..Config::default()
    }) {
        Err(error @ ServeError::InUse { .. }) => {
            assert!(
                error.to_string().contains(&responder.address.to_string()),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn encrypted_streams_count_payload_and_name_their_cipher() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let tls = TcpFlow {
        tls: true,
        ..TcpFlow::default()
    };
    let plan = PhasePlan {
        flows: flows(2, 2, tls),
        ..plan(0, 0, 800)
    };
    let outcome = run(&mut client, &plan).unwrap();
    for direction in [&outcome.down, &outcome.up] {
        let direction = direction.as_ref().unwrap();
        check(direction, 2, outcome.duration_s);
        assert_eq!(direction.result.protocol, Protocol::Tls);
        let tls = direction.result.tls.as_ref().unwrap();
        assert!(tls.cipher_suite.starts_with("TLS13_"), "{tls:?}");
        assert!(
            tls.handshake_s.count == 2 && tls.handshake_s.min > 0.0,
            "{tls:?}"
        );
    }
    // What is counted is payload, and all of it arrives although encryption holds data back.
    let limit = 50_000_000;
    for (down, up) in [(1, 0), (0, 1)] {
        let plan = PhasePlan {
            flows: flows(
                down,
                up,
                TcpFlow {
                    tls: true,
                    ..TcpFlow::default()
                },
            ),
            byte_limit: Some(limit),
            duration: Duration::from_secs(60),
            ..plan.clone()
        };
        let outcome = run(&mut client, &plan).unwrap();
        assert_eq!(outcome.ended_early, Some(EndedEarly::Budget));
        let result = outcome.down.or(outcome.up).unwrap().result;
        assert!(
            (limit * 98 / 100..=limit).contains(&result.bytes),
            "{}",
            result.bytes
        );
    }
}

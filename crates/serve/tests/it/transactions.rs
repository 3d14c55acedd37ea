//! Transactions over loopback: what is counted, and what either end survives.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::common::{RawClient, Responder, TIMEOUT, alone, in_turn, run};
use crate::liar::Liar;
use plumb_load::{Client, ClientError, EndedEarly, PhaseOutcome, PhasePlan};
use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol::{self, Tcp, Tls, Udp};
use plumb_model::results::TransactionsResult;
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage};

const PHASE: Duration = Duration::from_millis(600);

fn flow(transport: Protocol, request_bytes: u32, response_bytes: u32) -> TransactionFlow {
    TransactionFlow {
        transport,
        connect: false,
        request_bytes,
        response_bytes,
        rate_tps: None,
        on_demand: false,
    }
}

fn connecting(transport: Protocol) -> TransactionFlow {
    TransactionFlow {
        connect: true,
        ..flow(transport, 1, 1)
    }
}

fn plan(flow: TransactionFlow, count: u32) -> PhasePlan {
    PhasePlan {
        flows: vec![Flows {
            count,
            role: OneDirection::Up,
            flow: Flow::Transactions(flow),
        }],
        duration: PHASE,
        byte_limit: None,
        until_steady: false,
        from: None,
        to: None,
    }
}

/// What holds for every phase of transactions that went well.
fn check(outcome: &PhaseOutcome) -> &TransactionsResult {
    assert_eq!(
        (outcome.ended_early, outcome.notes.len()),
        (None, 0),
        "{:?}",
        outcome.notes
    );
    let [of_kind] = outcome.transactions.as_slice() else {
        panic!("{:?}", outcome.transactions)
    };
    let result = &of_kind.result;
    assert_eq!((result.failed, result.error.as_deref()), (0, None));
    assert!(result.completed > 50, "{result:?}");
    assert!(result.unfinished <= result.concurrency, "{result:?}");
    let rate = result.completed as f64 / outcome.duration_s;
    assert!((result.rate_tps / rate - 1.0).abs() < 1e-9, "{result:?}");
    let latency = result.latency_s.unwrap();
    assert_eq!(latency.count, result.completed);
    assert!(latency.min > 0.0, "{latency:?}");
    let counted: f64 = of_kind.series["completed_count"]
        .points()
        .map(|p| p.1)
        .sum();
    assert!((counted - result.completed as f64).abs() <= result.completed as f64 / 10.0);
    assert!(result.cpu.remote_ratio.is_some_and(|ratio| ratio > 0.0));
    result
}

#[test]
fn requests_are_answered_over_every_transport() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    for (flow, count) in [
        (flow(Tcp, 1, 1), 1),
        (flow(Tcp, 1, 1), 4),
        (flow(Tls, 1, 1), 2),
        (flow(Udp, 64, 64), 2),
        (flow(Tcp, 100_000, 1), 1),
        (flow(Tcp, 1, 200_000), 1),
        (flow(Tls, 300, 200_000), 1),
        (flow(Udp, 1400, 1400), 1),
        // Longer by so little that the fastest machine stays below what a responder allows.
        (flow(Udp, 64, 128), 1),
        (flow(Udp, 1400, 64), 1),
    ] {
        let outcome = run(&mut client, &plan(flow.clone(), count)).unwrap();
        let result = check(&outcome);
        assert_eq!(
            (result.transport, result.concurrency),
            (flow.transport, count.into())
        );
        assert_eq!((result.offered_tps, result.delayed), (None, 0));
        assert!(result.connect_s.is_none() && result.response_s.is_none());
        assert!(outcome.down.is_none() && outcome.up.is_none());
        // A closed loop: each stream had one under way all the time.
        let busy = result.latency_s.unwrap().mean * result.rate_tps;
        assert!(
            (0.5 * f64::from(count)..=1.01 * f64::from(count)).contains(&busy),
            "{flow:?}: {busy}, {result:?}"
        );
    }
}

#[test]
fn each_may_have_a_connection_of_its_own() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    for (flow, count) in [
        (connecting(Tcp), 1),
        (connecting(Tls), 1),
        (connecting(Tcp), 8),
        (connecting(Tls), 3),
    ] {
        let outcome = run(&mut client, &plan(flow.clone(), count)).unwrap();
        let result = check(&outcome);
        let (connect, response) = (result.connect_s.unwrap(), result.response_s.unwrap());
        assert_eq!(
            (connect.count, response.count),
            (result.completed, result.completed)
        );
        assert_eq!(result.tls_handshake_s.is_some(), flow.transport == Tls);
        let handshake = result.tls_handshake_s.map_or(0.0, |d| d.mean);
        let parts = connect.mean + handshake + response.mean;
        assert!(parts <= result.latency_s.unwrap().mean, "{result:?}");
    }
}

#[test]
fn a_rate_is_kept_by_all_streams_together() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let flow = TransactionFlow {
        rate_tps: Some(50.0),
        on_demand: false,
        ..flow(Tcp, 1, 1)
    };
    let outcome = run(&mut client, &plan(flow, 4)).unwrap();
    let result = check(&outcome);
    assert_eq!(result.offered_tps, Some(200.0));
    // 0.6 s of 50 a second on each of four streams, the first of them at once.
    assert!((116..=124).contains(&result.completed), "{result:?}");
}

#[test]
fn two_kinds_at_once_are_told_apart() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let mut both = plan(flow(Tcp, 1, 1), 2);
    both.flows.extend(plan(connecting(Tls), 1).flows);
    both.flows.extend(crate::common::plan(1, 1, 0).flows);
    let outcome = run(&mut client, &both).unwrap();
    let [rr, crr] = outcome.transactions.as_slice() else {
        panic!("{:?}", outcome.transactions)
    };
    assert_eq!((rr.result.concurrency, crr.result.concurrency), (2, 1));
    assert!(rr.result.completed > 0 && crr.result.completed > 0);
    assert!(
        outcome.down.is_some_and(|d| d.result.bytes > 0)
            && outcome.up.is_some_and(|d| d.result.bytes > 0)
    );
}

#[test]
fn a_budget_ends_them() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let plan = PhasePlan {
        byte_limit: Some(10_000),
        ..plan(flow(Tcp, 1, 99), 1)
    };
    let outcome = run(&mut client, &plan).unwrap();
    assert_eq!(outcome.ended_early, Some(EndedEarly::Budget));
    assert_eq!(outcome.transactions[0].result.completed, 100);
}

#[test]
fn what_cannot_be_asked_is_refused_by_the_responder() {
    let responder = Responder::start();
    let mut client = responder.client();
    let down = PhasePlan {
        flows: vec![Flows {
            count: 1,
            role: OneDirection::Down,
            flow: Flow::Transactions(flow(Tcp, 1, 1)),
        }],
        ..plan(flow(Tcp, 1, 1), 1)
    };
    for (plan, why) in [
        (plan(flow(Tcp, 0, 1), 1), "0"),
        (plan(flow(Tcp, 1, u32::MAX), 1), "4294967295"),
        (plan(flow(Udp, 64, 65_508), 1), "65508"),
        (plan(connecting(Udp), 1), "bytes"),
        (down, "up"),
    ] {
        let error = run(&mut client, &plan).unwrap_err();
        let ClientError::PhaseRefused {
            reason, message, ..
        } = error
        else {
            panic!("{error}")
        };
        assert!(
            reason == Refusal::Malformed && message.contains(why),
            "{message}"
        );
    }
    assert!(run(&mut client, &plan(flow(Tcp, 1, 1), 1)).is_ok());
}

#[test]
fn a_responder_that_stops_leaves_what_was_measured() {
    let _turn = in_turn();
    for flow in [flow(Tcp, 1, 1), connecting(Tcp), flow(Udp, 64, 64)] {
        let mut responder = Responder::start();
        let mut client = responder.client();
        let long = PhasePlan {
            duration: Duration::from_secs(60),
            ..plan(flow.clone(), 2)
        };
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            responder.stop();
        });
        let outcome = run(&mut client, &long).unwrap();
        stopper.join().unwrap();
        assert_eq!(
            outcome.ended_early,
            Some(EndedEarly::FarEndLost),
            "{flow:?}"
        );
        assert!(
            outcome
                .lost
                .as_deref()
                .is_some_and(|why| why.contains("shuts down")),
            "{:?}",
            outcome.lost
        );
        let result = &outcome.transactions[0].result;
        assert!(
            result.completed > 50 && result.cpu.remote_ratio.is_none(),
            "{result:?}"
        );
        assert!(
            outcome.duration_s > 0.4 && outcome.duration_s < 30.0,
            "{}",
            outcome.duration_s
        );
    }
}

#[test]
fn cancelling_ends_them_at_once() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let long = PhasePlan {
        duration: Duration::from_secs(60),
        ..plan(connecting(Tls), 2)
    };
    let cancel = AtomicBool::new(false);
    let began = Instant::now();
    let progress = |progress: plumb_load::Progress| {
        if progress.transactions_tps > 0.0 {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let outcome = client.run_phase(&long, &progress, &cancel).unwrap();
    assert_eq!(outcome.ended_early, Some(EndedEarly::Cancelled));
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_far_end_that_closes_or_says_nothing_costs_only_what_it_took() {
    let _turn = in_turn();
    let ask = |liar: &Liar, flow: TransactionFlow| {
        let mut client = Client::connect("liar", liar.address, TIMEOUT).unwrap();
        run(&mut client, &plan(flow, 1)).unwrap()
    };
    // It answers ten times, and closes.
    let liar = Liar::start(|mut data| {
        for _ in 0..10 {
            let mut request = [0];
            if data
                .read_exact(&mut request)
                .and_then(|()| data.write_all(b"a"))
                .is_err()
            {
                return;
            }
        }
    });
    let outcome = ask(&liar, flow(Tcp, 1, 1));
    let result = &outcome.transactions[0].result;
    assert_eq!((result.completed, result.failed), (10, 1), "{result:?}");
    assert_eq!(outcome.ended_early, Some(EndedEarly::StreamsFailed));
    assert!(result.error.is_some());
    // It takes every request and answers none.
    let liar = Liar::start(|mut data| while data.read(&mut [0; 64]).is_ok_and(|n| n > 0) {});
    let outcome = ask(&liar, flow(Tcp, 1, 1));
    let result = &outcome.transactions[0].result;
    assert_eq!(
        (result.completed, result.failed, result.unfinished),
        (0, 0, 1),
        "{result:?}"
    );
    assert!(result.latency_s.is_none());
    // It opens what stands for the stream, and answers no connection of a transaction: as every
    // one of its data connections does, this one ends at once or says nothing.
    let outcome = ask(&liar, connecting(Tcp));
    let result = &outcome.transactions[0].result;
    assert_eq!(
        (result.completed, result.failed, result.unfinished),
        (0, 0, 1),
        "{result:?}"
    );
    // No echo is there.
    let outcome = ask(&liar, flow(Udp, 64, 64));
    let result = &outcome.transactions[0].result;
    assert!(result.completed == 0 && result.failed >= 1, "{result:?}");
    assert!(
        result.error.as_ref().is_some_and(|e| e.contains("refused")),
        "{result:?}"
    );
}

#[test]
fn a_certificate_that_was_not_announced_is_named() {
    let _turn = in_turn();
    // Its data connections show a certificate of their own.
    let liar = Liar::start(|data| {
        let shown = plumb_load::tls::Identity::generate().unwrap();
        let _ = plumb_load::tls::TlsSession::accept(&data, &shown, Instant::now() + TIMEOUT);
    });
    let mut client = Client::connect("liar", liar.address, TIMEOUT).unwrap();
    let error = run(&mut client, &plan(flow(Tls, 1, 1), 1)).unwrap_err();
    assert!(
        matches!(&error, ClientError::Stream { why, .. } if why.contains("certificate")),
        "{error}"
    );
    // Its data connections speak no TLS at all.
    let liar = Liar::start(|mut data| {
        let _ = data.write_all(b"220 mail.example ESMTP\r\n");
        while data.read(&mut [0; 64]).is_ok_and(|n| n > 0) {}
    });
    let mut client = Client::connect("liar", liar.address, TIMEOUT).unwrap();
    let error = run(&mut client, &plan(flow(Tls, 1, 1), 1)).unwrap_err();
    assert!(
        matches!(&error, ClientError::Stream { why, .. } if why.contains("TLS")),
        "{error}"
    );
}

#[test]
fn connections_that_nobody_asked_for_are_closed() {
    let _turn = in_turn();
    let responder = Responder::start();
    let client = RawClient::connect(responder.address, [127, 0, 0, 1]);
    let held = client.start(plan(connecting(Tcp), 1).flows, 10.0);
    let mut asked_for = client.attach(1, 0, OneDirection::Up);
    for (phase, stream, role) in [
        (1, 1, OneDirection::Up),
        (2, 0, OneDirection::Up),
        (1, 0, OneDirection::Down),
    ] {
        let mut refused = client.attach(phase, stream, role);
        let _ = refused.write_all(b"?");
        refused.set_read_timeout(Some(TIMEOUT)).unwrap();
        assert!(
            !refused.read(&mut [0]).is_ok_and(|n| n > 0),
            "{phase} {stream}"
        );
    }
    asked_for.set_read_timeout(Some(TIMEOUT)).unwrap();
    asked_for.write_all(b"?").unwrap();
    // One answer, and the end in order.
    let mut answers = Vec::new();
    asked_for.read_to_end(&mut answers).unwrap();
    assert_eq!(answers.len(), 1);
    drop(held);
}

/// How a client ends a phase in which it asks without waiting.
#[derive(Debug, Clone, Copy)]
enum Ends {
    Stops,
    Vanishes,
    SeesTheResponderStop,
}

/// Ends a connection when it is dropped, and so whoever reads and writes there.
struct Cut<'a>(&'a TcpStream);

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Threads of this process that answer transactions.
fn answering() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "plumb-answer").count()
}

#[test]
fn who_asks_without_waiting_is_left_when_the_phase_is_over() {
    let _alone = alone();
    for ends in [Ends::Stops, Ends::Vanishes, Ends::SeesTheResponderStop] {
        let mut responder = Responder::start();
        let client = RawClient::connect(responder.address, [127, 0, 0, 1]);
        let data = client.start(plan(flow(Tcp, 1, 4 << 20), 1).flows, 0.5);
        std::thread::scope(|scope| {
            let _cut = Cut(&data);
            // There is always something to answer, and always somebody who takes it.
            scope.spawn(|| while (&data).write_all(&[1; 64]).is_ok() {});
            scope.spawn(|| {
                let mut buffer = vec![0; 1 << 20];
                while (&data).read(&mut buffer).is_ok_and(|count| count > 0) {}
            });
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(answering(), 1);
            match ends {
                Ends::Stops => {
                    client.send(&ClientMessage::Stop { phase: 1 });
                    while !matches!(client.receive(), ServerMessage::Result { .. }) {}
                    assert!(run(&mut responder.client(), &plan(flow(Tcp, 1, 1), 1)).is_ok());
                }
                Ends::Vanishes => drop(client),
                Ends::SeesTheResponderStop => {
                    assert!(responder.stop() < Duration::from_secs(20));
                }
            }
            let begun = Instant::now();
            while answering() > 0 {
                assert!(begun.elapsed() < Duration::from_secs(20), "{ends:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        });
    }
}

//! Flows whose schedules no host can keep: their threads end with them, and what they held is given
//! back.
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::common::{RawClient, Responder, alone, run, udp_plan};
use plumb_model::direction::OneDirection;
use plumb_wire::native::control::flow::udp::{Pattern, Times, UdpFlow};
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage, Start};
use plumb_wire::native::datagram;

fn on_off(on_s: f64, off_s: f64, times: Times) -> UdpFlow {
    let pattern = Pattern::OnOff {
        pps: 1e9,
        on_s,
        off_s,
        times,
    };
    UdpFlow::new(64, pattern)
}

/// What walked for minutes to days through departures that had passed.
fn crowded() -> [UdpFlow; 4] {
    [
        UdpFlow::new(64, Pattern::Constant { pps: 1e9 }),
        UdpFlow::new(64, Pattern::Poisson { pps: 1e9 }),
        UdpFlow::new(
            64,
            Pattern::Trace {
                packets: vec![(1e-9, 64); 100],
            },
        ),
        on_off(1e-6, 1e-6, Times::Exponential),
    ]
}

/// Asks for a phase of one stream down and for its stream, and gives what the responder says to that.
fn ask(client: &RawClient, socket: &UdpSocket, flow: &UdpFlow) -> ServerMessage {
    client.send(&ClientMessage::Start(Start {
        phase: 1,
        flows: vec![Flows {
            count: 1,
            role: OneDirection::Down,
            flow: Flow::Udp(flow.clone()),
        }],
        duration_s: 1.0,
        byte_limit: None,
    }));
    let answer = client.receive();
    if answer != (ServerMessage::Ready { phase: 1 }) {
        return answer;
    }
    let attach = datagram::attach(&Preamble {
        token: client.token,
        phase: 1,
        stream: 0,
        role: OneDirection::Down,
        tls: false,
    });
    socket.send(&attach).unwrap();
    client.receive()
}

fn socket_from(source: [u8; 4], responder: &Responder) -> UdpSocket {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::from(source), 0)).unwrap();
    socket.connect(responder.address).unwrap();
    socket
}

#[test]
fn times_that_no_clock_has_are_refused() {
    let responder = Responder::start();
    let mut client = responder.client();
    for (on_s, off_s) in [(1e-300, 1e300), (1e-300, 1e-300), (1e300, 1e-300)] {
        for times in [Times::Fixed, Times::Exponential] {
            let error = run(
                &mut client,
                &udp_plan(1, 0, &on_off(on_s, off_s, times), 200),
            );
            assert!(error.unwrap_err().to_string().contains("1e-6"));
        }
    }
}

#[test]
fn a_phase_that_nobody_keeps_up_with_ends_in_time() {
    let _alone = alone();
    let responder = Responder::start();
    let mut client = responder.client();
    for flow in crowded() {
        let begun = Instant::now();
        let outcome = run(&mut client, &udp_plan(1, 1, &flow, 500)).unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?} of {flow:?}");
        for outcome in &outcome.udp {
            let sender = outcome.result.sender.as_ref().unwrap();
            assert!(sender.sent > 100, "{sender:?} of {flow:?}");
            assert!(sender.missed > sender.sent, "{sender:?} of {flow:?}");
        }
    }
}

#[test]
fn a_client_that_vanishes_leaves_nothing_that_runs() {
    let _alone = alone();
    let mut responder = Responder::start();
    for (number, flow) in crowded().into_iter().enumerate() {
        let source = [127, 0, 1, number as u8];
        let socket = socket_from(source, &responder);
        let client = RawClient::connect(responder.address, source);
        let started = ServerMessage::Started { phase: 1 };
        assert_eq!(ask(&client, &socket, &flow), started);
        std::thread::sleep(Duration::from_millis(200));
        drop(client);
        // The claim of its address is given back.
        let begun = Instant::now();
        loop {
            let next = RawClient::connect(responder.address, source);
            // Of a port of its own: what comes from the other goes to the stream that was.
            let socket = socket_from(source, &responder);
            match ask(&next, &socket, &flow) {
                ServerMessage::Started { .. } => break,
                ServerMessage::Refused {
                    reason: Refusal::Busy,
                    ..
                } => assert!(begun.elapsed() < Duration::from_secs(20), "{flow:?}"),
                other => panic!("{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // Some of them still run: the responder stops all the same.
    let took = responder.stop();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

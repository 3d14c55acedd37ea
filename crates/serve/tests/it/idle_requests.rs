//! What a responder does for its client without load, over loopback: it traces the reverse path, and speaks first on
//! connections that were silent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::common::{RawClient, Responder, TIMEOUT};
use plumb_load::ClientError;
use plumb_serve::Config;
use plumb_wire::native::control::silence::{FIRST_WORD, Silence};
use plumb_wire::native::control::trace::TraceRequest;
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage, Token};
use plumb_wire::native::spec::{MAX_SILENT, MAX_SILENT_PER_ADDRESS, TRACE_BURST};

const ASKED: TraceRequest = TraceRequest {
    id: 3,
    protocol: None,
    max_hops: 30,
    cycles: 2,
};

fn refusal<T: std::fmt::Debug>(told: Result<T, ClientError>) -> Refusal {
    match told {
        Err(ClientError::TraceRefused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_way_back_over_the_loopback_is_one_hop() {
    let mut responder = Responder::start();
    let client = responder.client();
    let report = client.trace_back(&ASKED, TIMEOUT).unwrap();
    assert_eq!(report.towards, client.local_address().unwrap().ip());
    let to_first = report.probes.iter().filter(|probe| probe.hop == 1);
    let answers: Vec<_> = to_first
        .map(|probe| probe.answer.as_ref().unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "{report:?}");
    for answer in answers {
        assert!(answer.arrival && answer.from == report.towards);
    }
    // The session goes on meanwhile, ends with the responder, and nothing of a trace keeps that up.
    let asking = RawClient::connect(responder.address, [127, 0, 0, 1]);
    asking.send(&ClientMessage::Trace(ASKED));
    asking.send(&ClientMessage::Ping { id: 9 });
    let answers = [asking.receive(), asking.receive()];
    assert!(
        answers.contains(&ServerMessage::Pong { id: 9 }),
        "{answers:?}"
    );
    asking.send(&ClientMessage::Trace(ASKED));
    assert!(responder.stop() < Duration::from_secs(2));
}

#[test]
fn traces_are_bounded_and_may_be_switched_off() {
    let responder = Responder::start();
    let client = responder.client();
    let mut reasons: Vec<_> = (0..TRACE_BURST + 4)
        .map(|_| client.trace_back(&ASKED, TIMEOUT))
        .collect();
    // Those that it may at once, and one more for each second that they took.
    assert!(reasons.iter().take(TRACE_BURST as usize).all(Result::is_ok));
    assert_eq!(refusal(reasons.pop().unwrap()), Refusal::Busy);
    let too_far = TraceRequest {
        max_hops: 255,
        ..ASKED
    };
    assert_eq!(
        refusal(client.trace_back(&too_far, TIMEOUT)),
        Refusal::Malformed
    );
    let silent = Responder::with(Config {
        traces: false,
        ..Config::default()
    });
    assert_eq!(
        refusal(silent.client().trace_back(&ASKED, TIMEOUT)),
        Refusal::NotPermitted
    );
}

/// A connection from a loopback address that asks for a silence by hand.
fn hushed(responder: SocketAddr, source: [u8; 4], token: Token, ms: u64) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect_timeout(&responder.into(), TIMEOUT).unwrap();
    let mut socket: TcpStream = socket.into();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let time = Duration::from_millis(ms);
    socket.write_all(&Silence { token, time }.encode()).unwrap();
    socket
}

/// What is read first: a byte, or the end.
fn first(socket: &mut TcpStream) -> Option<u8> {
    let mut byte = [0];
    (socket.read(&mut byte).unwrap_or(0) == 1).then_some(byte[0])
}

#[test]
fn the_responder_speaks_first_when_the_silence_ends() {
    let responder = Responder::start();
    let client = responder.client();
    let connections = client.silent_connections();
    let begun = Instant::now();
    let mut sockets = [700, 300].map(|ms| {
        (
            ms,
            connections
                .open(Duration::from_millis(ms), TIMEOUT)
                .unwrap(),
        )
    });
    sockets.reverse();
    for (ms, socket) in &mut sockets {
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        assert_eq!(first(socket), Some(FIRST_WORD));
        assert!(begun.elapsed() >= Duration::from_millis(*ms));
    }
    // They end with the session.
    drop(client);
    assert_eq!(first(&mut sockets[0].1), None);
}

#[test]
fn nobody_is_spoken_to_who_did_not_ask() {
    let responder = Responder::start();
    let client = RawClient::connect(responder.address, [127, 0, 0, 1]);
    // Somebody else's session, and none.
    let begun = Instant::now();
    for (source, token) in [
        ([127, 0, 0, 2], client.token),
        ([127, 0, 0, 1], Token([1; 16])),
    ] {
        assert_eq!(
            first(&mut hushed(responder.address, source, token, 1)),
            None
        );
    }
    assert!(begun.elapsed() < TIMEOUT, "they are closed at once");
    // More than a session may have.
    let mut many: Vec<_> = (0..=MAX_SILENT)
        .map(|_| {
            let socket = hushed(responder.address, [127, 0, 0, 1], client.token, 1200);
            // One after the other, as they are counted.
            client.send(&ClientMessage::Ping { id: 1 });
            client.receive();
            socket
        })
        .collect();
    let spoken = many.iter_mut().filter_map(first).count();
    assert_eq!(spoken, MAX_SILENT);
}

#[test]
fn silent_connections_of_one_address_are_bounded() {
    let responder = Responder::start();
    let all = |source| -> Vec<_> {
        let sessions: Vec<_> = (0..=MAX_SILENT_PER_ADDRESS / MAX_SILENT)
            .map(|_| RawClient::connect(responder.address, source))
            .collect();
        let hush = |client: &RawClient| {
            let socket = hushed(responder.address, source, client.token, 1200);
            // One after the other, as they are counted.
            client.send(&ClientMessage::Ping { id: 1 });
            client.receive();
            socket
        };
        let sockets = (0..MAX_SILENT).flat_map(|_| sessions.iter().map(hush));
        let mut sockets: Vec<_> = sockets.collect();
        let spoken = sockets.iter_mut().filter_map(first).count();
        assert_eq!(spoken, MAX_SILENT_PER_ADDRESS);
        sockets
    };
    let _held = all([127, 0, 2, 1]);
    // They are kept for a while, and another address has its own.
    all([127, 0, 2, 2]);
}

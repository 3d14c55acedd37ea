//! Two connections that carry payload to each other.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::quic::prepare_quic;
use crate::tls::{Identity, Trust};
use plumb_model::direction::OneDirection;
use plumb_net::bulk::share_port;
use plumb_wire::native::control::Token;
use plumb_wire::native::control::frame::Preamble;

fn stream(socket: BulkSocket) -> QuicStream {
    prepare_quic(&socket).unwrap();
    QuicStream {
        name: Preamble {
            token: Token([0; 16]),
            phase: 1,
            stream: 0,
            role: OneDirection::Up,
            tls: false,
        },
        flow: QuicFlow::default(),
        socket,
    }
}

/// A client that trusts `trusted` sends to a server that is `server`.
fn exchange(server: &Identity, trusted: &Identity) -> (Seen, Seen) {
    let place = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    share_port(&place).unwrap();
    let local = place.local_addr().unwrap();
    let near = BulkSocket::connect(local).unwrap();
    let far = BulkSocket::beside(local, near.local_addr().unwrap()).unwrap();
    let trust = Trust::in_certificate(trusted.fingerprint()).unwrap();
    let client = Driver::new(stream(near), &QuicSide::Client(trust), true).unwrap();
    let server = QuicSide::Server(server.clone());
    let server = Driver::new(stream(far), &server, false).unwrap();
    let stage = Stage::begin(Duration::from_millis(500), Some(100_000));
    let deep = |run: Box<dyn FnOnce() -> Seen + Send>| {
        let thread = std::thread::Builder::new().stack_size(4 << 20);
        thread.spawn(run).unwrap()
    };
    let (near_stage, far_stage) = (Arc::clone(&stage), stage);
    let near = deep(Box::new(move || {
        client.run(&AtomicU64::new(0), &near_stage)
    }));
    let far = deep(Box::new(move || server.run(&AtomicU64::new(0), &far_stage)));
    (near.join().unwrap(), far.join().unwrap())
}

#[test]
fn payload_arrives_at_who_has_the_certificate_that_was_told_of() {
    let [right, wrong] = [(); 2].map(|()| Identity::generate().unwrap());
    let (near, far) = exchange(&right, &right);
    assert!(near.ended.is_none() && far.ended.is_none());
    assert!(near.handshake_s.is_some() && near.sender.sent_packets > 0);
    // Sent and received draw on the one budget here.
    assert!(far.counts.last().unwrap().bytes > 0);
    let (near, far) = exchange(&right, &wrong);
    assert!(near.ended.unwrap().error.contains("certificate"));
    assert!(far.counts.last().unwrap().bytes == 0);
}

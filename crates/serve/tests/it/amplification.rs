//! What an address gets that has proved nothing: no more bytes than it sent, on every UDP port, whatever it says.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use plumb_model::direction::OneDirection;
use plumb_serve::{Config, Transport, Wanted, protocols};
use plumb_wire::native::control::Token;
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::datagram;
use plumb_wire::native::echo::{Cookie, Datagram, MIN_BYTES};
use plumb_wire::native::spec::TOKEN_BYTES;
use plumb_wire::stamp::{ErrorEstimate, Request};
use plumb_wire::{iperf3, irtt};

use crate::common::Responder;

/// The answer to irtt's open packet has a token that its request has not, as the protocol has it.
const IRTT_TOKEN_BYTES: usize = 8;

/// How long all answers are waited for: they are made at once.
const PATIENCE: Duration = Duration::from_millis(500);

/// What each protocol begins with, and what looks like the middle of it.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let large = Datagram {
        answer_bytes: 1400,
        ..Datagram::probe(Cookie::default(), 1, 0, 0)
    };
    let stamp = |sequence| Request {
        sequence,
        sent_ns: 0,
        error: ErrorEstimate::new(false, Duration::from_secs(1)),
        session: 7,
    };
    let wanted = irtt::Agreed {
        duration: Duration::from_secs(3600),
        interval: Duration::from_millis(1),
    };
    let attach = Preamble {
        token: Token([7; TOKEN_BYTES]),
        phase: 1,
        stream: 0,
        role: OneDirection::Down,
        tls: false,
    };
    let mut all = vec![
        (
            "cookie request",
            Datagram::cookie_request(7).write(MIN_BYTES),
        ),
        (
            "long cookie request",
            Datagram::cookie_request(7).write(1400),
        ),
        ("probe without a cookie", large.write(MIN_BYTES)),
        (
            "attach without a session",
            datagram::attach(&attach).to_vec(),
        ),
        ("STAMP", stamp(0).write(None, &[], 0)),
        ("long STAMP", stamp(1).write(None, &[], 1400)),
        ("short TWAMP", stamp(2).write(None, &[], 0)[..14].to_vec()),
        (
            "irtt open",
            irtt::Client::new(None, wanted, 1472, None).open(),
        ),
        ("irtt echo", [&[0x14, 0xa7, 0x5b, 0][..], &[9; 60]].concat()),
        ("iperf3 stream", iperf3::CONNECT.to_vec()),
        // A first packet of QUIC (RFC 9000, section 17.2.2) is answered by up to three times as much.
        ("QUIC", [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 1194]].concat()),
        ("empty", Vec::new()),
    ];
    for length in [1, 4, 12, 16, 44, 100, 500, 1400] {
        all.push(("zeros", vec![0; length]));
        all.push(("ones", vec![0xff; length]));
    }
    all
}

#[test]
fn nobody_gets_more_than_it_sent_before_it_has_proved_its_address() {
    let all = protocols::ALL.iter().map(|entry| Wanted {
        entry,
        port: 0,
        is_required: true,
    });
    let responder = Responder::with(Config {
        protocols: all.collect(),
        ..Config::default()
    });
    let mut ports: Vec<(&str, u16)> = responder
        .entries()
        .filter(|(_, at)| at.transport == Transport::Udp)
        .map(|(name, at)| (name, at.address.port()))
        .collect();
    ports.push(("native", responder.address.port()));
    assert!(ports.len() >= 4, "{ports:?}");
    let mut asked = Vec::new();
    for (protocol, port) in &ports {
        for (what, bytes) in messages() {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let to = SocketAddr::from(([127, 0, 0, 1], *port));
            socket.send_to(&bytes, to).unwrap();
            asked.push((*protocol, what, bytes.len(), socket, 0));
        }
    }
    let until = Instant::now() + PATIENCE;
    let mut buffer = [0; 65_536];
    while Instant::now() < until {
        for (.., socket, received) in &mut asked {
            while let Ok((length, _)) = socket.recv_from(&mut buffer) {
                *received += length;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut answered = 0;
    for (protocol, what, sent, _, received) in asked {
        let more = match (protocol, what) {
            ("irtt", "irtt open") => IRTT_TOKEN_BYTES,
            _ => 0,
        };
        assert!(
            received <= sent + more,
            "{received} bytes for {sent}: {what} to {protocol}"
        );
        answered += usize::from(received > 0);
    }
    // The cookies, STAMP's and irtt's are answered.
    assert!(answered >= 4, "{answered}");
}

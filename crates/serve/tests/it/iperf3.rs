//! iperf3 by hand: clients that wait, that ask for what is not served, that break off, and that mean harm.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use plumb_serve::{Config, Wanted, protocols};
use plumb_wire::iperf3::{CONNECT, CONNECTED, ErrorCode, State, cookie, frame, server_error};

use crate::common::{Responder, connect_from, in_turn};

/// Longer than anything that is to be waited for here.
const PATIENCE: Duration = Duration::from_secs(50);

fn responder(config: Config) -> Responder {
    let iperf3 = Wanted {
        entry: protocols::named("iperf3").unwrap(),
        port: 0,
        is_required: true,
    };
    Responder::with(Config {
        protocols: vec![iperf3],
        ..config
    })
}

/// A connection from a loopback address, which says that it is of that test.
fn begin(responder: &Responder, source: [u8; 4], number: u8) -> TcpStream {
    let port = responder.port_of("iperf3").unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut socket = connect_from(address, source);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(&cookie([number; 36])).unwrap();
    socket
}

fn state(socket: &mut TcpStream) -> Option<State> {
    let mut byte = [0];
    socket.read_exact(&mut byte).ok()?;
    State::of(byte[0])
}

/// What is answered to these parameters.
fn answer<const N: usize>(socket: &mut TcpStream, json: &str) -> [u8; N] {
    assert_eq!(state(socket), Some(State::ParameterExchange));
    socket.write_all(&frame(json)).unwrap();
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes).unwrap();
    bytes
}

/// Whether the connection ends within [`PATIENCE`].
fn ends(socket: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let begun = Instant::now();
    let _ = socket.read_to_end(&mut rest);
    begun.elapsed() < PATIENCE
}

#[test]
fn what_is_not_served_has_the_number_that_clients_know() {
    let _turn = in_turn();
    let responder = responder(Config::default());
    for (json, code) in [
        (r#"{"sctp":true,"time":1}"#, ErrorCode::Protocol),
        (
            r#"{"tcp":true,"time":1,"parallel":1000}"#,
            ErrorCode::Streams,
        ),
        (r#"{"tcp":true,"time":86400}"#, ErrorCode::Duration),
        (
            r#"{"tcp":true,"time":1,"authtoken":"x"}"#,
            ErrorCode::Authorization,
        ),
        ("[[[[", ErrorCode::ReceiveParameters),
        (r#"{"time":-5}"#, ErrorCode::ReceiveParameters),
    ] {
        let mut socket = begin(&responder, [127, 0, 3, 1], 1);
        assert_eq!(
            answer::<9>(&mut socket, json),
            server_error(code, 0),
            "{json}"
        );
        assert!(ends(&mut socket), "{json}");
    }
    // More parameters than there are.
    let mut socket = begin(&responder, [127, 0, 3, 1], 1);
    assert_eq!(state(&mut socket), Some(State::ParameterExchange));
    socket.write_all(&u32::MAX.to_be_bytes()).unwrap();
    assert_eq!(state(&mut socket), Some(State::ServerError));
}

#[test]
fn a_client_that_breaks_off_leaves_room_for_the_next() {
    let _turn = in_turn();
    let responder = responder(Config::default());
    let tcp = r#"{"tcp":true,"time":5}"#;
    let udp = r#"{"udp":true,"time":5,"len":1000}"#;
    let to_streams = |json: &str| {
        let mut control = begin(&responder, [127, 0, 3, 2], 2);
        let [answered] = answer(&mut control, json);
        assert_eq!(State::of(answered), Some(State::CreateStreams));
        control
    };
    // Before the parameters, before the streams, and while the test runs.
    for leaves_at in 0..4 {
        match leaves_at {
            0 => drop(begin(&responder, [127, 0, 3, 2], 2)),
            1 => drop(to_streams(tcp)),
            2 => drop(to_streams(udp)),
            _ => {
                let mut control = to_streams(tcp);
                let mut data = begin(&responder, [127, 0, 3, 2], 2);
                assert_eq!(state(&mut control), Some(State::TestStart));
                assert_eq!(state(&mut control), Some(State::TestRunning));
                let _ = data.write(&[0; 1000]);
            }
        }
        // One address has one test at a time.
        let begun = Instant::now();
        let mut next = begin(&responder, [127, 0, 3, 2], 3);
        assert_eq!(
            state(&mut next),
            Some(State::ParameterExchange),
            "{leaves_at}"
        );
        assert!(
            begun.elapsed() < PATIENCE,
            "{leaves_at}: {:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn clients_of_several_addresses_are_served_at_once_and_one_more_waits() {
    let _turn = in_turn();
    let responder = responder(Config {
        max_loads: 2,
        ..Config::default()
    });
    let mut first = begin(&responder, [127, 0, 3, 3], 4);
    assert_eq!(state(&mut first), Some(State::ParameterExchange));
    let mut second = begin(&responder, [127, 0, 3, 4], 5);
    assert_eq!(state(&mut second), Some(State::ParameterExchange));
    let mut third = begin(&responder, [127, 0, 3, 5], 6);
    third
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    assert_eq!(state(&mut third), None, "there are two at once");
    drop(first);
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(state(&mut third), Some(State::ParameterExchange));
}

#[test]
fn datagrams_are_answered_to_a_test_alone_and_with_no_more_bytes() {
    let _turn = in_turn();
    let responder = responder(Config::default());
    let port = responder.port_of("iperf3").unwrap();
    let asks = |source: [u8; 4], datagram: &[u8]| {
        let socket = UdpSocket::bind((IpAddr::from(source), 0)).unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        let patience = Duration::from_millis(300);
        socket.set_read_timeout(Some(patience)).unwrap();
        socket.send(datagram).unwrap();
        let mut buffer = [0; 100];
        let length = socket.recv(&mut buffer).ok()?;
        Some(buffer.get(..length).unwrap().to_vec())
    };
    assert_eq!(asks([127, 0, 3, 6], &CONNECT), None);
    let mut control = begin(&responder, [127, 0, 3, 6], 7);
    let [answered] = answer(&mut control, r#"{"udp":true,"time":1,"len":1000}"#);
    assert_eq!(State::of(answered), Some(State::CreateStreams));
    // Neither another address nor anything else begins its stream.
    assert_eq!(asks([127, 0, 3, 7], &CONNECT), None);
    assert_eq!(asks([127, 0, 3, 6], b"much longer than that"), None);
    assert_eq!(
        asks([127, 0, 3, 6], &CONNECT).as_deref(),
        Some(CONNECTED.as_slice())
    );
    assert_eq!(state(&mut control), Some(State::TestStart));
    assert_eq!(
        asks([127, 0, 3, 6], &CONNECT),
        None,
        "it has all its streams"
    );
}

#[test]
fn noise_ends_and_a_stop_ends_all() {
    let _turn = in_turn();
    let mut responder = responder(Config::default());
    let port = responder.port_of("iperf3").unwrap();
    for noise in [&[0u8; 3][..], &[0xff; 37], &[b'a'; 3000]] {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _ = socket.write_all(noise);
    }
    let mut control = begin(&responder, [127, 0, 3, 8], 8);
    let [answered] = answer(&mut control, r#"{"tcp":true,"time":60,"reverse":true}"#);
    assert_eq!(State::of(answered), Some(State::CreateStreams));
    let _data = begin(&responder, [127, 0, 3, 8], 8);
    assert_eq!(state(&mut control), Some(State::TestStart));
    assert_eq!(state(&mut control), Some(State::TestRunning));
    assert!(responder.stop() < Duration::from_secs(2));
    assert_eq!(state(&mut control), Some(State::ServerTerminate));
}

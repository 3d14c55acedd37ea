//! A responder that strangers use, many at once, and some of whom mean harm: whoever means well is
//! served, or told when.
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{
    PACED_BPS, RawClient, Responder, alone, connect_from, flows, in_turn, paced_plan, run, stamp_at,
};
use plumb_load::{Caller, Client};
use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol;
use plumb_net::egress::Outlet;
use plumb_net::namespace::Namespaces;
use plumb_net::netlink::{Netlink, interface_index};
use plumb_serve::{Config, Listening, Transport, Wanted, protocols};
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};
use plumb_wire::native::control::flow::{Flow, Flows, TcpFlow};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::trace::TraceRequest;
use plumb_wire::native::control::{ClientMessage, ServerMessage, Start};
use plumb_wire::native::datagram::{self, Tag};
use plumb_wire::native::echo::{Cookie, Datagram, Kind};
use plumb_wire::native::spec;
use plumb_wire::stamp::{ErrorEstimate, Request};
use plumb_wire::{iperf3, irtt};

/// What a good client may lose.
const MOST_LOST: f64 = 0.05;

fn socket_from(source: [u8; 4], to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::from(source), 0)).unwrap();
    socket.connect(to).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    socket
}

fn cookie(socket: &UdpSocket) -> Cookie {
    let mut buffer = [0; 100];
    for _ in 0..10 {
        socket.send(&Datagram::cookie_request(1).write(64)).unwrap();
        if let Ok(len) = socket.recv(&mut buffer) {
            return Datagram::parse(&buffer[..len]).unwrap().cookie;
        }
    }
    panic!("no cookie");
}

/// Probes the echo every `interval`, and gives the part that was not answered.
fn ping(responder: SocketAddr, source: [u8; 4], count: u32, interval: Duration) -> f64 {
    let socket = socket_from(source, responder);
    let cookie = cookie(&socket);
    let begun = Instant::now();
    let mut buffer = [0; 100];
    let mut answered = 0;
    for sequence in 0..count {
        socket
            .send(&Datagram::probe(cookie, 1, sequence, 0).write(64))
            .unwrap();
        let due = begun + interval * (sequence + 1);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left)).unwrap();
            answered += u32::from(socket.recv(&mut buffer).is_ok());
        }
    }
    // What a busy machine answers late.
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    while answered < count && socket.recv(&mut buffer).is_ok() {
        answered += 1;
    }
    1.0 - f64::from(answered) / f64::from(count)
}

/// Probes that come at once, fifty times a second: several times what the kernel's queue of a socket holds by
/// default.
const BURST: u32 = 1000;

/// A client that does what `plumb check` does: greets, probes and loads.
fn good_client(responder: SocketAddr) {
    let patience = Caller {
        longest: Duration::from_secs(20),
        ..Caller::PLAIN
    };
    let outlet = Outlet::default();
    let timeout = Duration::from_secs(5);
    let mut client = Client::connect_in_turn(&outlet, "box", responder, timeout, patience).unwrap();
    let lost = ping(responder, [127, 0, 0, 1], 100, Duration::from_millis(10));
    assert!(lost <= MOST_LOST, "{lost}");
    let carried = run(&mut client, &paced_plan(1, 0, 1000))
        .unwrap()
        .down
        .unwrap()
        .result;
    let part = carried.bps / PACED_BPS as f64;
    assert!(part >= 1.0 - MOST_LOST, "it got {part} of its rate");
}

/// Has good clients come, one after the other, while `attack` goes on.
fn beside(responder: &Responder, clients: u32, attack: impl Fn(&AtomicBool) + Sync) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attacking = scope.spawn(|| attack(&stop));
        std::thread::sleep(Duration::from_millis(500));
        let good = scope.spawn(|| (0..clients).for_each(|_| good_client(responder.address)));
        let outcome = good.join();
        stop.store(true, Ordering::Relaxed);
        attacking.join().unwrap();
        outcome.unwrap();
    });
}

/// Does it again and again until it is to stop.
fn until(stop: &AtomicBool, mut harm: impl FnMut()) {
    while !stop.load(Ordering::Relaxed) {
        harm();
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn half_open_connections_of_two_addresses_keep_nobody_out() {
    let _alone = alone();
    let responder = Responder::start();
    beside(&responder, 3, |stop| {
        let mut held: Vec<TcpStream> = Vec::new();
        let mut number = 0_u8;
        until(stop, || {
            for _ in 0..10 {
                number = number.wrapping_add(1);
                let mut socket = connect_from(responder.address, [127, 0, 2, number % 2 + 1]);
                // The beginning of a frame, of which no more comes.
                let _ = socket.write_all(&[0, 0]);
                held.push(socket);
            }
            let over = held.len().saturating_sub(600);
            held.drain(..over);
        });
    });
}

#[test]
fn one_address_does_not_hold_all_sessions() {
    let beats = |client: &RawClient, _| client.try_send(&ClientMessage::Ping { id: 0 });
    holds_all_sessions(&[[127, 0, 2, 1].into()], &beats);
}

#[test]
fn the_addresses_of_one_64_do_not_hold_all_sessions() {
    // Half of the places each two.
    let from = |n: usize| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, n as u16));
    let sources: Vec<_> = (1..=spec::MAX_CLIENTS / 2).map(from).collect();
    let network = Namespaces::create("one-64", || Ok::<_, io::Error>(())).unwrap();
    let beside_another = network.in_network(|| {
        let mut netlink = Netlink::open().unwrap();
        let loopback = interface_index("lo")?;
        netlink.set_up(loopback, None).unwrap();
        for source in &sources {
            netlink.add_address(loopback, *source, 64).unwrap();
        }
        let beats = |client: &RawClient, _| client.try_send(&ClientMessage::Ping { id: 0 });
        holds_all_sessions(&sources, &beats);
        Ok::<_, io::Error>(())
    });
    beside_another.unwrap();
}

#[test]
fn phases_that_never_run_hold_no_session() {
    holds_all_sessions(&[[127, 0, 2, 1].into()], &|client, phase| {
        let start = ClientMessage::Start(Start {
            phase,
            flows: flows(1, 0, TcpFlow::default()),
            duration_s: 1.0,
            byte_limit: None,
        });
        if !client.try_send(&start) {
            return false;
        }
        match client.try_receive() {
            Some(ServerMessage::Ready { .. }) => {
                client.try_send(&ClientMessage::Stop { phase }) && client.try_receive().is_some()
            }
            answer => answer.is_some(),
        }
    });
}

/// Whoever has these addresses takes every place, and `beats` in all of its sessions, each time with a higher
/// number.
fn holds_all_sessions(sources: &[IpAddr], beats: &(dyn Fn(&RawClient, u32) -> bool + Sync)) {
    let _turn = in_turn();
    let responder = Responder::start();
    beside(&responder, 2, |stop| {
        let mut sources = sources.iter().cycle();
        let mut connect = || {
            let source = *sources.next().unwrap();
            let mut to = responder.address;
            if source.is_ipv6() {
                to.set_ip(Ipv6Addr::LOCALHOST.into());
            }
            RawClient::connect_in_turn(to, source, None)
        };
        let mut held: Vec<RawClient> = Vec::new();
        let mut beat = Instant::now();
        let mut number = 0;
        until(stop, || {
            while let Ok(client) = connect() {
                held.push(client);
            }
            if beat.elapsed() > spec::HEARTBEAT_INTERVAL {
                beat = Instant::now();
                number += 1;
                held.retain(|client| beats(client, number));
            }
        });
        assert!(held.len() > 10, "it held many: {}", held.len());
    });
}

#[test]
fn a_token_is_no_use_to_another_address() {
    let _turn = in_turn();
    let responder = Responder::start();
    let (own, other) = ([127, 0, 0, 1], [127, 0, 2, 1]);
    let ends = |mut data: &TcpStream| {
        data.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let _ = data.write_all(&[1]);
        !std::io::Read::read(&mut data, &mut [0]).is_ok_and(|count| count > 0)
    };
    let client = RawClient::connect(responder.address, own);
    granted(&client, flows(1, 0, TcpFlow::default()), 5.0).unwrap();
    assert!(ends(&client.attach_from(other, 1, 0, OneDirection::Down)));
    let data = client.attach(1, 0, OneDirection::Down);
    assert_eq!(client.receive(), ServerMessage::Started { phase: 1 });
    assert!(!ends(&data));
    drop(client);
    // Connections of single transactions.
    let client = RawClient::connect_in_turn(responder.address, own, Some(20)).unwrap();
    let flow = Flow::Transactions(TransactionFlow {
        transport: Protocol::Tcp,
        connect: true,
        request_bytes: 1,
        response_bytes: 1,
        rate_tps: None,
        on_demand: false,
    });
    let (count, role) = (1, OneDirection::Up);
    granted(&client, vec![Flows { count, role, flow }], 5.0).unwrap();
    let _stands_for_it = client.attach(1, 0, OneDirection::Up);
    assert_eq!(client.receive(), ServerMessage::Started { phase: 1 });
    assert!(ends(&client.attach_from(other, 1, 0, OneDirection::Up)));
    assert!(!ends(&client.attach(1, 0, OneDirection::Up)));
}

#[test]
fn old_cookies_draw_no_more_than_is_sent() {
    let _alone = alone();
    let responder = Responder::start();
    beside(&responder, 1, |stop| {
        let socket = socket_from([127, 0, 2, 1], responder.address);
        let cookie = cookie(&socket);
        let probe = Datagram {
            answer_bytes: 65_000,
            ..Datagram::probe(cookie, 1, 1, 0)
        };
        let mut buffer = vec![0; 65_536];
        until(stop, || {
            for _ in 0..20 {
                let sent = socket.send(&probe.write(92)).unwrap();
                let got = socket.recv(&mut buffer).unwrap();
                assert_eq!(got, sent);
            }
        });
    });
}

#[test]
fn bursts_at_the_echo_keep_nobody_elses_probes_out() {
    let _alone = alone();
    let responder = Responder::start();
    beside(&responder, 1, |stop| {
        let socket = socket_from([127, 0, 2, 1], responder.address);
        let probe = Datagram::probe(cookie(&socket), 1, 1, 0).write(64);
        until(stop, || {
            for _ in 0..BURST {
                // Nobody takes the answers.
                socket.send(&probe).unwrap();
            }
        });
    });
}

#[test]
fn transactions_over_udp_get_what_their_phase_declared_and_nothing_after() {
    let _turn = in_turn();
    let responder = Responder::start();
    let client = RawClient::connect(responder.address, [127, 0, 2, 1]);
    let socket = socket_from([127, 0, 2, 1], responder.address);
    let cookie = cookie(&socket);
    let draws = |bytes| {
        let probe = Datagram {
            answer_bytes: bytes,
            ..Datagram::probe(cookie, 1, 1, 0)
        };
        socket.send(&probe.write(92)).unwrap();
        let mut buffer = vec![0; 65_536];
        let len = socket.recv(&mut buffer).unwrap();
        assert_eq!(Datagram::parse(&buffer[..len]).unwrap().kind, Kind::Reply);
        len
    };
    assert_eq!(draws(5000), 92);
    let flow = TransactionFlow {
        transport: Protocol::Udp,
        connect: false,
        request_bytes: 92,
        response_bytes: 5000,
        rate_tps: None,
        on_demand: false,
    };
    let transactions = Flows {
        count: 1,
        role: OneDirection::Up,
        flow: Flow::Transactions(flow),
    };
    let _stream = client.start(vec![transactions], 10.0);
    assert_eq!((draws(5000), draws(5001)), (5000, 92));
    client.send(&ClientMessage::Stop { phase: 1 });
    while !matches!(client.receive(), ServerMessage::Result { .. }) {}
    assert_eq!(draws(5000), 92);
}

#[test]
fn schedules_that_nobody_keeps_slow_nobody_down() {
    let _alone = alone();
    let responder = Responder::start();
    beside(&responder, 1, |stop| {
        let mut number = 0_u8;
        until(stop, || {
            // One at a time: as fast as a machine sends is what load is for.
            number = number.wrapping_add(1);
            let source = [127, 0, 2, number];
            let client = RawClient::connect(responder.address, source);
            let flow = UdpFlow::new(64, Pattern::Constant { pps: 1e9 });
            let _socket = start_udp(&client, responder.address, source, flow, 300.0);
            std::thread::sleep(Duration::from_millis(50));
        });
    });
}

#[test]
fn loops_through_the_reflector_slow_nobody_down() {
    let _alone = alone();
    let responder = Responder::with(Config {
        protocols: vec![stamp_at(0, true)],
        ..Config::default()
    });
    let reflector = SocketAddr::from(([127, 0, 0, 1], responder.stamp_port.unwrap()));
    beside(&responder, 1, |stop| {
        let echo = socket_from([127, 0, 2, 1], reflector);
        let request = Request {
            sequence: 0,
            sent_ns: 1,
            error: ErrorEstimate::new(false, Duration::from_secs(1)),
            session: 1,
        };
        for _ in 0..100 {
            echo.send(&request.write(None, &[], 0)).unwrap();
        }
        let (mut passed, mut buffer) = (0, [0; 100]);
        echo.set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        while !stop.load(Ordering::Relaxed) {
            if let Ok(len) = echo.recv(&mut buffer) {
                echo.send(&buffer[..len]).unwrap();
                passed += 1;
            }
        }
        assert!(passed <= 100, "{passed}");
    });
}

/// Starts phase 1 of one UDP stream down in its turn, and gives its socket.
fn start_udp(
    client: &RawClient,
    responder: SocketAddr,
    source: [u8; 4],
    flow: UdpFlow,
    duration_s: f64,
) -> Result<UdpSocket, String> {
    let flows = vec![Flows {
        count: 1,
        role: OneDirection::Down,
        flow: Flow::Udp(flow),
    }];
    granted(client, flows, duration_s)?;
    let socket = socket_from(source, responder);
    socket
        .send(&datagram::attach(&first_stream(client)))
        .unwrap();
    match client.receive_in_turn() {
        ServerMessage::Started { phase: 1 } => Ok(socket),
        other => panic!("{other:?}"),
    }
}

fn first_stream(client: &RawClient) -> Preamble {
    Preamble {
        token: client.token,
        phase: 1,
        stream: 0,
        role: OneDirection::Down,
        tls: false,
    }
}

/// Asks for phase 1, and gives what it is told when it is refused.
fn granted(client: &RawClient, flows: Vec<Flows>, duration_s: f64) -> Result<(), String> {
    client.send(&ClientMessage::Start(Start {
        phase: 1,
        flows,
        duration_s,
        byte_limit: None,
    }));
    match client.receive_in_turn() {
        ServerMessage::Ready { phase: 1 } => Ok(()),
        ServerMessage::Refused { message, .. } => Err(message),
        other => panic!("{other:?}"),
    }
}

/// What a client among many wants.
#[derive(Debug, Clone, Copy)]
enum Verb {
    Ping,
    Greet,
    Path,
    Rate,
    Udp,
    Transactions,
    /// A session of irtt, of as many echoes as a ping.
    Irtt,
    Stamp,
    /// A test of iperf3, as far as its turn.
    Iperf3,
    /// A page, and then a load.
    Web,
}

/// Echoes of a client that wants nothing else.
const ECHOES: u32 = 40;

impl Verb {
    /// Does what is another protocol's, and gives what it was told when it was not served; `None` where it is plumb's own.
    fn foreign(
        self,
        responder: &Responder,
        source: [u8; 4],
        lasts: Duration,
    ) -> Option<Result<(), String>> {
        let at = |name| {
            let all: Vec<_> = responder.entries().collect();
            let is_it = |(entry, at): &&(&str, Listening)| {
                let is_tcp = at.transport == Transport::Tcp;
                *entry == name && is_tcp == matches!(name, "iperf3" | "web")
            };
            let (_, at) = all.iter().find(is_it).unwrap();
            SocketAddr::from(([127, 0, 0, 1], at.address.port()))
        };
        match self {
            Self::Stamp => {
                let socket = socket_from(source, at("stamp"));
                let error = ErrorEstimate::new(false, Duration::from_secs(1));
                let ask = |sequence| {
                    let request = Request {
                        sequence,
                        sent_ns: 0,
                        error,
                        session: 1,
                    };
                    request.write(None, &[], 0)
                };
                echoes(&socket, lasts, ask);
            }
            Self::Irtt => {
                let socket = socket_from(source, at("irtt"));
                let wanted = irtt::Agreed {
                    duration: lasts * 10,
                    interval: lasts / ECHOES,
                };
                let mut client = irtt::Client::new(None, wanted, 60, None);
                let mut buffer = [0; 200];
                let opened = (0..10).find_map(|_| {
                    socket.send(&client.open()).unwrap();
                    let length = socket.recv(&mut buffer).ok()?;
                    client.opened(&buffer[..length])
                });
                opened.expect("no session").unwrap();
                echoes(&socket, lasts, |sequence| {
                    client.echo(sequence, 60).unwrap()
                });
            }
            Self::Iperf3 => {
                let mut control = connect_from(at("iperf3"), source);
                let waits = spec::PATIENCE + Duration::from_secs(5);
                control.set_read_timeout(Some(waits)).unwrap();
                control.write_all(&iperf3::cookie([source[3]; 36])).unwrap();
                let mut state = [0];
                std::io::Read::read_exact(&mut control, &mut state).expect("no word of its turn");
                let [state] = state;
                match iperf3::State::of(state) {
                    Some(iperf3::State::ParameterExchange) => {}
                    // iperf3 has no word for when.
                    Some(iperf3::State::AccessDenied) => return Some(Err(TOLD.to_owned())),
                    other => panic!("{other:?}"),
                }
            }
            Self::Web => {
                let get = |path: &str| {
                    let mut socket = connect_from(at("web"), source);
                    let waits = spec::PATIENCE + Duration::from_secs(5);
                    socket.set_read_timeout(Some(waits)).unwrap();
                    let request =
                        format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
                    socket.write_all(request.as_bytes()).unwrap();
                    let mut answer = Vec::new();
                    let _ = std::io::Read::read_to_end(&mut socket, &mut answer);
                    String::from_utf8_lossy(&answer).into_owned()
                };
                assert!(get("/status").starts_with("HTTP/1.1 200"));
                let answer = get("/__down?bytes=100000");
                if answer.starts_with("HTTP/1.1 503") {
                    assert!(
                        answer.to_ascii_lowercase().contains("retry-after: "),
                        "{answer}"
                    );
                    return Some(Err(RETRY_AFTER.to_owned()));
                }
                assert!(
                    answer.starts_with("HTTP/1.1 200") && answer.len() > 100_000,
                    "{}",
                    answer.len()
                );
            }
            _ => return None,
        }
        Some(Ok(()))
    }

    /// Does it, and gives what it was told when it was not served.
    fn run(self, served: &Responder, source: [u8; 4], lasts: Duration) -> Result<(), String> {
        if let Some(outcome) = self.foreign(served, source, lasts) {
            return outcome;
        }
        let responder = served.address;
        if let Self::Ping = self {
            let lost = ping(responder, source, ECHOES, lasts / ECHOES * 2);
            assert!(lost <= MOST_LOST, "{lost}");
            return Ok(());
        }
        let waits_s = spec::PATIENCE.as_secs() as u32;
        let client = RawClient::connect_in_turn(responder, source, Some(waits_s))?;
        let duration_s = lasts.as_secs_f64();
        let paced = TcpFlow {
            pacing_bps: Some(5_000_000),
            ..TcpFlow::default()
        };
        let transactions = TransactionFlow {
            transport: Protocol::Tcp,
            connect: false,
            request_bytes: 1,
            response_bytes: 1,
            rate_tps: None,
            on_demand: false,
        };
        match self {
            Self::Irtt | Self::Stamp | Self::Iperf3 | Self::Web | Self::Ping | Self::Greet => {
                client.send(&ClientMessage::Ping { id: 7 });
                assert_eq!(client.receive(), ServerMessage::Pong { id: 7 });
                return Ok(());
            }
            Self::Path => {
                client.send(&ClientMessage::Trace(TraceRequest {
                    id: 1,
                    protocol: None,
                    max_hops: 2,
                    cycles: 1,
                }));
                return match client.receive_in_turn() {
                    ServerMessage::Traced(_) => Ok(()),
                    ServerMessage::TraceRefused { message, .. } => Err(message),
                    other => panic!("{other:?}"),
                };
            }
            Self::Udp => {
                let flow = UdpFlow::new(100, Pattern::Constant { pps: 100.0 });
                let socket = start_udp(&client, responder, source, flow, duration_s)?;
                let tag = Tag::of(&first_stream(&client));
                let mut buffer = [0; 200];
                let mut beat = Instant::now();
                loop {
                    if beat.elapsed() > spec::HEARTBEAT_INTERVAL {
                        beat = Instant::now();
                        client.send(&ClientMessage::Ping { id: 0 });
                    }
                    let len = socket.recv(&mut buffer).expect("no packet came");
                    if let Some(datagram::Datagram::End { .. }) = tag.parse(&buffer[..len]) {
                        break;
                    }
                }
                socket.send(&tag.end_answer()).unwrap();
            }
            Self::Rate => {
                granted(&client, flows(1, 0, paced), duration_s)?;
                let mut data = client.attach(1, 0, OneDirection::Down);
                let started = ServerMessage::Started { phase: 1 };
                assert_eq!(client.receive_in_turn(), started);
                std::io::Read::read_exact(&mut data, &mut [0; 10_000]).unwrap();
            }
            Self::Transactions => {
                let flows = vec![Flows {
                    count: 1,
                    role: OneDirection::Up,
                    flow: Flow::Transactions(transactions),
                }];
                granted(&client, flows, duration_s)?;
                let mut data = client.attach(1, 0, OneDirection::Up);
                let started = ServerMessage::Started { phase: 1 };
                assert_eq!(client.receive_in_turn(), started);
                for _ in 0..20 {
                    data.write_all(&[1]).unwrap();
                    std::io::Read::read_exact(&mut data, &mut [0; 1]).unwrap();
                }
            }
        }
        let ends = Instant::now() + lasts;
        while let Some(left) = ends.checked_duration_since(Instant::now()) {
            client.send(&ClientMessage::Ping { id: 0 });
            std::thread::sleep(left.min(spec::HEARTBEAT_INTERVAL));
        }
        client.send(&ClientMessage::Stop { phase: 1 });
        loop {
            match client.receive_in_turn() {
                ServerMessage::Result { .. } => return Ok(()),
                ServerMessage::Refused { message, .. } => return Err(message),
                _ => (),
            }
        }
    }
}

/// What a client of iperf3 heard that is to come again, and one of the web, which does not wait for its turn.
const TOLD: &str = "try again in a while";
const RETRY_AFTER: &str = "try again in as many seconds as Retry-After says";

/// Sends those requests over the time, and sees that nearly all are answered.
fn echoes(socket: &UdpSocket, lasts: Duration, ask: impl Fn(u32) -> Vec<u8>) {
    let mut buffer = [0; 2000];
    let mut answered = 0;
    for sequence in 0..ECHOES {
        socket.send(&ask(sequence)).unwrap();
        answered += u32::from(socket.recv(&mut buffer).is_ok());
        std::thread::sleep(lasts / ECHOES);
    }
    let lost = 1.0 - f64::from(answered) / f64::from(ECHOES);
    assert!(lost <= MOST_LOST, "{lost}");
}

/// Ten clients of each of twenty addresses at once, each of which wants something for so long.
fn two_hundred_at_once(lasts: Duration) {
    let _alone = alone();
    let all = protocols::ALL.iter().map(|entry| Wanted {
        entry,
        port: 0,
        is_required: true,
    });
    let responder = Responder::with(Config {
        protocols: all.collect(),
        ..Config::default()
    });
    let mixed = [
        Verb::Ping,
        Verb::Rate,
        Verb::Greet,
        Verb::Udp,
        Verb::Stamp,
        Verb::Transactions,
        Verb::Path,
        Verb::Iperf3,
        Verb::Irtt,
        Verb::Web,
    ];
    let begun = Instant::now();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..200_u8)
            .map(|number| {
                let (from, which) = (number / 10, usize::from(number % 10));
                // Two of them want nothing but load.
                let verb = if from < 2 { Verb::Rate } else { mixed[which] };
                let responder = &responder;
                let run = move || verb.run(responder, [127, 0, 1, from + 1], lasts);
                (from < 2, scope.spawn(run))
            })
            .collect();
        let joined = clients.into_iter();
        joined
            .map(|(greedy, client)| (greedy, client.join().expect("a client failed")))
            .collect()
    });
    let (mut served, mut told) = (0, 0);
    for (greedy, outcome) in outcomes {
        match outcome {
            Ok(()) => served += 1,
            // Who shares its address with nine others that want nothing but load may have to come again.
            Err(message) => {
                let may_be_told = greedy || message == RETRY_AFTER;
                assert!(
                    may_be_told && message.contains("try again in "),
                    "{message}"
                );
                told += 1;
            }
        }
    }
    println!(
        "{served} served, {told} told when, in {:?}",
        begun.elapsed()
    );
}

#[test]
fn two_hundred_clients_at_once_are_served_or_told_when() {
    two_hundred_at_once(Duration::from_millis(500));
}

mod slow {
    /// As long as people measure.
    #[test]
    #[ignore = "slow"]
    fn slow_two_hundred_clients_that_take_their_time() {
        super::two_hundred_at_once(std::time::Duration::from_secs(8));
    }
}

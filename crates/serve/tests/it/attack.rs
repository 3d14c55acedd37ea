//! Everything bad at once, while a good client measures: its result stays what it was, and nothing is wedged afterwards.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use plumb_load::tls::Identity;
use plumb_load::{Caller, Client, ClientError};
use plumb_net::egress::Outlet;
use plumb_serve::{Config, Judge, Transport, Wanted, protocols};
use plumb_wire::native::spec::PATIENCE;

use crate::common::http2::{Http2, PING};
use crate::common::{Responder, TIMEOUT, alone, connect_from, paced_plan};

/// How long the good client measures.
const MEASURES_MS: u64 = 3000;

/// Where each protocol listens, over TCP or UDP.
fn ports(responder: &Responder, transport: Transport) -> Vec<SocketAddr> {
    let own = responder.address.port();
    let others = responder.listening().into_iter();
    let others = others.filter(|at| at.transport == transport);
    let ports = others.map(|at| at.address.port()).chain([own]);
    ports
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .collect()
}

/// What strangers say, in no order that means anything to anybody.
const SAID: &[&[u8]] = &[
    b"",
    b"GET / HTTP/1.1\r\n",
    b"GET /__down?bytes=99999999999999999999 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST /__up HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"POST /__up HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabc",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    // A handshake that is none, and one that says it is long.
    &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0],
    &[22, 3, 3, 255, 255, 1, 0, 255, 255],
    // iperf3's cookie and parameters without an end, and as deep as they go.
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\0\0\0\x1f\xff{\"tcp\":",
    b"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\0\0\0\0\x20[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\0\xff\xff\xff\xff",
    // What plumb's own clients begin with, and then not.
    b"plumb\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    &[0; 300],
    &[0xff; 300],
    // irtt: an open, an echo of a session that nobody has, what is no packet.
    &[0x14, 0xa7, 0x5b, 1, 1, 2],
    &[0x14, 0xa7, 0x5b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0],
    &[0x14, 0xa7, 0x5b, 0xff],
    // STAMP's smallest, and iperf3's first datagram.
    &[0; 44],
    b"9876",
];

/// Says one thing after the other to every port, in many voices, and keeps some of the connections open.
fn rage(responder: &Responder, over: &AtomicBool, said: &AtomicU64) {
    let (tcp, udp) = (
        ports(responder, Transport::Tcp),
        ports(responder, Transport::Udp),
    );
    scope(|scope| {
        for voice in 0..4u8 {
            let (tcp, udp) = (&tcp, &udp);
            scope.spawn(move || {
                let socket =
                    UdpSocket::bind(SocketAddr::from(([127, 0, 9, voice + 1], 0))).unwrap();
                let mut open: Vec<TcpStream> = Vec::new();
                for turn in 0.. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let bytes = SAID[turn % SAID.len()];
                    for port in udp {
                        // A queue that is full takes no more.
                        let _ = socket.send_to(bytes, port);
                    }
                    let port = tcp[turn % tcp.len()];
                    let mut stream = connect_from(port, [127, 0, 9, voice + 1]);
                    let _ = stream.set_write_timeout(Some(Duration::from_millis(10)));
                    let _ = stream.write_all(bytes);
                    open.push(stream);
                    if open.len() > 20 {
                        // The oldest goes: every other one by a reset, with what it was sent unread.
                        drop(open.remove(0));
                    }
                    said.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
    });
}

/// Over HTTP/2, without keeping to the rules: it asks and takes nothing, begins bodies and sends none, and asks for the head of
/// what is endless.
fn rage_over_http2(web: SocketAddr, identity: &Identity, over: &AtomicBool) {
    let mut open = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let mut client = Http2::connect(web, [127, 0, 9, 9], identity, Some(0));
        for _ in 0..8 {
            client.ask("HEAD", "/__down?bytes=1000000000000", false);
            client.ask("GET", "/page.js", false);
            client.ask("POST", "/__check", true);
            client.ask("POST", "/__up", true);
        }
        client.frame(PING, 0, 0, &[0; 8]);
        open.push(client);
        if open.len() > 8 {
            drop(open.remove(0));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let bodies: u64 = open
        .iter_mut()
        .map(|client| client.body_bytes(Duration::from_millis(20)))
        .sum();
    assert_eq!(
        bodies, 0,
        "nothing comes that no window lets through, and no body of HEAD"
    );
}

#[test]
fn a_good_client_measures_the_same_beside_it() {
    let _alone = alone();
    let all = protocols::ALL.iter().map(|entry| Wanted {
        entry,
        port: 0,
        is_required: true,
    });
    let identity = Identity::generate().unwrap();
    let mut config = Config {
        protocols: all.collect(),
        ..Config::default()
    };
    config.settings.web.identity = Some(identity.clone());
    config.settings.web.judge = Some(Judge::new(|_, _, _| b"judged".to_vec()));
    let responder = Responder::with(config);
    let web = SocketAddr::from(([127, 0, 0, 1], responder.port_of("web").unwrap()));
    let rates = || {
        // Loads that strangers begin and do not carry go before it, as long as they have their turn.
        let caller = Caller {
            longest: PATIENCE,
            ..Caller::PLAIN
        };
        let outlet = Outlet::default();
        let mut client =
            Client::connect_in_turn(&outlet, "box", responder.address, TIMEOUT, caller)?;
        let plan = paced_plan(1, 1, MEASURES_MS);
        let outcome = client.run_phase(&plan, &|_| (), &AtomicBool::new(false))?;
        let bps = [outcome.down, outcome.up].map(|direction| direction.map(|d| d.result.bps));
        Ok::<_, ClientError>(bps)
    };
    let calm = rates().unwrap();
    let (over, said) = (AtomicBool::new(false), AtomicU64::new(0));
    let beside = scope(|scope| {
        scope.spawn(|| rage(&responder, &over, &said));
        scope.spawn(|| rage_over_http2(web, &identity, &over));
        std::thread::sleep(Duration::from_millis(300));
        let beside = rates();
        over.store(true, Ordering::Relaxed);
        beside
    });
    let beside = beside.unwrap();
    let said = said.load(Ordering::Relaxed);
    assert!(said > 1000, "{said} is no attack");
    for (calm, beside) in calm.into_iter().zip(beside) {
        let (calm, beside) = (calm.unwrap(), beside.unwrap());
        assert!((beside / calm - 1.0).abs() < 0.05, "{beside} of {calm}");
    }
    // Nothing is wedged: the web answers, and a new client of plumb's is served at once.
    let begun = Instant::now();
    let mut stream = TcpStream::connect(web).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Client::connect("box", responder.address, TIMEOUT).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
}

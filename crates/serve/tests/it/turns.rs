//! Loads over HTTP whose clients hold them without measuring anything, and requests that never end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_load::tls::Identity;
use plumb_serve::{Config, Wanted, protocols};

use crate::common::http2::{HEADERS, Http2, PING};
use crate::common::{Responder, connect_from, in_turn};

const LARGE: &str = "/__down?bytes=1000000000000";

fn responder(config: Config) -> (Responder, SocketAddr, Identity) {
    let identity = Identity::generate().unwrap();
    let mut config = Config {
        protocols: vec![Wanted {
            entry: protocols::named("web").unwrap(),
            port: 0,
            is_required: true,
        }],
        ..config
    };
    config.settings.web.identity = Some(identity.clone());
    let responder = Responder::with(config);
    let web = SocketAddr::from(([127, 0, 0, 1], responder.port_of("web").unwrap()));
    (responder, web, identity)
}

fn get(web: SocketAddr, source: [u8; 4], path: &str) -> TcpStream {
    let mut socket = connect_from(web, source);
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket
}

/// Whether it is that address's turn.
fn is_served(web: SocketAddr, source: [u8; 4]) -> bool {
    let mut status = [0; 12];
    get(web, source, LARGE).read_exact(&mut status).unwrap();
    &status == b"HTTP/1.1 200"
}

#[test]
fn a_load_that_moves_nothing_loses_its_turn() {
    let _turn = in_turn();
    let (_responder, web, identity) = responder(Config {
        max_loads: 2,
        ..Config::default()
    });
    // Neither takes anything, and both show that they are there: by a byte of the next request, and by pings.
    let mut plain = get(web, [127, 0, 12, 1], LARGE);
    let mut http2 = Http2::connect(web, [127, 0, 12, 2], &identity, Some(0));
    http2.ask("GET", LARGE, false);
    assert_eq!(http2.until(HEADERS, Duration::from_secs(3)), 1);
    assert!(!is_served(web, [127, 0, 12, 3]), "both have their turns");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = plain.write_all(b"G");
                http2.frame(PING, 0, 0, &[0; 8]);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        // 5 s in which something may move into buffers, 5 s in which nothing does, and as much again on a busy machine.
        let begun = Instant::now();
        let mut served = [false; 2];
        while !served.iter().all(|served| *served) && begun.elapsed() < Duration::from_secs(20) {
            for (last, served) in served.iter_mut().enumerate() {
                let source = [127, 0, 12, 10 + last as u8];
                *served = *served || is_served(web, source);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(served, [true; 2], "{:?}", begun.elapsed());
    });
}

#[test]
fn a_load_ends_in_time_however_many_transfers_it_has() {
    let _turn = in_turn();
    let (_responder, web, _) = responder(Config {
        max_duration: Duration::from_secs(2),
        ..Config::default()
    });
    let begun = Instant::now();
    let read = |mut socket: TcpStream| {
        let mut buffer = vec![0; 256 * 1024];
        while let Ok(1..) = socket.read(&mut buffer) {}
        begun.elapsed()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| read(get(web, [127, 0, 12, 20], LARGE)));
        std::thread::sleep(Duration::from_millis(1500));
        // One that comes later is a part of it.
        let second = read(get(web, [127, 0, 12, 20], LARGE));
        assert!(second < Duration::from_millis(3400), "{second:?}");
        assert!(first.join().unwrap() < Duration::from_millis(3400));
    });
}

#[test]
fn half_sent_requests_keep_no_client_out() {
    let _turn = in_turn();
    let (responder, web, _) = responder(Config::default());
    let half = b"POST /__up HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\nabc";
    // Eight addresses with as many as one may have: more than there are places.
    let half_sent: Vec<_> = (0..8 * 64)
        .map(|number: u16| {
            let mut socket = connect_from(web, [127, 0, 14, (number % 8) as u8]);
            let _ = socket.write_all(half);
            socket
        })
        .collect();
    for last in 0..20 {
        let mut socket = get(web, [127, 0, 15, last], "/page.js");
        let mut status = [0; 12];
        socket.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }
    // Nor out of what others' clients have: a load has its place.
    assert!(is_served(web, [127, 0, 15, 200]));
    drop((half_sent, responder));
}

#[test]
fn no_body_is_read_that_would_not_be_judged() {
    let mut config = Config::default();
    config.settings.web.judge = Some(plumb_serve::Judge::new(|_, _, _| b"judged".to_vec()));
    let (_responder, web, identity) = responder(config);
    let mut client = Http2::connect(web, [127, 0, 12, 30], &identity, None);
    for _ in 0..32 {
        let stream = client.ask("POST", "/__check", true);
        // It is answered before anything of it has come.
        assert_eq!(client.until(HEADERS, Duration::from_secs(3)), stream);
    }
}

//! What no turn is needed for: HEAD, pages and small bodies. All of it is bounded.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plumb_load::tls::Identity;
use plumb_serve::{Config, Wanted, protocols};

use crate::common::http2::{HEADERS, Http2};
use crate::common::{Responder, connect_from, in_turn};

fn responder(config: Config) -> Responder {
    let web = Wanted {
        entry: protocols::named("web").unwrap(),
        port: 0,
        is_required: true,
    };
    Responder::with(Config {
        protocols: vec![web],
        ..config
    })
}

fn web(responder: &Responder) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], responder.port_of("web").unwrap()))
}

#[test]
fn head_gets_no_body_over_any_version() {
    let identity = Identity::generate().unwrap();
    let mut config = Config::default();
    config.settings.web.identity = Some(identity.clone());
    let responder = responder(config);
    let mut client = Http2::connect(web(&responder), [127, 0, 10, 1], &identity, None);
    for path in [
        "/__down?bytes=1000000000000",
        "/__down?bytes=9",
        "/",
        "/metrics",
        "/nothing",
    ] {
        let stream = client.ask("HEAD", path, false);
        let answer = loop {
            let frame = client.next(Duration::from_secs(5)).unwrap();
            if frame.stream == stream {
                break frame;
            }
        };
        assert_eq!(answer.kind, HEADERS, "{path}");
    }
    assert_eq!(client.body_bytes(Duration::from_millis(300)), 0);
    // A body comes where one is asked for.
    client.ask("GET", "/__down?bytes=9", false);
    assert_eq!(client.body_bytes(Duration::from_millis(300)), 9);

    let mut socket = connect_from(web(&responder), [127, 0, 10, 1]);
    let head = "HEAD /__down?bytes=1000000000000 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let answer = answer.to_ascii_lowercase();
    assert!(
        answer.contains("content-length: 1000000000000\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

/// Bytes that come on a connection until it ends, while requests are written as fast as they are taken.
fn flood(mut socket: TcpStream, request: &str, within: Duration) -> (u64, bool) {
    let many = request.repeat(100);
    let mut writer = socket.try_clone().unwrap();
    let until = Instant::now() + within;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while Instant::now() < until && writer.write_all(many.as_bytes()).is_ok() {}
            let _ = writer.shutdown(std::net::Shutdown::Write);
        });
        socket
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        let (mut bytes, mut buffer) = (0, vec![0; 256 * 1024]);
        while Instant::now() < until {
            match socket.read(&mut buffer) {
                Ok(count @ 1..) => bytes += count as u64,
                _ => return (bytes, true),
            }
        }
        (bytes, false)
    })
}

/// How long one client asks without pause.
const FLOOD: Duration = Duration::from_secs(2);

#[test]
fn small_answers_have_an_allowance() {
    let _turn = in_turn();
    let responder = responder(Config::default());
    for (last, path) in [(2, "/page.js"), (3, "/__down?bytes=1000"), (4, "/nothing")] {
        let source = [127, 0, 10, last];
        let begun = Instant::now();
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        let (mut bytes, mut was_ended) = (0, false);
        while begun.elapsed() < FLOOD {
            let socket = connect_from(web(&responder), source);
            let left = FLOOD.saturating_sub(begun.elapsed());
            let (more, ended) = flood(socket, &request, left);
            bytes += more;
            was_ended |= ended;
        }
        // 4 MB at once and half a megabyte a second; heads take more than they are counted for here and there, and each
        // connection has a refusal.
        let passed_s = begun.elapsed().as_secs_f64();
        assert!(bytes as f64 <= 6e6 + 1e6 * passed_s, "{path}: {bytes} B");
        assert!(was_ended, "{path}");
        // Another address is served meanwhile.
        let mut other = connect_from(web(&responder), [127, 0, 11, last]);
        other
            .write_all(b"GET /page.js HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

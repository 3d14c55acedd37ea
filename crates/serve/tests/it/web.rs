//! HTTP by hand: clients that are not served, that come too soon, that break off, and that mean harm.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_serve::{Config, Judge, Policy, PolicyCell, Wanted, protocols};

use crate::common::{Responder, connect_from, in_turn};

/// Ten times what is waited for here: a silent connection is ended after 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// After this time one who reads nothing is given up: longer than the 5 s for which the responder waits.
const DEAF: Duration = Duration::from_secs(8);

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

/// A connection from a loopback address that has said so much.
fn say(responder: &Responder, source: [u8; 4], text: &[u8]) -> TcpStream {
    let port = responder.port_of("web").unwrap();
    let mut socket = connect_from(SocketAddr::from(([127, 0, 0, 1], port)), source);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(text).unwrap();
    socket
}

/// The head of an answer, in lower case.
fn head(socket: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").into_bytes()
}

/// The status of an answer to that request, from an address of its own.
fn status(responder: &Responder, request: &[u8]) -> String {
    let head = head(&mut say(responder, [127, 0, 7, 200], request));
    head.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// Whether the connection ends within [`PATIENCE`].
fn ends(mut socket: TcpStream) -> bool {
    let begun = Instant::now();
    let mut rest = [0; 64 * 1024];
    while matches!(socket.read(&mut rest), Ok(1..)) {}
    begun.elapsed() < PATIENCE
}

#[test]
fn every_path_has_its_answer() {
    let responder = responder(Config::default());
    for (request, expected) in [
        (get("/"), "200"),
        (get("/page.js"), "200"),
        (get("/status"), "200"),
        (get("/metrics"), "200"),
        (get("/.well-known/nq"), "200"),
        (get("/__down?bytes=0"), "200"),
        (get("/__down?bytes=1000"), "200"),
        (get("/__down"), "400"),
        (get("/__down?bytes=-1"), "400"),
        (get("/__up"), "405"),
        (get("/ndt/v7/download"), "426"),
        (get("/__check"), "405"),
        (get("/__echo"), "400"),
        (get("/__echo?visit=0123456789abcdef&stream=0"), "426"),
        (get("/../etc/passwd"), "404"),
        (b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n".to_vec(), "405"),
        (b"POST /__up HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc".to_vec(), "200"),
        (
            b"GET /ndt/v7/upload HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".to_vec(),
            "400",
        ),
        (b"nonsense\r\n\r\n".to_vec(), "400"),
    ] {
        let shown = String::from_utf8_lossy(&request).into_owned();
        assert_eq!(status(&responder, &request), expected, "{shown}");
    }
}

/// A responder that judges visits: it answers with the bytes that came up, and the echoes of the idle part.
fn judging() -> Responder {
    let judge = Judge::new(|visitor, visit, seen| {
        let came = seen
            .up
            .connections
            .values()
            .flat_map(|c| c.receiver.counts.last());
        let came: u64 = came.map(|count| count.bytes).sum();
        let echoes = seen.echoes.get(&b'i').map_or(0, |echoes| echoes.sent);
        format!("{visitor} {} {came} {echoes}", visit.server).into_bytes()
    });
    let mut config = Config::default();
    config.settings.web.judge = Some(judge);
    responder(config)
}

const VISIT: &str = "0123456789abcdef";

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn visit() -> String {
    let idle = r#"{"began_s":0,"duration_s":3,"sent_s":[0.1],"rtt_s":[0.02]}"#;
    format!(
        r#"{{"id":"{VISIT}","server":"s","agent":"B","resolution_s":1e-4,"idle":{idle},"down":null,"up":null}}"#
    )
}

/// What is answered, without its head.
fn body(mut socket: TcpStream) -> String {
    let _ = head(&mut socket);
    let mut text = String::new();
    let _ = socket.read_to_string(&mut text);
    text
}

/// A text frame as a client sends it (RFC 6455, section 5.2), masked with zeros.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    frame
}

#[test]
fn a_visit_is_judged_by_what_was_seen_of_it() {
    let responder = judging();
    let client = [127, 0, 7, 30];
    let upgrade = format!(
        "GET /__echo?visit={VISIT}&stream=0 HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    let mut echoes = say(&responder, client, upgrade.as_bytes());
    assert!(head(&mut echoes).starts_with("http/1.1 101"));
    for text in ["i1", "i2"] {
        echoes.write_all(&frame(text)).unwrap();
        let mut came = [0; 4];
        echoes.read_exact(&mut came).unwrap();
        assert_eq!(&came[2..], text.as_bytes());
    }
    let up = format!("/__up?visit={VISIT}&stream=1");
    let _ = body(say(&responder, client, &post(&up, &"x".repeat(50_000))));
    // Another address knows nothing of it.
    let other = body(say(
        &responder,
        [127, 0, 7, 31],
        &post("/__check", &visit()),
    ));
    assert!(other.contains("knows nothing"), "{other}");
    let judged = body(say(&responder, client, &post("/__check", &visit())));
    assert_eq!(judged, "127.0.7.30 s 50000 2");
    // Each is judged once.
    let again = body(say(&responder, client, &post("/__check", &visit())));
    assert!(again.contains("knows nothing"), "{again}");
}

#[test]
fn a_visit_whose_times_do_not_fit_is_not_judged() {
    let responder = judging();
    for (last, change, expected) in [
        (40, ["0.02", "600"], "after the part of the test was over"),
        (41, ["0.02", "2.5"], "round trips are said to be longer"),
        (
            42,
            [r#""duration_s":3"#, r#""duration_s":300"#],
            "lasted longer",
        ),
    ] {
        let client = [127, 0, 7, last];
        let up = format!("/__up?visit={VISIT}&stream=1");
        let _ = body(say(&responder, client, &post(&up, &"x".repeat(50_000))));
        let changed = visit().replace(change[0], change[1]);
        let answer = body(say(&responder, client, &post("/__check", &changed)));
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn what_is_no_visit_is_refused() {
    let responder = judging();
    // Nothing is read of those that carried nothing.
    let unknown = post("/__check", &" ".repeat(600_000));
    let unknown = body(say(&responder, [127, 0, 7, 34], &unknown));
    assert!(unknown.contains("knows nothing"), "{unknown}");
    let up = format!("/__up?visit={VISIT}&stream=1");
    let _ = body(say(
        &responder,
        [127, 0, 7, 32],
        &post(&up, &"x".repeat(50_000)),
    ));
    for (text, expected) in [
        ("", "no visit"),
        ("[1]", "no visit"),
        (&visit().replace("0.02", "-1"), "a time is none"),
        (&"[".repeat(100_000), "no visit"),
        (&" ".repeat(600_000), "too long"),
    ] {
        let answer = body(say(&responder, [127, 0, 7, 32], &post("/__check", text)));
        assert!(answer.contains(expected), "{answer}");
    }
    // Echoes of more than a letter and a number, and too many of them, end the connection.
    for frames in [frame(&"i".repeat(100)), frame("i1").repeat(200)] {
        let mut socket = agreed(
            &responder,
            [127, 0, 7, 33],
            "/__echo?visit=0123456789abcdef&stream=0",
        );
        let _ = socket.write_all(&frames);
        assert!(ends(socket));
    }
}

#[test]
fn a_foreign_page_gets_nothing_by_its_visitors() {
    let mut config = Config::default();
    config.settings.web.host_names = vec!["speed.example".to_owned()];
    let responder = responder(config);
    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n";
    let ask = |method: &str, path: &str, host: &str, fields: &str| {
        let length = if method == "POST" {
            "Content-Length: 3\r\n"
        } else {
            ""
        };
        let text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}{length}\r\nabc");
        status(&responder, text.as_bytes())
    };
    let echo = "/__echo?visit=0123456789abcdef&stream=0";
    let paths = [
        ("GET", "/ndt/v7/download", websocket, "101"),
        ("GET", "/ndt/v7/upload", websocket, "101"),
        ("GET", echo, websocket, "101"),
        ("POST", "/__up", "", "200"),
        ("GET", "/__down?bytes=1000", "", "200"),
        ("POST", "/__check", "", "400"),
        ("POST", "/__key", "", "404"),
        ("GET", "/metrics", "", "200"),
        ("GET", "/status", "", "200"),
    ];
    for (method, path, fields, own) in paths {
        let from = |origin: &str, host: &str| {
            ask(method, path, host, &format!("{fields}Origin: {origin}\r\n"))
        };
        assert_eq!(ask(method, path, "127.0.0.1", fields), own, "{path}");
        assert_eq!(from("http://127.0.0.1", "127.0.0.1"), own, "{path}");
        assert_eq!(from("https://speed.example", "127.0.0.1"), own, "{path}");
        assert_eq!(from("https://evil.example", "127.0.0.1"), "403", "{path}");
        assert_eq!(from("null", "127.0.0.1"), "403", "{path}");
        // A name that was made to lead here.
        assert_eq!(from("http://evil.example", "evil.example"), "403", "{path}");
    }
    for path in ["/", "/status", "/metrics"] {
        assert_eq!(ask("GET", path, "evil.example", ""), "403", "{path}");
        assert_eq!(ask("GET", path, "speed.example", ""), "200", "{path}");
    }
    // No browser has come by that name.
    assert_eq!(ask("POST", "/__up", "a.name.example", ""), "200");
    let refused = body(say(
        &responder,
        [127, 0, 7, 201],
        b"GET / HTTP/1.1\r\nHost: a.name.example\r\nConnection: close\r\n\r\n",
    ));
    assert!(refused.contains("--host-names a.name.example"), "{refused}");
}

#[test]
fn one_address_that_loads_is_served_and_another_comes_again() {
    let _turn = in_turn();
    let responder = responder(Config {
        max_loads: 1,
        ..Config::default()
    });
    let large = get("/__down?bytes=100000000000");
    let mut first = say(&responder, [127, 0, 7, 1], &large);
    assert!(head(&mut first).starts_with("http/1.1 200"));
    // More connections of the same test.
    let mut beside = say(&responder, [127, 0, 7, 1], &large);
    assert!(head(&mut beside).starts_with("http/1.1 200"));
    let mut other = say(&responder, [127, 0, 7, 2], &large);
    let refused = head(&mut other);
    assert!(refused.starts_with("http/1.1 503"), "{refused}");
    assert!(refused.contains("\r\nretry-after: "), "{refused}");
    // What is light is served at once.
    let mut light = say(&responder, [127, 0, 7, 3], &get("/__down?bytes=1"));
    assert!(head(&mut light).starts_with("http/1.1 200"));
    // A client that goes leaves its place within 5 s, and a second for the next phase of its test.
    drop((first, beside));
    let begun = Instant::now();
    loop {
        let mut other = say(&responder, [127, 0, 7, 4], &large);
        if head(&mut other).starts_with("http/1.1 200") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the place is not free");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn an_address_that_is_denied_is_not_served() {
    let policy = Policy {
        deny: vec!["127.0.7.9".parse().unwrap()],
        ..Policy::default()
    };
    let responder = responder(Config {
        policy: Arc::new(PolicyCell::new(policy)),
        ..Config::default()
    });
    let mut denied = say(&responder, [127, 0, 7, 9], &get("/"));
    assert_eq!(head(&mut denied), "", "not even a visit");
    assert_eq!(status(&responder, &get("/")), "200");
}

#[test]
fn who_says_nothing_too_little_or_too_much_is_shown_out() {
    let responder = responder(Config::default());
    let trickle = {
        let mut socket = say(&responder, [127, 0, 7, 10], b"GET / HTTP/1.1\r\n");
        std::thread::spawn(move || {
            let begun = Instant::now();
            // A byte of its head every 100 ms is no request.
            while socket.write_all(b"a").is_ok() && begun.elapsed() < 2 * PATIENCE {
                std::thread::sleep(Duration::from_millis(100));
            }
            begun.elapsed()
        })
    };
    let silent = say(&responder, [127, 0, 7, 11], b"");
    let half = say(&responder, [127, 0, 7, 12], b"GET / HTTP/1.1\r\nHost: h");
    let stuck = say(
        &responder,
        [127, 0, 7, 13],
        b"POST /__up HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nabc",
    );
    // It asks for much and reads nothing.
    let deaf = say(
        &responder,
        [127, 0, 7, 14],
        &get("/__down?bytes=100000000000"),
    );
    let deaf_since = Instant::now();
    // A record of TLS that says it has a handshake, and has none.
    let not_tls = say(
        &responder,
        [127, 0, 7, 15],
        &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3],
    );
    let long = [b"GET / HTTP/1.1\r\nA: ".to_vec(), vec![b'a'; 200_000]].concat();
    let port = responder.port_of("web").unwrap();
    let mut too_long = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _ = too_long.write_all(&long);
    for (socket, what) in [
        (silent, "silent"),
        (half, "half a request"),
        (stuck, "half a body"),
        (not_tls, "no TLS"),
        (too_long, "too long a head"),
    ] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(ends(socket), "{what}");
    }
    assert!(trickle.join().unwrap() < PATIENCE, "a trickle");
    // The responder's patience begins when the buffers are full; who reads before it ends is deaf no more.
    std::thread::sleep(DEAF.saturating_sub(deaf_since.elapsed()));
    assert!(ends(deaf), "deaf");
    assert_eq!(status(&responder, &get("/")), "200");
}

/// A WebSocket that was agreed to.
fn agreed(responder: &Responder, source: [u8; 4], path: &str) -> TcpStream {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n"
    );
    let mut socket = say(responder, source, request.as_bytes());
    let head = head(&mut socket);
    assert!(head.starts_with("http/1.1 101"), "{head}");
    // The example of RFC 6455, section 1.3.
    assert!(head.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    socket
}

#[test]
fn a_websocket_that_breaks_the_rules_is_closed() {
    let responder = responder(Config::default());
    for (number, frame, what) in [
        (
            20,
            &[0x82u8, 0x05, 1, 2, 3, 4, 5][..],
            "a frame that is not masked",
        ),
        (
            21,
            &[0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4],
            "a frame of a terabyte",
        ),
        (22, &[0xf2, 0x80, 1, 2, 3, 4], "reserved bits"),
        (23, &[0xff; 64], "noise"),
    ] {
        let mut socket = agreed(&responder, [127, 0, 7, number], "/ndt/v7/upload");
        socket.write_all(frame).unwrap();
        assert!(ends(socket), "{what}");
    }
    // One that sends nothing is silent for 5 s.
    let silent = agreed(&responder, [127, 0, 7, 30], "/ndt/v7/upload");
    assert!(ends(silent), "silent");
    // One that reads nothing.
    let deaf = agreed(&responder, [127, 0, 7, 31], "/ndt/v7/download");
    std::thread::sleep(DEAF);
    assert!(ends(deaf), "deaf");
}

#[test]
fn a_client_that_reads_nothing_for_a_moment_keeps_its_download() {
    let _turn = in_turn();
    let responder = responder(Config::default());
    let mut socket = agreed(&responder, [127, 0, 7, 33], "/ndt/v7/download");
    // The responder's writes wait for 100 ms at a time.
    std::thread::sleep(Duration::from_secs(2));
    // More than both ends keep for it: tcp_rmem is up to 32 MB here, and tcp_wmem up to 4 MB.
    let wanted = 80_000_000;
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 20];
    while bytes < wanted {
        match socket.read(&mut buffer) {
            Ok(count) if count > 0 => bytes += count,
            ended => panic!("{ended:?} after {bytes} bytes"),
        }
    }
}

#[test]
fn a_stop_ends_what_runs() {
    let _turn = in_turn();
    let mut responder = responder(Config::default());
    let large = say(
        &responder,
        [127, 0, 7, 40],
        &get("/__down?bytes=100000000000"),
    );
    let reading = std::thread::spawn(move || ends(large));
    let websocket = agreed(&responder, [127, 0, 7, 41], "/ndt/v7/upload");
    std::thread::sleep(Duration::from_millis(200));
    assert!(responder.stop() < Duration::from_secs(2));
    assert!(reading.join().unwrap());
    assert!(ends(websocket));
}

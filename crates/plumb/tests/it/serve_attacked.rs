//! `plumb serve` under attack by clients that take places, turns and memory and measure nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::scope;
use std::time::Duration;

use plumb_load::tls::Identity;
use plumb_model::results::Outcome;
use plumb_wire::iperf3::{State, cookie, frame};

use crate::common::network::Network;
use crate::common::responder::Responder;
use crate::common::slots::Weight;
use crate::page::pem;

#[path = "../../../serve/tests/it/common/http2.rs"]
#[allow(dead_code)] // What only the tests of the crate itself need.
mod http2;
use http2::Http2;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The bound that `plumb explain serve` names, in kB as the kernel has it.
const MOST_KB: u64 = 256 * 1024;

fn connect_from(to: SocketAddr, source: [u8; 4]) -> TcpStream {
    let kind = (socket2::Domain::IPV4, socket2::Type::STREAM);
    let socket = socket2::Socket::new(kind.0, kind.1, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect_timeout(&to.into(), TIMEOUT).unwrap();
    socket.into()
}

/// A responder with a web port, and the certificate that it shows.
struct Attacked {
    responder: Responder,
    web: SocketAddr,
    identity: Identity,
    _folder: tempfile::TempDir,
}

impl Attacked {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["here".to_owned()]).unwrap();
        let (cert, key) = (
            pem("CERTIFICATE", made.cert.der()),
            pem("PRIVATE KEY", &made.signing_key.serialize_der()),
        );
        let identity = Identity::given(cert.as_bytes(), key.as_bytes()).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (cert, key) = (file("cert.pem", &cert), file("key.pem", &key));
        let options = [
            "--certificate",
            &cert,
            "--certificate-key",
            &key,
            "--port-of",
            "web=0",
        ];
        let responder = Responder::start_for(Weight::Heavy, &options);
        let web = responder.serves("web");
        Self {
            responder,
            web,
            identity,
            _folder: folder,
        }
    }

    /// Says it from an address, and keeps the connection.
    fn say(&self, source: [u8; 4], text: &[u8]) -> TcpStream {
        let mut socket = connect_from(self.web, source);
        socket
            .set_write_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        // One that is not heard any more takes no more.
        let _ = socket.write_all(text);
        socket
    }
}

/// The most memory that a responder ever had, in kB.
fn peak_kb(responder: &Responder) -> u64 {
    let path = format!("/proc/{}/status", responder.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = line.unwrap().split_whitespace().nth(1);
    kb.unwrap().parse().unwrap()
}

/// An upload by NDT7 that begins a message of 16 MiB and does not end it.
fn unfinished_message(attacked: &Attacked, source: [u8; 4]) -> TcpStream {
    let mut socket = attacked.say(
        source,
        b"GET /ndt/v7/upload HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
          Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n",
    );
    let mut status = [0; 12];
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 101");
    let head = [0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    socket.write_all(&head).unwrap();
    socket.write_all(&vec![0; 4_000_000]).unwrap();
    socket
}

#[test]
fn its_memory_is_bounded() {
    let attacked = &Attacked::start();
    // Heads that do not end, of four addresses.
    let heads = scope(|scope| {
        let address = |n: u8| {
            let long = [b"GET / HTTP/1.1\r\nA: ".to_vec(), vec![b'a'; 60_000]].concat();
            move || {
                (0..60)
                    .map(|_| attacked.say([127, 0, 13, n], &long))
                    .collect::<Vec<_>>()
            }
        };
        let all: Vec<_> = (1..5).map(|n| scope.spawn(address(n))).collect();
        all.into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect::<Vec<_>>()
    });
    drop(heads);
    // Streams of which nothing is taken, and bodies of which nothing comes, on HTTP/2.
    let streams: Vec<_> = (0..60)
        .map(|_| {
            let source = [127, 0, 13, 10];
            let mut client = Http2::connect(attacked.web, source, &attacked.identity, Some(0));
            for _ in 0..8 {
                client.ask("GET", "/__down?bytes=1000000000000", false);
                client.ask("POST", "/__check", true);
                client.ask("POST", "/__up", true);
                client.ask("GET", "/page.js", false);
            }
            client
        })
        .collect();
    // Messages that do not end: half a gigabyte of them, of two addresses.
    let messages = scope(|scope| {
        let address = |n: u8| {
            move || {
                (0..60)
                    .map(|_| unfinished_message(attacked, [127, 0, 13, n]))
                    .collect::<Vec<_>>()
            }
        };
        let all: Vec<_> = (20..22).map(|n| scope.spawn(address(n))).collect();
        all.into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(messages.len(), 120);
    let peak = peak_kb(&attacked.responder);
    drop((streams, messages));
    assert!(peak < MOST_KB, "{peak} kB");
}

/// A test of iperf3 with 128 streams and the longest blocks, of which nothing is read: its connections.
fn deaf_iperf3(to: SocketAddr, source: [u8; 4]) -> Vec<TcpStream> {
    let begin = || {
        let mut socket = connect_from(to, source);
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket.write_all(&cookie([source[3]; 36])).unwrap();
        socket
    };
    let mut control = begin();
    let state = |control: &mut TcpStream| {
        let mut byte = [0];
        control.read_exact(&mut byte).unwrap();
        State::of(byte[0])
    };
    assert_eq!(state(&mut control), Some(State::ParameterExchange));
    let asked = r#"{"tcp":true,"time":30,"parallel":128,"len":1048576,"reverse":true}"#;
    control.write_all(&frame(asked)).unwrap();
    assert_eq!(state(&mut control), Some(State::CreateStreams));
    let streams: Vec<_> = (0..128).map(|_| begin()).collect();
    assert_eq!(state(&mut control), Some(State::TestStart));
    assert_eq!(state(&mut control), Some(State::TestRunning));
    streams.into_iter().chain([control]).collect()
}

#[test]
fn clients_of_iperf3_keep_to_that_bound() {
    let responder = Responder::start_for(Weight::Heavy, &["--port-of", "iperf3=0"]);
    let at = responder.serves("iperf3");
    let tests: Vec<_> = (1..5).map(|n| deaf_iperf3(at, [127, 0, 15, n])).collect();
    // Beside them, results and parameters of which the end does not come.
    let unfinished: Vec<_> = (0..60)
        .map(|n| {
            let mut socket = connect_from(at, [127, 0, 15, 10 + n]);
            let _ = socket.write_all(&cookie([100 + n; 36]));
            socket
        })
        .collect();
    // Several looks at the streams, and what they are sent before their buffers are full.
    std::thread::sleep(Duration::from_secs(2));
    let peak = peak_kb(&responder);
    drop((tests, unfinished));
    assert!(peak < MOST_KB, "{peak} kB");
}

/// What a good client moves at least beside all attacks, of what it moves without.
const LEAST_RATIO: f64 = 0.95;

/// What a client's load moved in each direction, and how many of its probes were answered.
fn moved(attacked: bool) -> (Vec<u64>, u64) {
    let line = r#"{ type = "shaper", rate = "20mbit", queue = "fq_codel" }, { type = "delay", delay = "5ms" }"#;
    let mut network = Network::served_line(line, line);
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/serve_attacked/attacks.py"
    );
    if attacked {
        let own = r#"{ type = "shaper", rate = "50mbit" }"#;
        network
            .set("server", "forward = false")
            .node("stranger", "");
        network.link(
            "other",
            ["stranger", "server"],
            &format!("up = [{own}]\ndown = [{own}]"),
        );
        network.service("stranger", &["python3", script, "server", "4000"], 4000);
    }
    let script = "plumb rate server --duration 2s --json && plumb owd server -c 100 -i 10ms --json";
    let output = network.run(&["sh", "-c", script]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}{text}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (mut bytes, mut answered) = (Vec::new(), 0);
    for line in text.lines() {
        let run = plumb_model::run::Run::from_json(line).unwrap();
        for measurement in &run.measurements {
            match &measurement.outcome {
                Outcome::Throughput(rate) => bytes.push(rate.bytes),
                Outcome::Owd(owd) => answered += owd.answered,
                _ => {}
            }
        }
    }
    (bytes, answered)
}

#[test]
fn beside_all_attacks_a_good_client_measures_the_same() {
    let (alone, answered_alone) = moved(false);
    let (beside, answered) = moved(true);
    assert_eq!((alone.len(), beside.len(), answered_alone), (2, 2, 100));
    for (alone, beside) in alone.iter().zip(&beside) {
        let ratio = *beside as f64 / *alone as f64;
        assert!(ratio >= LEAST_RATIO, "{beside} of {alone} bytes");
    }
    assert!(
        answered as f64 >= LEAST_RATIO * answered_alone as f64,
        "{answered}"
    );
}

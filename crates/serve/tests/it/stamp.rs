//! The STAMP reflector over loopback, asked by hand.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_net::clock::realtime_ns;
use plumb_serve::{Config, ServeError, Server, Settings, StampSettings};
use plumb_wire::stamp::tlv::{SOFTWARE, Tlv};
use plumb_wire::stamp::{ErrorEstimate, Key, Reply, Request};

use crate::common::{stamp_at, stamp_port};

struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

fn config(key: Option<Key>) -> StampSettings {
    StampSettings {
        key,
        ..StampSettings::default()
    }
}

impl Running {
    fn start(stamp: StampSettings) -> Self {
        let server = Server::bind(Config {
            listen: vec!["[::]:0".parse().unwrap()],
            protocols: vec![stamp_at(0, true)],
            settings: Settings {
                stamp,
                ..Settings::default()
            },
            ..Config::default()
        })
        .unwrap();
        let port = stamp_port(&server).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        Self {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            stop,
            thread: Some(std::thread::spawn(move || server.run(&stopped))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn request(sequence: u32) -> Request {
    Request {
        sequence,
        sent_ns: realtime_ns() as i64,
        error: ErrorEstimate::new(false, Duration::from_secs(1)),
        session: 77,
    }
}

fn ask(socket: &UdpSocket, bytes: &[u8]) -> Option<Vec<u8>> {
    socket.send(bytes).unwrap();
    let mut buffer = [0; 2000];
    let len = socket.recv(&mut buffer).ok()?;
    Some(buffer.get(..len).unwrap().to_vec())
}

fn client(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(to).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    socket
}

#[test]
fn packets_come_back_numbered_and_timed() {
    let running = Running::start(config(None));
    let socket = client(running.address);
    socket2::SockRef::from(&socket).set_ttl_v4(33).unwrap();
    for (sequence, counted) in [(0, 0), (9, 1)] {
        let request = request(sequence);
        let follow_up = Tlv::FollowUp {
            sequence: 0,
            sent_ns: 0,
            method: 0,
        };
        let bytes = ask(&socket, &request.write(None, &[follow_up], 0)).unwrap();
        let reply = Reply::parse(&bytes, None).unwrap();
        assert_eq!((reply.sequence, reply.request), (counted, request));
        assert_eq!((reply.session, reply.request_hops), (77, 33));
        let now_ns = realtime_ns() as i64;
        assert!(request.sent_ns <= reply.received_ns && reply.received_ns <= reply.sent_ns);
        assert!(reply.sent_ns <= now_ns);
        let followed = reply.tlvs(&bytes, None).first().unwrap().tlv.clone();
        match followed.unwrap() {
            Tlv::FollowUp {
                sequence, method, ..
            } => assert_eq!((sequence, method), (0, counted as u8 * SOFTWARE)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_shorter_than_its_answer_gets_none() {
    let running = Running::start(config(None));
    let socket = client(running.address);
    let packet = request(0).write(None, &[], 0);
    assert_eq!(ask(&socket, packet.get(..14).unwrap()), None);
    assert_eq!(ask(&socket, &packet).unwrap().len(), packet.len());
}

#[test]
fn with_a_key_only_its_holders_are_answered() {
    let key = Key::new(b"a secret").unwrap();
    let running = Running::start(config(Some(key.clone())));
    let socket = client(running.address);
    assert_eq!(ask(&socket, &request(0).write(None, &[], 200)), None);
    let bytes = ask(&socket, &request(0).write(Some(&key), &[], 0)).unwrap();
    assert!(Reply::parse(&bytes, Some(&key)).is_some());
}

#[test]
fn a_port_that_is_taken_is_missed_only_where_it_is_required() {
    let taken = UdpSocket::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bind = |required| {
        Server::bind(Config {
            listen: vec!["[::]:0".parse().unwrap()],
            protocols: vec![stamp_at(port, required)],
            ..Config::default()
        })
    };
    assert!(matches!(bind(true), Err(ServeError::InUse { .. })));
    let server = bind(false).unwrap();
    assert_eq!(server.listening().len(), 0);
    assert!(matches!(server.missing(), [(_, ServeError::InUse { .. })]));
}

/// Passes packets on between two reflectors, or one and an echo, until none has come for a moment, and
/// tells how many there were; `most` at most.
fn goes_round(sides: [&UdpSocket; 2], most: usize) -> usize {
    let quiet = Duration::from_millis(300);
    let mut last = std::time::Instant::now();
    let (mut passed, mut buffer) = (0, [0; 2000]);
    for side in sides {
        side.set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
    }
    while last.elapsed() < quiet && passed < most {
        for (here, there) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            while let Ok(len) = here.recv(&mut buffer) {
                there.send(&buffer[..len]).unwrap();
                passed += 1;
                last = std::time::Instant::now();
            }
        }
    }
    passed
}

#[test]
fn loops_between_reflectors_end() {
    let key = Key::new(b"a secret").unwrap();
    for key in [None, Some(key)] {
        let (a, b) = (
            Running::start(config(key.clone())),
            Running::start(config(key.clone())),
        );
        // Whose address the packets seem to come from.
        let (at_a, at_b) = (client(a.address), client(b.address));
        let forged = 100;
        for sequence in 0..forged {
            at_a.send(&request(sequence).write(key.as_ref(), &[], 0))
                .unwrap();
        }
        // Each is answered by both, and then its answer comes back.
        let passed = goes_round([&at_a, &at_b], 10_000);
        assert_eq!(passed, 2 * forged as usize);
        // Senders are answered all the while.
        let socket = client(a.address);
        assert!(ask(&socket, &request(0).write(key.as_ref(), &[], 0)).is_some());
    }
}

#[test]
fn a_loop_with_an_echo_service_ends() {
    let running = Running::start(config(None));
    let echo = client(running.address);
    for sequence in 0..100 {
        echo.send(&request(sequence).write(None, &[], 0)).unwrap();
    }
    // What comes is sent back as it is.
    let passed = goes_round([&echo, &echo], 10_000);
    assert_eq!(passed, 100);
}

#[test]
fn a_good_sender_is_answered_beside_one_that_floods() {
    let running = Running::start(config(None));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flood = client(running.address);
            let packet = request(0).write(None, &[], 0);
            while !stop.load(Ordering::Relaxed) {
                // 10,000 a second: twice what there is for all.
                for _ in 0..10 {
                    let _ = flood.send(&packet);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let good = client(running.address);
        let answered = (0..200).filter(|sequence| {
            std::thread::sleep(Duration::from_millis(5));
            ask(&good, &request(*sequence).write(None, &[], 0)).is_some()
        });
        let answered = answered.count();
        stop.store(true, Ordering::Relaxed);
        assert!(answered >= 190, "{answered} of 200");
    });
}

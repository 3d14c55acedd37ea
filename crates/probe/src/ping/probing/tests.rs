//! Over the loopback of the real kernel.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use plumb_model::results::{PingResult, TimestampSource};
use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::DatagramSocket;
use plumb_wire::native::echo::{CookieJar, Datagram, Kind, Responder, set_server_send_time};

use super::*;
use crate::Sizes;

const LOOPBACKS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// A UDP echo on a thread that ends with its guard.
struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// `keeps` is how long it keeps every probe; `ignores` cookie requests are not answered.
    fn start(address: IpAddr, keeps: Duration, mut ignores: u32) -> Self {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let mut socket = DatagramSocket::bound(socket).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut responder = Responder::new(CookieJar::new([1; 32]));
            let mut buffer = vec![0; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                socket.wait_until(monotonic_ns() + 50_000_000).unwrap();
                let Some(received) = socket.recv(&mut buffer).unwrap() else {
                    continue;
                };
                let kernel_ns = received.kernel_ns.unwrap_or_else(realtime_ns) as i64;
                let request = &buffer[..received.len];
                let now = Duration::from_nanos(monotonic_ns());
                let Some(mut reply) =
                    responder.handle(now, kernel_ns, received.from, request, None)
                else {
                    continue;
                };
                let kind = Datagram::parse(request).unwrap().kind;
                if kind == Kind::CookieRequest && ignores > 0 {
                    ignores -= 1;
                    continue;
                }
                thread::sleep(keeps);
                set_server_send_time(&mut reply, realtime_ns() as i64);
                socket
                    .send_from(&reply, received.to, received.dscp, received.from)
                    .unwrap();
            }
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn probe(plan: Plan) -> ProbeLog {
    Probing::start(plan, Arc::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .join()
}

fn quick(protocol: Protocol, target: SocketAddr, count: u64) -> Plan {
    Plan {
        count: Some(count),
        interval: Duration::from_millis(5),
        ..Plan::new(protocol, "loopback", target)
    }
}

fn assert_sane(result: &PingResult, count: u64) {
    assert_eq!(
        (result.sent, result.received, result.duplicates),
        (count, count, 0),
        "{result:?}"
    );
    assert_eq!(
        (result.reordered, result.send_errors, result.dropped_here),
        (0, 0, 0)
    );
    assert_eq!(result.timestamps, TimestampSource::Kernel, "{result:?}");
    let rtt = result.rtt_s.unwrap();
    assert!(
        rtt.min > 0.0 && rtt.p50 < 0.001,
        "the loopback takes microseconds: {rtt:?}"
    );
}

#[test]
fn icmp_over_the_loopback() {
    for address in LOOPBACKS {
        let log = probe(quick(Protocol::Icmp, (address, 0).into(), 40));
        assert_sane(&log.result(0.0, f64::INFINITY), 40);
    }
}

#[test]
fn two_icmp_probings_at_once_keep_apart() {
    let plan = || quick(Protocol::Icmp, (Ipv4Addr::LOCALHOST, 0).into(), 40);
    let other = Probing::start(plan(), Arc::default()).unwrap();
    let log = probe(plan());
    assert_sane(&log.result(0.0, f64::INFINITY), 40);
    assert_sane(&other.join().result(0.0, f64::INFINITY), 40);
}

#[test]
fn udp_over_the_loopback_without_the_far_ends_residence() {
    for address in LOOPBACKS {
        let keeps = Duration::from_millis(2);
        let echo = Echo::start(address, keeps, 0);
        let log = probe(quick(Protocol::Udp, echo.address, 40));
        assert_sane(&log.result(0.0, f64::INFINITY), 40);
        assert_eq!(log.residences_ignored(), 0);
        let mut trips = log.samples.iter().filter_map(|s| s.rtt);
        assert!(trips.any(|rtt| rtt < keeps), "what it keeps is taken out");
    }
}

#[test]
fn large_probes_come_back_whole() {
    let echo = Echo::start(LOOPBACKS[0], Duration::ZERO, 0);
    for (protocol, size_bytes) in [
        (Protocol::Udp, 65_507),
        (Protocol::Icmp, 65_507),
        (Protocol::Icmp, 12),
    ] {
        let plan = Plan {
            sizes: Sizes::One(size_bytes),
            ..quick(protocol, echo.address, 3)
        };
        assert_eq!(
            probe(plan).result(0.0, f64::INFINITY).received,
            3,
            "{protocol:?} {size_bytes}"
        );
    }
}

#[test]
fn lost_cookie_requests_are_sent_again() {
    let echo = Echo::start(LOOPBACKS[0], Duration::ZERO, 2);
    let started = Instant::now();
    let log = probe(quick(Protocol::Udp, echo.address, 3));
    assert_eq!(log.result(0.0, f64::INFINITY).received, 3);
    assert!(
        started.elapsed() >= Duration::from_millis(1200),
        "the third request got it"
    );
}

#[test]
fn a_far_end_without_echo_is_named() {
    // Discard (RFC 863), where nothing listens and which no program gets that asks for any port.
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let plan = Plan {
        name: "far.example".into(),
        ..quick(Protocol::Udp, closed, 3)
    };
    let error = Probing::start(plan.clone(), Arc::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("no UDP echo at far.example:{}", closed.port())),
        "{error}"
    );
    assert!(error.contains("port unreachable"), "{error}");

    let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
    let plan = Plan {
        target: mute.local_addr().unwrap(),
        ..plan
    };
    let started = Instant::now();
    let error = Probing::start(plan, Arc::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no answer to 5 requests"), "{error}");
    assert!(started.elapsed() >= Duration::from_secs(3));
}

#[test]
fn it_stops_when_asked_and_tells_how_far_it_is() {
    let echo = Echo::start(LOOPBACKS[0], Duration::ZERO, 0);
    let plan = Plan {
        count: None,
        ..quick(Protocol::Udp, echo.address, 0)
    };
    let probing = Probing::start(plan, Arc::default()).unwrap();
    let progress = probing.progress();
    let deadline = Instant::now() + Duration::from_secs(5);
    while progress.read().received < 10 {
        assert!(Instant::now() < deadline, "{:?}", progress.read());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!probing.is_finished() && progress.read().last_rtt.is_some());
    probing.stop();
    let asked = Instant::now();
    let result = probing.join().result(0.0, f64::INFINITY);
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "all were answered, so nothing is waited for"
    );
    assert!(
        result.received >= 10 && result.received == result.sent,
        "{result:?}"
    );
    assert_eq!(progress.read().received, result.received);
}

#[test]
fn a_far_end_that_goes_away_is_loss_and_a_note() {
    let echo = Echo::start(LOOPBACKS[0], Duration::ZERO, 0);
    let plan = Plan {
        timeout: Duration::from_millis(200),
        ..quick(Protocol::Udp, echo.address, 60)
    };
    let probing = Probing::start(plan, Arc::default()).unwrap();
    drop(echo);
    let log = probing.join();
    let result = log.result(0.0, f64::INFINITY);
    assert!(result.sent == 60 && result.received < 60, "{result:?}");
    assert!(
        log.notes
            .iter()
            .any(|note| note.contains("port unreachable")),
        "{:?}",
        log.notes
    );
}

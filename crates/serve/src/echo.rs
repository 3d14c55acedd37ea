//! The UDP echo responder: the socket around [`Responder`], which decides. On the same port
//! clients ask for their UDP streams.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::{DatagramSocket, Received};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::datagram;
use plumb_wire::native::echo::{CookieJar, EchoCounters, Responder, set_server_send_time};
use plumb_wire::stamp::{ClockState, ErrorEstimate};

use crate::clock::Clock;

/// How often the request to stop is looked at while nothing comes in.
const STOP_CHECK_NS: u64 = 100_000_000;

/// Failures of receiving, one after the other, before the responder gives up: a socket that
/// always fails would be asked for ever.
const MAX_RECEIVE_FAILURES: u32 = 16;

/// Larger than any UDP datagram.
const BUFFER_BYTES: usize = 65_536;

/// Receive buffer, where the kernel allows it, which doubles it: ten thousand small probes of 768 bytes each with its
/// book-keeping, a tenth of a second of what one address is answered
/// ([`ECHO_PPS`](plumb_wire::native::spec::ECHO_PPS)). All strangers share it.
const QUEUE_BYTES: u32 = 4 << 20;

/// A client that asks for a UDP stream. It has proved nothing yet, and gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub stream: Preamble,
    /// Where it was asked for.
    pub here: SocketAddr,
    pub from: SocketAddr,
}

/// What the echo has to do with sessions.
pub struct Clients<'a> {
    /// Receives each request for a stream.
    pub asked: &'a dyn Fn(Asked),
    /// The longest answer that a running phase of an address declared, where there is one.
    pub declared: &'a dyn Fn(IpAddr) -> Option<u32>,
    /// Whether an address is answered at all.
    pub answers: &'a dyn Fn(IpAddr) -> bool,
}

/// Answers probes on `socket`, which the caller has bound, until `stop` is set; it ends within
/// 100 ms of that. An answer comes from the address that was asked, and is as large as the
/// question and bears its DSCP, so that a class is measured in both directions. `secret` makes the
/// cookies: random, and new at every start.
///
/// # Errors
/// When the socket cannot be set up, or receiving keeps failing.
pub fn run(
    socket: UdpSocket,
    secret: [u8; 32],
    clients: &Clients<'_>,
    stop: &AtomicBool,
) -> io::Result<EchoCounters> {
    let socket = DatagramSocket::bound(socket)?;
    socket.set_receive_buffer(QUEUE_BYTES)?;
    serve(socket, secret, clients, stop)
}

fn serve(
    mut socket: DatagramSocket,
    secret: [u8; 32],
    clients: &Clients<'_>,
    stop: &AtomicBool,
) -> io::Result<EchoCounters> {
    let port = socket.local_addr()?.port();
    let mut responder = Responder::new(CookieJar::new(secret));
    let mut clock = Clock::at(monotonic_ns());
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut send_errors, mut failures) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        match socket.recv(&mut buffer) {
            Ok(Some(received)) => {
                failures = 0;
                if !(clients.answers)(received.from.ip()) {
                    continue;
                }
                let datagram = buffer.get(..received.len).unwrap_or_default();
                if let Some(stream) = datagram::parse_attach(datagram) {
                    if let Some(here) = asked_address(&received, port) {
                        let from = received.from;
                        (clients.asked)(Asked { stream, here, from });
                    }
                    continue;
                }
                let ClockState {
                    synchronised,
                    error,
                } = clock.state(monotonic_ns());
                responder.tell_clock(ErrorEstimate::new(synchronised, error));
                let declared = (clients.declared)(received.from.ip());
                if answer(&socket, &mut responder, &received, datagram, declared).is_err() {
                    send_errors += 1;
                }
            }
            Ok(None) => socket.wait_until(monotonic_ns() + STOP_CHECK_NS)?,
            Err(error) => {
                failures += 1;
                if failures >= MAX_RECEIVE_FAILURES {
                    return Err(error);
                }
            }
        }
    }
    Ok(EchoCounters {
        send_errors,
        ..responder.counters()
    })
}

/// The address that a datagram was sent to. A link-local one gets the scope of the sender's address.
pub(crate) fn asked_address(received: &Received, port: u16) -> Option<SocketAddr> {
    let to = received.to?.address;
    let mut here = SocketAddr::new(to, port);
    if let (SocketAddr::V6(here), SocketAddr::V6(from)) = (&mut here, received.from)
        && here.ip().is_unicast_link_local()
    {
        here.set_scope_id(from.scope_id());
    }
    Some(here)
}

fn answer(
    socket: &DatagramSocket,
    responder: &mut Responder,
    received: &Received,
    datagram: &[u8],
    declared: Option<u32>,
) -> io::Result<()> {
    // One question to a multicast address would bring an answer from every responder there is.
    if received
        .to
        .is_some_and(|to| to.address.to_canonical().is_multicast())
    {
        return Ok(());
    }
    let received_ns = clock_field(received.kernel_ns.unwrap_or_else(realtime_ns));
    let now = Duration::from_nanos(monotonic_ns());
    let Some(mut reply) = responder.handle(now, received_ns, received.from, datagram, declared)
    else {
        return Ok(());
    };
    set_server_send_time(&mut reply, clock_field(realtime_ns()));
    socket.send_from(&reply, received.to, received.dscp, received.from)
}

/// Nanoseconds as the wire has them; the cast would matter in the year 2262.
fn clock_field(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_wire::native::echo::{Cookie, Datagram, Kind};
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::thread::JoinHandle;
    use std::time::Instant;

    struct Running {
        address: SocketAddr,
        stop: Arc<AtomicBool>,
        thread: JoinHandle<io::Result<EchoCounters>>,
    }

    impl Running {
        fn start(bind: &str) -> Self {
            let socket = UdpSocket::bind(bind).unwrap();
            let address = socket.local_addr().unwrap();
            // What comes in before the socket is set up does not say which address it was sent to.
            let socket = DatagramSocket::bound(socket).unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = Arc::clone(&stop);
            Self {
                address,
                stop,
                thread: std::thread::spawn(move || {
                    let clients = Clients {
                        asked: &|_| (),
                        declared: &|_| None,
                        answers: &|_| true,
                    };
                    serve(socket, [3; 32], &clients, &stopped)
                }),
            }
        }

        fn end(self) -> EchoCounters {
            self.stop.store(true, Ordering::Relaxed);
            self.thread.join().unwrap().unwrap()
        }
    }

    /// A socket that talks to `target` alone, so that an answer from another address is not seen.
    fn client(target: SocketAddr) -> UdpSocket {
        let any = if target.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(target).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        socket
    }

    fn ask(socket: &UdpSocket, request: &[u8]) -> Datagram {
        socket.send(request).unwrap();
        let mut buffer = vec![0; BUFFER_BYTES];
        let len = socket.recv(&mut buffer).unwrap();
        assert_eq!(len, request.len());
        Datagram::parse(&buffer[..len]).unwrap()
    }

    fn cookie(socket: &UdpSocket) -> Cookie {
        let reply = ask(socket, &Datagram::cookie_request(5).write(64));
        assert_eq!(reply.kind, Kind::CookieReply);
        reply.cookie
    }

    #[test]
    fn answers_come_from_the_address_asked_with_the_times_in_order() {
        for (bind, asked) in [
            ("0.0.0.0:0", "127.0.0.3"),
            ("[::]:0", "127.0.0.3"),
            ("[::]:0", "::1"),
        ] {
            let echo = Running::start(bind);
            let socket = client(SocketAddr::new(asked.parse().unwrap(), echo.address.port()));
            let cookie = cookie(&socket);
            let before = realtime_ns() as i64;
            let reply = ask(&socket, &Datagram::probe(cookie, 5, 9, -7).write(1400));
            let after = realtime_ns() as i64;
            assert_eq!(
                (reply.kind, reply.session, reply.client_sequence),
                (Kind::Reply, 5, 9)
            );
            assert_eq!((reply.server_sequence, reply.client_send_ns), (1, -7));
            let times = [before, reply.server_receive_ns, reply.server_send_ns, after];
            assert!(times.is_sorted(), "{times:?}");
            assert!(reply.server_clock.is_some(), "what the kernel holds of it");
            assert_eq!(
                echo.end(),
                EchoCounters {
                    probes: 1,
                    cookies: 1,
                    ..EchoCounters::default()
                }
            );
        }
    }

    #[test]
    fn answers_bear_the_dscp_of_the_question() {
        for (bind, asked, from) in [
            ("0.0.0.0:0", "127.0.0.1", "0.0.0.0:0"),
            ("[::]:0", "127.0.0.1", "0.0.0.0:0"),
            ("[::]:0", "::1", "[::]:0"),
        ] {
            let echo = Running::start(bind);
            let target = SocketAddr::new(asked.parse().unwrap(), echo.address.port());
            let socket = UdpSocket::bind(from).unwrap();
            socket.connect(target).unwrap();
            // A socket that reports the DSCP of what it receives.
            let mut seen = DatagramSocket::bound(socket.try_clone().unwrap()).unwrap();
            for dscp in [46, 8, 0] {
                seen.set_dscp(dscp).unwrap();
                socket.send(&Datagram::cookie_request(5).write(64)).unwrap();
                seen.wait_until(monotonic_ns() + 2_000_000_000).unwrap();
                let reply = seen.recv(&mut [0; 64]).unwrap().unwrap();
                assert_eq!(reply.dscp, Some(dscp), "from {bind} to {asked}");
            }
        }
    }

    #[test]
    fn any_datagram_is_survived_and_nobody_gets_more_than_he_sent() {
        let echo = Running::start("127.0.0.1:0");
        let socket = client(echo.address);
        socket.set_nonblocking(true).unwrap();
        let mut buffer = vec![0; BUFFER_BYTES];
        let (mut sent, mut received) = (0, 0);
        // A linear congruential generator (Knuth, MMIX): the same noise every time.
        let mut state = 1u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for round in 0..3000 {
            let mut datagram: Vec<u8> = (0..random() % 200).map(|_| random() as u8).collect();
            if round % 2 == 0 {
                datagram
                    .iter_mut()
                    .zip(*b"PLMB\x01")
                    .for_each(|(byte, magic)| *byte = magic);
                datagram
                    .iter_mut()
                    .skip(5)
                    .take(1)
                    .for_each(|kind| *kind %= 6);
            }
            sent += socket.send(&datagram).unwrap();
            while let Ok(len) = socket.recv(&mut buffer) {
                received += len;
            }
            if round % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        socket.set_nonblocking(false).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        while let Ok(len) = socket.recv(&mut buffer) {
            received += len;
        }
        assert!(
            received > 0 && received <= sent,
            "{received} bytes for {sent}"
        );
        let cookie = cookie(&socket);
        assert_eq!(
            ask(&socket, &Datagram::probe(cookie, 5, 1, 0).write(64)).kind,
            Kind::Reply
        );
        let counters = echo.end();
        assert!(
            counters.ignored > 0 && counters.bad_cookies > 0 && counters.probes == 1,
            "{counters:?}"
        );
    }

    #[test]
    fn a_cookie_is_good_for_its_own_address_only() {
        let echo = Running::start("127.0.0.1:0");
        let (owner, thief) = (client(echo.address), client(echo.address));
        let cookie = cookie(&owner);
        thief
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        thief
            .send(&Datagram::probe(cookie, 5, 1, 0).write(64))
            .unwrap();
        assert!(thief.recv(&mut [0; 64]).is_err());
        assert_eq!(
            ask(&owner, &Datagram::probe(cookie, 5, 1, 0).write(64)).kind,
            Kind::Reply
        );
        assert_eq!(echo.end().bad_cookies, 1);
    }

    #[test]
    fn it_ends_when_asked() {
        let echo = Running::start("127.0.0.1:0");
        cookie(&client((Ipv4Addr::LOCALHOST, echo.address.port()).into()));
        let asked = Instant::now();
        echo.end();
        assert!(asked.elapsed() < Duration::from_secs(20));
    }
}

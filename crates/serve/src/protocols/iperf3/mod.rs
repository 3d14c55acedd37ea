//! iperf3: clients of that program, several at once on one port.
//!
//! A thread accepts and one begins streams of UDP for each address; one thread serves each connection until it has said what it is,
//! and each test until it is over; each stream has one more.

mod control;
mod datagrams;
mod running;
mod session;
mod sessions;
mod tcp;

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::{Builder, scope, sleep};
use std::time::{Duration, Instant};

use plumb_load::frames::read_exact_by;
use plumb_net::bulk::BulkSocket;
use plumb_net::clock::monotonic_ns;
use plumb_net::datagram::DatagramSocket;
use plumb_wire::iperf3::{CONNECT, CONNECT_AGAIN, CONNECTED, COOKIE_BYTES, PORT};
use plumb_wire::native::spec::GREETING_TIMEOUT;

use crate::gate::Gate;
use crate::ports::{self, Port};
use crate::protocol::{Entry, Listening, Protocol, Transport};
use crate::shared::STOP_INTERVAL;
use sessions::Sessions;

pub(crate) const ENTRY: Entry = Entry {
    name: "iperf3",
    about: "iperf3 -c THIS-HOST",
    port: PORT,
    bind: |binding| {
        let ports = binding.addresses();
        let ports = ports.map(|address| ports::bind(address, binding.inherited));
        let ports = ports.collect::<Result<_, _>>()?;
        Ok(Box::new(Iperf3 { ports }))
    },
};

/// How long connections have to end after the gate is closed, before their sockets are shut down.
const FAREWELL: Duration = Duration::from_millis(300);

#[derive(Debug)]
struct Iperf3 {
    ports: Vec<Port>,
}

impl Protocol for Iperf3 {
    fn listening(&self) -> Vec<Listening> {
        let at = |port: &Port| {
            [Transport::Tcp, Transport::Udp].map(|transport| Listening {
                transport,
                address: port.address,
            })
        };
        self.ports.iter().flat_map(at).collect()
    }

    fn run(self: Box<Self>, gate: &Gate) -> io::Result<()> {
        let sessions = &Sessions::default();
        scope(|scope| {
            let mut serving = Vec::new();
            for Port { listener, echo, .. } in self.ports {
                let accepting = Builder::new().name("plumb-iperf3".to_owned());
                accepting
                    .spawn_scoped(scope, move || accept(&listener, sessions, gate))
                    .inspect_err(|_| gate.close())?;
                let connecting = Builder::new().name("plumb-iperf3-u".to_owned());
                let connecting = connecting
                    .spawn_scoped(scope, move || {
                        connect(echo, sessions, gate).inspect_err(|_| gate.close())
                    })
                    .inspect_err(|_| gate.close())?;
                serving.push(connecting);
            }
            let ended = serving
                .into_iter()
                .map(|thread| thread.join().unwrap_or(Ok(())));
            ended.collect::<io::Result<()>>()
        })
    }
}

/// Accepts connections until the gate is closed, which it sees within [`STOP_INTERVAL`], and ends those that are left
/// [`FAREWELL`] after that.
fn accept(listener: &TcpListener, sessions: &Sessions, gate: &Gate) {
    scope(|scope| {
        while !gate.is_closed() {
            let (socket, peer) = match plumb_net::tcp::accept(listener, STOP_INTERVAL) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // No descriptors left, or a connection that was reset while it waited.
                Err(_) => {
                    sleep(STOP_INTERVAL);
                    continue;
                }
            };
            let thread = Builder::new().name("plumb-iperf3-c".to_owned());
            // Without a thread the connection is closed.
            let _ = thread.spawn_scoped(scope, move || greet(socket, peer, sessions, gate));
        }
        sleep(FAREWELL);
        sessions.end_all();
    });
}

/// Reads the cookie within [`GREETING_TIMEOUT`], and hands a data connection to its session or begins one.
fn greet(socket: std::net::TcpStream, peer: SocketAddr, sessions: &Sessions, gate: &Gate) {
    let socket = Arc::new(socket);
    let ip = peer.ip().to_canonical();
    let place = gate.greet(ip, &socket);
    let mut cookie = [0; COOKIE_BYTES];
    let read = read_exact_by(&socket, &mut cookie, Instant::now() + GREETING_TIMEOUT);
    if read.is_err() {
        return;
    }
    drop(place);
    let Some(socket) = Arc::into_inner(socket) else {
        return;
    };
    if let Some(socket) = sessions.hand_over(&cookie, ip, socket) {
        // A client that is gone, or that the gate refuses, needs nothing more.
        let _ = session::run(socket, ip, cookie, sessions, gate);
    }
}

/// Begins streams of UDP until the gate is closed, which it sees within [`STOP_INTERVAL`]. Nothing is answered but the first
/// datagram of a stream that a test of its address waits for, with as many bytes.
fn connect(socket: UdpSocket, sessions: &Sessions, gate: &Gate) -> io::Result<()> {
    /// Failures of receiving, one after the other, before it gives up.
    const MAX_FAILURES: u32 = 16;
    let port = socket.local_addr()?.port();
    let mut socket = DatagramSocket::bound(socket)?;
    let mut buffer = [0; 64];
    let mut failures = 0;
    while !gate.is_closed() {
        match socket.recv(&mut buffer) {
            Ok(Some(received)) => {
                failures = 0;
                let from = received.from;
                let expected = [CONNECT.len(), CONNECT_AGAIN.len()].contains(&received.len)
                    && sessions.waits_for_datagrams(from.ip().to_canonical());
                let here = crate::echo::asked_address(&received, port).filter(|_| expected);
                let Some(here) = here else {
                    continue;
                };
                let begun = BulkSocket::beside(here, from).and_then(|stream| {
                    stream.prepare_to_receive(false)?;
                    stream.send(&CONNECTED)?;
                    Ok(stream)
                });
                // What this machine could not open, the client gives up.
                if let Ok(stream) = begun {
                    sessions.begin_stream(from.ip().to_canonical(), stream);
                }
            }
            Ok(None) => {
                socket.wait_until(monotonic_ns() + STOP_INTERVAL.as_nanos() as u64)?;
            }
            Err(error) => {
                failures += 1;
                if failures >= MAX_FAILURES {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

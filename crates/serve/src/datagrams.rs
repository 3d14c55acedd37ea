//! Protocols whose requests are single datagrams, each answered with one at most: their sockets.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread::Builder;

use plumb_net::clock::monotonic_ns;
use plumb_net::datagram::{DatagramSocket, Received};

use crate::error::ServeError;
use crate::gate::Gate;
use crate::ports::without_ipv6;
use crate::protocol::{Binding, Listening, Transport};

/// How often the request to stop is looked at while nothing comes in.
const STOP_CHECK_NS: u64 = 100_000_000;

/// Failures of receiving, one after the other, before it is given up.
const MAX_RECEIVE_FAILURES: u32 = 16;

/// Larger than any UDP datagram.
const BUFFER_BYTES: usize = 65_536;

/// The sockets of a protocol, one for each address.
#[derive(Debug)]
pub(crate) struct Sockets(Vec<(SocketAddr, UdpSocket)>);

/// What answers datagrams on one of them.
pub(crate) trait Answers: Send {
    /// Looks at what came, and sends what is to be sent.
    fn answer(&mut self, socket: &DatagramSocket, received: &Received, bytes: &[u8]);
}

impl Sockets {
    pub(crate) fn bind(binding: &Binding<'_>) -> Result<Self, ServeError> {
        let bound = binding.addresses().map(bind);
        Ok(Self(bound.collect::<Result<_, _>>()?))
    }

    pub(crate) fn listening(&self) -> Vec<Listening> {
        let at = |(address, _): &(SocketAddr, UdpSocket)| Listening {
            transport: Transport::Udp,
            address: *address,
        };
        self.0.iter().map(at).collect()
    }

    /// Answers on every socket in a thread of its own, what `begin` makes for its port, until the gate is closed, which is seen
    /// within 100 ms.
    ///
    /// # Errors
    /// When nothing can be received any more, or there are no more threads; the gate is then closed.
    pub(crate) fn serve<A: Answers>(
        self,
        name: &str,
        gate: &Gate,
        begin: impl Fn(u16) -> A,
    ) -> io::Result<()> {
        std::thread::scope(|scope| {
            let start = |(address, socket): (SocketAddr, UdpSocket)| {
                let answers = begin(address.port());
                let thread = Builder::new().name(format!("plumb-{name}"));
                thread.spawn_scoped(scope, move || {
                    let socket = DatagramSocket::bound(socket);
                    socket
                        .and_then(|socket| run(socket, answers, gate))
                        .inspect_err(|_| gate.close())
                })
            };
            let started: Vec<_> = self.0.into_iter().map(start).collect();
            let ended = started.into_iter().map(|thread| match thread {
                Ok(thread) => thread.join().unwrap_or(Ok(())),
                Err(error) => {
                    gate.close();
                    Err(error)
                }
            });
            ended.collect()
        })
    }
}

fn bind(address: SocketAddr) -> Result<(SocketAddr, UdpSocket), ServeError> {
    let socket = UdpSocket::bind(address).or_else(|error| match without_ipv6(address, &error) {
        Some(v4) => UdpSocket::bind(v4),
        None => Err(error),
    });
    socket
        .and_then(|socket| Ok((socket.local_addr()?, socket)))
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse {
                address,
                protocol: "UDP",
            },
            _ => ServeError::Listen { address, source },
        })
}

fn run(mut socket: DatagramSocket, mut answers: impl Answers, gate: &Gate) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut failures = 0;
    while !gate.is_closed() {
        match socket.recv(&mut buffer) {
            Ok(Some(received)) => {
                failures = 0;
                // One question to a multicast address would bring an answer from every responder there is.
                let to = received.to.map(|to| to.address.to_canonical());
                if !to.is_some_and(|to| to.is_multicast()) {
                    let bytes = buffer.get(..received.len).unwrap_or_default();
                    answers.answer(&socket, &received, bytes);
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
    Ok(())
}

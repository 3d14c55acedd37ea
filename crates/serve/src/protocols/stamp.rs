//! The STAMP reflector: the sockets around [`Reflector`], which decides. It answers any sender of
//! STAMP or TWAMP Light.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread::Builder;
use std::time::Duration;

use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::{DatagramSocket, Received};
use plumb_wire::stamp::{Arrived, ClockState, PORT, Reflector};

use crate::clock::Clock;
use crate::error::ServeError;
use crate::gate::Gate;
use crate::ports::without_ipv6;
use crate::protocol::{Binding, Entry, Listening, Protocol, Transport};
use crate::settings::StampSettings;

/// How often the request to stop is looked at while nothing comes in.
const STOP_CHECK_NS: u64 = 100_000_000;

/// Failures of receiving, one after the other, before the reflector gives up.
const MAX_RECEIVE_FAILURES: u32 = 16;

/// Larger than any UDP datagram.
const BUFFER_BYTES: usize = 65_536;

pub(crate) const ENTRY: Entry = Entry {
    name: "stamp",
    about: "STAMP and TWAMP Light senders (RFC 8762)",
    port: PORT,
    bind: |binding| Ok(Box::new(Reflectors::bind(binding)?)),
};

/// The sockets of the reflector, one for each address.
#[derive(Debug)]
struct Reflectors {
    settings: StampSettings,
    sockets: Vec<(SocketAddr, UdpSocket)>,
}

impl Reflectors {
    fn bind(binding: &Binding<'_>) -> Result<Self, ServeError> {
        Ok(Self {
            settings: binding.settings.stamp.clone(),
            sockets: binding.addresses().map(bind).collect::<Result<_, _>>()?,
        })
    }
}

impl Protocol for Reflectors {
    fn listening(&self) -> Vec<Listening> {
        let at = |(address, _): &(SocketAddr, UdpSocket)| Listening {
            transport: Transport::Udp,
            address: *address,
        };
        self.sockets.iter().map(at).collect()
    }

    /// Reflects on every socket in a thread of its own.
    fn run(self: Box<Self>, gate: &Gate) -> io::Result<()> {
        let Self { settings, sockets } = *self;
        let settings = &settings;
        std::thread::scope(|scope| {
            let start = |(address, socket): (SocketAddr, UdpSocket)| {
                let reflector = Reflector::new(
                    address.port(),
                    settings.key.clone(),
                    settings.counting,
                    settings.max_rate_pps,
                );
                Builder::new()
                    .name("plumb-stamp".to_owned())
                    .spawn_scoped(scope, move || {
                        let has_key = settings.key.is_some();
                        serve(DatagramSocket::bound(socket)?, reflector, has_key, gate)
                            .inspect_err(|_| gate.close())
                    })
            };
            let started: Vec<_> = sockets.into_iter().map(start).collect();
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

fn serve(
    mut socket: DatagramSocket,
    mut reflector: Reflector,
    has_key: bool,
    gate: &Gate,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut failures = 0;
    let mut clock = Clock::at(monotonic_ns());
    while !gate.is_closed() {
        match socket.recv(&mut buffer) {
            Ok(Some(received)) => {
                failures = 0;
                let clock = clock.state(monotonic_ns());
                let packet = buffer.get(..received.len).unwrap_or_default();
                // A key of its own says more than an address.
                if has_key || gate.answers(received.from.ip()) {
                    answer(&socket, &mut reflector, clock, &received, packet);
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

fn answer(
    socket: &DatagramSocket,
    reflector: &mut Reflector,
    clock: ClockState,
    received: &Received,
    packet: &[u8],
) {
    // One question to a multicast address would bring an answer from every reflector there is.
    if received
        .to
        .is_some_and(|to| to.address.to_canonical().is_multicast())
    {
        return;
    }
    let arrived = Arrived {
        bytes: packet,
        from: received.from,
        ns: clock_field(received.kernel_ns.unwrap_or_else(realtime_ns)),
        dscp: received.dscp,
        ecn: received.ecn,
        hops: received.hop_limit,
    };
    let now = Duration::from_nanos(monotonic_ns());
    let Some(mut reflected) = reflector.reflect(now, clock, &arrived) else {
        return;
    };
    let bytes = reflector.depart(&mut reflected, clock_field(realtime_ns()));
    // What our own machine does not send is lost, as it would be on the way.
    if socket
        .send_from(&bytes, received.to, reflected.dscp, received.from)
        .is_ok()
    {
        reflector.departed(&reflected, clock_field(realtime_ns()));
    }
}

/// Nanoseconds as the wire has them; the cast would matter in the year 2262.
fn clock_field(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

//! The STAMP reflector: the sockets around [`Reflector`], which decides. It answers any sender of
//! STAMP or TWAMP Light.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::{DatagramSocket, Received};
use plumb_wire::stamp::{Arrived, ClockState, Counting, Key, Reflector};

use crate::clock::Clock;
use crate::error::ServeError;
use crate::ports::without_ipv6;

/// How often the request to stop is looked at while nothing comes in.
const STOP_CHECK_NS: u64 = 100_000_000;

/// Failures of receiving, one after the other, before the reflector gives up.
const MAX_RECEIVE_FAILURES: u32 = 16;

/// Larger than any UDP datagram.
const BUFFER_BYTES: usize = 65_536;

/// The reflector as it is asked for.
#[derive(Debug, Clone)]
pub struct StampConfig {
    pub port: u16,
    /// Key that senders must have; anybody is answered where there is none.
    pub key: Option<Key>,
    /// How answers are numbered.
    pub counting: Counting,
    /// Most answers a second, on each address.
    pub max_rate_pps: u32,
    /// Whether nothing is served without it.
    pub required: bool,
}

/// The sockets of the reflector, one for each address.
#[derive(Debug, Default)]
pub(crate) struct Reflectors {
    config: Option<StampConfig>,
    sockets: Vec<(SocketAddr, UdpSocket)>,
    missing: Option<ServeError>,
}

impl Reflectors {
    /// Binds the port on every address.
    ///
    /// # Errors
    /// When one cannot be had, and the reflector is required.
    pub(crate) fn bind(config: &StampConfig, listen: &[SocketAddr]) -> Result<Self, ServeError> {
        let bound = listen
            .iter()
            .map(|address| bind(SocketAddr::new(address.ip(), config.port)))
            .collect::<Result<_, _>>();
        let (sockets, missing) = match bound {
            Ok(sockets) => (sockets, None),
            Err(error) if config.required => return Err(error),
            Err(error) => (Vec::new(), Some(error)),
        };
        Ok(Self {
            config: Some(config.clone()),
            sockets,
            missing,
        })
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(address, _)| *address).collect()
    }

    /// Why there are none.
    pub(crate) fn missing(&self) -> Option<&ServeError> {
        self.missing.as_ref()
    }

    /// Reflects on every socket in a thread of its own, until `stop` is set; a thread ends within
    /// 100 ms of that. One that fails sets `stop`.
    pub(crate) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        stop: &'scope AtomicBool,
    ) -> Vec<io::Result<ScopedJoinHandle<'scope, Result<(), ServeError>>>> {
        let Some(config) = self.config else {
            return Vec::new();
        };
        let start = |(address, socket): (SocketAddr, UdpSocket)| {
            let reflector = Reflector::new(
                address.port(),
                config.key.clone(),
                config.counting,
                config.max_rate_pps,
            );
            Builder::new()
                .name("plumb-stamp".to_owned())
                .spawn_scoped(scope, move || {
                    DatagramSocket::bound(socket)
                        .and_then(|socket| serve(socket, reflector, stop))
                        .inspect_err(|_| stop.store(true, Ordering::Relaxed))
                        .map_err(ServeError::Stamp)
                })
        };
        self.sockets.into_iter().map(start).collect()
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
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut failures = 0;
    let mut clock = Clock::at(monotonic_ns());
    while !stop.load(Ordering::Relaxed) {
        match socket.recv(&mut buffer) {
            Ok(Some(received)) => {
                failures = 0;
                let clock = clock.state(monotonic_ns());
                let packet = buffer.get(..received.len).unwrap_or_default();
                answer(&socket, &mut reflector, clock, &received, packet);
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

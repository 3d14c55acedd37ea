//! The streams of a phase, and how a client opens their data connections.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread::{Builder, scope};
use std::time::Instant;

use plumb_net::bulk::BulkSocket;
use plumb_net::tcp::{self, TcpOptions};
use plumb_wire::native::control::flow::{self, Flow, Flows};
use plumb_wire::native::control::frame::{Preamble, Role};
use plumb_wire::native::control::{Start, Welcome};
use plumb_wire::native::spec::ATTACH_TIMEOUT;

use crate::file::StreamFile;
use crate::frames::write_all_by;
use crate::tcp::TcpLoad;
use crate::tcp::options::options;
use crate::tls::{TlsSession, Trust};
use crate::udp::UdpStream;

/// One stream of a phase, with what carries it.
#[derive(Debug)]
pub enum Stream {
    /// A TCP connection.
    Tcp(TcpLoad),
    /// A UDP socket.
    Udp(UdpStream),
}

/// A data connection after its preamble, and after its handshake if that asked for one.
#[derive(Debug)]
pub struct DataConnection {
    /// How it began.
    pub preamble: Preamble,
    /// The connection.
    pub socket: TcpStream,
    /// Set when it is encrypted.
    pub tls: Option<TlsSession>,
}

/// What a stream is attached with.
#[derive(Debug)]
pub enum Carrier {
    /// A data connection.
    Tcp(DataConnection),
    /// A UDP socket, and the stream that was asked for with it.
    Udp(Preamble, BulkSocket),
}

impl Carrier {
    /// The stream that it is for.
    pub fn preamble(&self) -> Preamble {
        match self {
            Self::Tcp(connection) => connection.preamble,
            Self::Udp(preamble, _) => *preamble,
        }
    }
}

impl Stream {
    /// The stream that came so; `None` when the phase has no such.
    pub fn of(flows: &[Flows], carrier: Carrier) -> Option<Self> {
        let Preamble { role, stream, .. } = carrier.preamble();
        match (flow::stream(flows, role, stream)?, carrier) {
            (Flow::Tcp(flow), Carrier::Tcp(DataConnection { socket, tls, .. })) => {
                Some(Self::Tcp(TcpLoad {
                    number: stream,
                    flow: flow.clone(),
                    socket,
                    tls,
                    file: None,
                }))
            }
            (Flow::Udp(flow), Carrier::Udp(name, socket)) => Some(Self::Udp(UdpStream {
                name,
                flow: flow.clone(),
                socket,
            })),
            (Flow::Tcp(_) | Flow::Udp(_), _) => None,
        }
    }

    /// Its payload comes from a file, or goes to it; only that of TCP can.
    pub fn set_file(&mut self, file: Option<StreamFile>) {
        if let Self::Tcp(stream) = self {
            stream.file = file;
        }
    }

    /// How it is encrypted, if it is.
    pub(crate) fn tls(&self) -> Option<&TlsSession> {
        match self {
            Self::Tcp(stream) => stream.tls.as_ref(),
            Self::Udp(_) => None,
        }
    }
}

/// The streams of a phase, as the client opened them.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Those to receive from.
    pub(crate) incoming: Vec<Stream>,
    /// Those to send on.
    pub(crate) outgoing: Vec<Stream>,
}

/// A data connection that could not be opened.
#[derive(Debug)]
pub(crate) struct StreamError {
    /// Its number.
    pub(crate) stream: u32,
    /// What the system said.
    pub(crate) why: String,
}

/// Connects all streams at once, so that a long path costs one round trip and not one for each,
/// sends their preambles and encrypts those that are to be. Takes at most [`ATTACH_TIMEOUT`].
pub(crate) fn open(
    address: SocketAddr,
    welcome: &Welcome,
    start: &Start,
) -> Result<Streams, StreamError> {
    let deadline = Instant::now() + ATTACH_TIMEOUT;
    let trust = Trust::in_certificate(welcome.certificate).map_err(|error| StreamError {
        stream: 0,
        why: error.to_string(),
    })?;
    let trust = &trust;
    let of = |role| {
        flow::streams(&start.flows, role).map(move |(stream, flow)| {
            let preamble = Preamble {
                token: welcome.token,
                phase: start.phase,
                stream,
                role,
                tls: flow.is_tls(),
            };
            (preamble, flow)
        })
    };
    if flow::streams(&start.flows, Role::Down)
        .chain(flow::streams(&start.flows, Role::Up))
        .any(|(_, flow)| matches!(flow, Flow::Tcp(flow) if flow.fast_open))
    {
        fetch_cookie(address);
    }
    let opened: Vec<_> = scope(|scope| {
        let threads: Vec<_> = of(Role::Down)
            .chain(of(Role::Up))
            .map(|(preamble, flow)| {
                let thread = Builder::new().spawn_scoped(scope, move || {
                    open_one(address, preamble, flow, trust, deadline)
                });
                (preamble, thread)
            })
            .collect();
        let joined = threads.into_iter().map(|(preamble, thread)| {
            let opened = thread
                .map_err(|error| error.to_string())
                .and_then(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err("its thread failed".to_owned()))
                });
            (preamble, opened)
        });
        joined.collect()
    });
    let mut streams = Streams::default();
    for (preamble, opened) in opened {
        let carrier = opened.map_err(|why| StreamError {
            stream: preamble.stream,
            why,
        })?;
        let stream = Stream::of(&start.flows, carrier);
        match preamble.role {
            Role::Down => streams.incoming.extend(stream),
            Role::Up => streams.outgoing.extend(stream),
        }
    }
    Ok(streams)
}

impl Streams {
    /// Asks for the UDP streams once more. To be called every [`ATTACH_INTERVAL`] until the phase
    /// has started.
    ///
    /// [`ATTACH_INTERVAL`]: plumb_wire::native::spec::ATTACH_INTERVAL
    pub(crate) fn attach(&self) -> Result<(), StreamError> {
        for stream in self.incoming.iter().chain(&self.outgoing) {
            let Stream::Udp(stream) = stream else {
                continue;
            };
            // A full queue passes. What the kernel reports was about an earlier one.
            if let Err(error) = stream.attach()
                && error.kind() == io::ErrorKind::ConnectionRefused
            {
                return Err(StreamError {
                    stream: stream.name.stream,
                    why: "UDP: its port is closed (ICMP port unreachable)".to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Makes the kernel ask the server for its Fast Open cookie, where it has none yet: the first
/// connection with a server cannot carry data in its SYN (RFC 7413, section 4.1).
fn fetch_cookie(address: SocketAddr) {
    let options = TcpOptions {
        fast_open: true,
        ..TcpOptions::default()
    };
    // What fails here fails again, and is told, when the streams are opened.
    if let Ok(socket) = tcp::connect(address, ATTACH_TIMEOUT, &options) {
        let _ = tcp::abort_on_close(&socket);
    }
}

fn open_one(
    address: SocketAddr,
    preamble: Preamble,
    flow: &Flow,
    trust: &Trust,
    deadline: Instant,
) -> Result<Carrier, String> {
    let flow = match flow {
        Flow::Tcp(flow) => flow,
        Flow::Udp(_) => {
            let socket = BulkSocket::connect(address).map_err(|error| error.to_string())?;
            return Ok(Carrier::Udp(preamble, socket));
        }
    };
    let options = options(flow);
    let socket =
        tcp::connect(address, ATTACH_TIMEOUT, &options).map_err(|error| error.to_string())?;
    let greet = || -> io::Result<()> {
        tcp::abort_on_close(&socket)?;
        write_all_by(&socket, &preamble.encode(), deadline)
    };
    greet().map_err(|error| error.to_string())?;
    let tls = if preamble.tls {
        let session = TlsSession::connect(&socket, trust, deadline);
        Some(session.map_err(|error| error.to_string())?)
    } else {
        None
    };
    Ok(Carrier::Tcp(DataConnection {
        preamble,
        socket,
        tls,
    }))
}

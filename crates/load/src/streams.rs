//! The streams of a phase, and how a client opens their data connections.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread::{Builder, scope};
use std::time::Instant;

use plumb_net::tcp::{self, TcpOptions};
use plumb_wire::native::control::flow::{self, Flow, Flows};
use plumb_wire::native::control::frame::{Preamble, Role};
use plumb_wire::native::control::{Start, Welcome};
use plumb_wire::native::spec::ATTACH_TIMEOUT;

use crate::frames::write_all_by;
use crate::tcp::options::options;
use crate::tls::{TlsSession, Trust};

/// One stream of a phase.
#[derive(Debug)]
pub struct Stream {
    /// Its number among those of its direction.
    pub number: u32,
    /// What it is.
    pub flow: Flow,
    /// Its data connection.
    pub socket: TcpStream,
    /// Set when that is encrypted.
    pub tls: Option<TlsSession>,
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

impl Stream {
    /// The stream that came on a data connection; `None` when the phase has no such.
    pub fn of(flows: &[Flows], connection: DataConnection) -> Option<Self> {
        let DataConnection {
            preamble,
            socket,
            tls,
        } = connection;
        flow::streams(flows, preamble.role)
            .find(|(known, _)| *known == preamble.stream)
            .map(|(number, flow)| Self {
                number,
                flow: flow.clone(),
                socket,
                tls,
            })
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
        .any(|(_, Flow::Tcp(flow))| flow.fast_open)
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
                (preamble, flow, thread)
            })
            .collect();
        let joined = threads.into_iter().map(|(preamble, flow, thread)| {
            let opened = thread
                .map_err(|error| error.to_string())
                .and_then(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err("its thread failed".to_owned()))
                });
            (preamble, flow, opened)
        });
        joined.collect()
    });
    let mut streams = Streams::default();
    for (preamble, flow, opened) in opened {
        let number = preamble.stream;
        let DataConnection { socket, tls, .. } = opened.map_err(|why| StreamError {
            stream: number,
            why,
        })?;
        let stream = Stream {
            number,
            flow: flow.clone(),
            socket,
            tls,
        };
        match preamble.role {
            Role::Down => streams.incoming.push(stream),
            Role::Up => streams.outgoing.push(stream),
        }
    }
    Ok(streams)
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
) -> Result<DataConnection, String> {
    let Flow::Tcp(flow) = flow;
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
    Ok(DataConnection {
        preamble,
        socket,
        tls,
    })
}

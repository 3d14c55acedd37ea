//! The streams of a phase, and how a client opens their data connections.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use plumb_model::direction::OneDirection;
use plumb_net::bulk::BulkSocket;
use plumb_net::tcp::{self, ConnectError, TcpOptions};
use plumb_wire::native::control::flow::{self, Flow, Flows};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::{Start, Token, Welcome};
use plumb_wire::native::datagram::Tag;
use plumb_wire::native::spec::ATTACH_TIMEOUT;

use crate::file::StreamFile;
use crate::frames::{remaining, write_all_by};
use crate::quic::{QuicStream, prepare_quic};
use crate::tcp::TcpLoad;
use crate::tcp::options::options;
use crate::tls::{TlsError, TlsSession, Trust};
use crate::transactions::TransactionStream;
use crate::udp::{Marks, UdpStream, prepare_to_receive};

/// One stream of a phase, with what carries it.
#[derive(Debug)]
pub enum Stream {
    Tcp(TcpLoad),
    Udp(UdpStream),
    /// A QUIC connection on a UDP socket.
    Quic(QuicStream),
    /// Requests and answers, on a TCP connection or in its name.
    Transactions(TransactionStream),
}

/// A data connection after its preamble, and after its handshake if that asked for one.
#[derive(Debug)]
pub struct DataConnection {
    pub preamble: Preamble,
    pub socket: TcpStream,
    /// Set when it is encrypted.
    pub tls: Option<TlsSession>,
}

/// What a stream is attached with.
#[derive(Debug)]
pub enum Carrier {
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
                    framing: None,
                    file: None,
                }))
            }
            (Flow::Udp(flow), Carrier::Udp(name, socket)) => Some(Self::Udp(UdpStream {
                marks: Marks::Tagged(Tag::of(&name)),
                name,
                flow: flow.clone(),
                socket,
            })),
            (Flow::Transactions(flow), Carrier::Tcp(DataConnection { socket, tls, .. })) => {
                Some(Self::Transactions(TransactionStream {
                    number: stream,
                    flow: flow.clone(),
                    socket,
                    tls,
                }))
            }
            (Flow::Quic(flow), Carrier::Udp(name, socket)) => Some(Self::Quic(QuicStream {
                name,
                flow: flow.clone(),
                socket,
            })),
            (Flow::Tcp(_) | Flow::Udp(_) | Flow::Quic(_) | Flow::Transactions(_), _) => None,
        }
    }

    /// Its payload comes from a file, or goes to it; only a TCP stream can have a file.
    pub fn set_file(&mut self, file: Option<StreamFile>) {
        if let Self::Tcp(stream) = self {
            stream.file = file;
        }
    }

    /// How it is encrypted, if it is.
    pub(crate) fn tls(&self) -> Option<&TlsSession> {
        match self {
            Self::Tcp(stream) => stream.tls.as_ref(),
            Self::Udp(_) | Self::Quic(_) | Self::Transactions(_) => None,
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
    pub(crate) stream: u32,
    /// What the system said.
    pub(crate) why: String,
    /// Whether nothing came back in all of [`ATTACH_TIMEOUT`].
    pub(crate) is_silence: bool,
}

/// Whom a client opens data connections to.
#[derive(Debug, Clone)]
pub struct FarEnd {
    /// The responder, TCP and UDP.
    pub address: SocketAddr,
    pub token: Token,
    /// The phase that they belong to.
    pub phase: u32,
    /// What its certificate must be.
    pub trust: Trust,
}

impl FarEnd {
    /// The responder that said `welcome`.
    ///
    /// # Errors
    /// When nothing can be encrypted.
    pub fn of(address: SocketAddr, welcome: &Welcome, phase: u32) -> Result<Self, TlsError> {
        Ok(Self {
            address,
            token: welcome.token,
            phase,
            trust: Trust::in_certificate(welcome.certificate)?,
        })
    }

    /// How a stream is named.
    fn preamble(&self, role: OneDirection, stream: u32, tls: bool) -> Preamble {
        Preamble {
            token: self.token,
            phase: self.phase,
            stream,
            role,
            tls,
        }
    }

    /// Opens a data connection for the stream of that direction and number, greets and encrypts it; returns how long
    /// TCP took to connect.
    ///
    /// # Errors
    /// When that is not done by `deadline`: what the system said.
    pub(crate) fn dial(
        &self,
        (role, stream): (OneDirection, u32),
        encrypt: bool,
        options: &TcpOptions,
        deadline: Instant,
    ) -> Result<(DataConnection, Duration), String> {
        let preamble = self.preamble(role, stream, encrypt);
        let began = Instant::now();
        let left = remaining(deadline).map_err(|error| error.to_string())?;
        let socket =
            tcp::connect(self.address, left, options).map_err(|error| error.to_string())?;
        let connect = began.elapsed();
        let greet = || -> io::Result<()> {
            tcp::abort_on_close(&socket)?;
            write_all_by(&socket, &preamble.encode(), deadline)
        };
        greet().map_err(|error| error.to_string())?;
        let tls = if encrypt {
            let session = TlsSession::connect(&socket, &self.trust, deadline);
            Some(session.map_err(|error| error.to_string())?)
        } else {
            None
        };
        let connection = DataConnection {
            preamble,
            socket,
            tls,
        };
        Ok((connection, connect))
    }

    /// What carries a stream of that kind.
    fn carrier(
        &self,
        (role, stream): (OneDirection, u32),
        flow: &Flow,
        deadline: Instant,
    ) -> Result<Carrier, String> {
        let options = match flow {
            Flow::Tcp(flow) => options(flow),
            Flow::Transactions(_) => TcpOptions::default(),
            Flow::Udp(_) | Flow::Quic(_) => {
                let open = || -> io::Result<BulkSocket> {
                    let socket = BulkSocket::connect(self.address)?;
                    prepare(flow, role == OneDirection::Down, &socket)?;
                    Ok(socket)
                };
                let socket = open().map_err(|error| match error.kind() {
                    // What UDP says where TCP says EADDRNOTAVAIL (inet_autobind).
                    io::ErrorKind::WouldBlock => ConnectError::NoPort.to_string(),
                    _ => error.to_string(),
                })?;
                return Ok(Carrier::Udp(self.preamble(role, stream, false), socket));
            }
        };
        self.dial((role, stream), flow.is_tls(), &options, deadline)
            .map(|(connection, _)| Carrier::Tcp(connection))
    }
}

/// Prepares the UDP socket of a stream that this end receives, or sends, before the far end knows of
/// it.
///
/// # Errors
/// Errors of the kernel.
pub fn prepare(flow: &Flow, receives: bool, socket: &BulkSocket) -> io::Result<()> {
    match flow {
        Flow::Udp(flow) if receives => prepare_to_receive(flow, socket),
        Flow::Quic(_) => prepare_quic(socket),
        Flow::Udp(_) | Flow::Tcp(_) | Flow::Transactions(_) => Ok(()),
    }
}

/// Connects all streams at once, so that a long path costs one round trip and not one for each,
/// sends their preambles and encrypts those that are to be. Takes at most [`ATTACH_TIMEOUT`].
pub(crate) fn open(far: &FarEnd, start: &Start) -> Result<Streams, StreamError> {
    let deadline = Instant::now() + ATTACH_TIMEOUT;
    let of =
        |role| flow::streams(&start.flows, role).map(move |(stream, flow)| (role, stream, flow));
    if of(OneDirection::Down)
        .chain(of(OneDirection::Up))
        .any(|(_, _, flow)| matches!(flow, Flow::Tcp(flow) if flow.fast_open))
    {
        fetch_cookie(far.address);
    }
    let opened: Vec<_> = scope(|scope| {
        let threads: Vec<_> = of(OneDirection::Down)
            .chain(of(OneDirection::Up))
            .map(|(role, stream, flow)| {
                let thread = Builder::new()
                    .spawn_scoped(scope, move || far.carrier((role, stream), flow, deadline));
                (role, stream, thread)
            })
            .collect();
        let joined = threads.into_iter().map(|(role, stream, thread)| {
            let opened = thread
                .map_err(|error| error.to_string())
                .and_then(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err("its thread failed".to_owned()))
                });
            (role, stream, opened)
        });
        joined.collect()
    });
    let is_silence = Instant::now() >= deadline;
    let mut streams = Streams::default();
    for (role, stream, opened) in opened {
        let carrier = opened.map_err(|why| StreamError {
            stream,
            why,
            is_silence,
        })?;
        let stream = Stream::of(&start.flows, carrier);
        match role {
            OneDirection::Down => streams.incoming.extend(stream),
            OneDirection::Up => streams.outgoing.extend(stream),
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
            let (name, attached) = match stream {
                Stream::Udp(stream) => (stream.name, stream.attach()),
                Stream::Quic(stream) => (stream.name, stream.attach()),
                Stream::Tcp(_) | Stream::Transactions(_) => continue,
            };
            // A full queue passes. What the kernel reports was about an earlier one.
            if let Err(error) = attached
                && error.kind() == io::ErrorKind::ConnectionRefused
            {
                return Err(StreamError {
                    stream: name.stream,
                    why: "UDP: its port is closed (ICMP port unreachable)".to_owned(),
                    is_silence: false,
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
    // What fails here fails again, and is reported, when the streams are opened.
    if let Ok(socket) = tcp::connect(address, ATTACH_TIMEOUT, &options) {
        let _ = tcp::abort_on_close(&socket);
    }
}

//! The streams of a phase, and how a client opens their data connections.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread::{Builder, scope};
use std::time::Instant;

use plumb_net::tcp;
use plumb_wire::native::control::flow::{self, Flow, Flows};
use plumb_wire::native::control::frame::{Preamble, Role};
use plumb_wire::native::control::{Start, Token};
use plumb_wire::native::spec::ATTACH_TIMEOUT;

use crate::frames::write_all_by;

/// One stream of a phase.
#[derive(Debug)]
pub struct Stream {
    /// Its number among those of its direction.
    pub number: u32,
    /// What it is.
    pub flow: Flow,
    /// Its data connection.
    pub socket: TcpStream,
}

impl Stream {
    /// The stream of that number and direction; `None` when the phase has no such.
    pub fn of(flows: &[Flows], role: Role, number: u32, socket: TcpStream) -> Option<Self> {
        flow::streams(flows, role)
            .find(|(known, _)| *known == number)
            .map(|(_, flow)| Self {
                number,
                flow: flow.clone(),
                socket,
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
/// and sends their preambles. Takes at most [`ATTACH_TIMEOUT`].
pub(crate) fn open(
    address: SocketAddr,
    token: Token,
    start: &Start,
) -> Result<Streams, StreamError> {
    let deadline = Instant::now() + ATTACH_TIMEOUT;
    let of = |role| {
        flow::streams(&start.flows, role).map(move |(stream, flow)| {
            let preamble = Preamble {
                token,
                phase: start.phase,
                stream,
                role,
            };
            (preamble, flow)
        })
    };
    let opened: Vec<_> = scope(|scope| {
        let threads: Vec<_> = of(Role::Down)
            .chain(of(Role::Up))
            .map(|(preamble, flow)| {
                let thread = Builder::new()
                    .spawn_scoped(scope, move || open_one(address, &preamble, flow, deadline));
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
        let stream = Stream {
            number,
            flow: flow.clone(),
            socket: opened.map_err(|why| StreamError {
                stream: number,
                why,
            })?,
        };
        match preamble.role {
            Role::Down => streams.incoming.push(stream),
            Role::Up => streams.outgoing.push(stream),
        }
    }
    Ok(streams)
}

fn open_one(
    address: SocketAddr,
    preamble: &Preamble,
    flow: &Flow,
    deadline: Instant,
) -> Result<TcpStream, String> {
    let Flow::Tcp(flow) = flow;
    let cc = (preamble.role == Role::Up).then(|| flow.congestion_control());
    let socket = tcp::connect(address, ATTACH_TIMEOUT, cc).map_err(|error| error.to_string())?;
    let greet = || -> io::Result<()> {
        tcp::abort_on_close(&socket)?;
        write_all_by(&socket, &preamble.encode(), deadline)
    };
    greet().map_err(|error| error.to_string())?;
    Ok(socket)
}

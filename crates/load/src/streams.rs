//! Opens the data connections of a phase.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread::{Builder, scope};
use std::time::Instant;

use plumb_net::tcp;
use plumb_wire::native::control::frame::{Preamble, Role};
use plumb_wire::native::control::{Start, Token};
use plumb_wire::native::spec::ATTACH_TIMEOUT;

use crate::frames::write_all_by;

/// The data connections of a phase, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Those to receive from.
    pub(crate) incoming: Vec<(u32, TcpStream)>,
    /// Those to send on.
    pub(crate) outgoing: Vec<(u32, TcpStream)>,
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
/// and sends their preambles. Takes at most [`ATTACH_TIMEOUT`]. `cc` is for those to send on.
pub(crate) fn open(
    address: SocketAddr,
    token: Token,
    start: &Start,
    cc: &str,
) -> Result<Streams, StreamError> {
    let deadline = Instant::now() + ATTACH_TIMEOUT;
    let down = (0..start.down_streams).map(|stream| (Role::Down, stream));
    let up = (0..start.up_streams).map(|stream| (Role::Up, stream));
    let preambles = down.chain(up).map(|(role, stream)| Preamble {
        token,
        phase: start.phase,
        stream,
        role,
    });
    let opened: Vec<_> = scope(|scope| {
        let threads: Vec<_> = preambles
            .map(|preamble| {
                (
                    preamble,
                    Builder::new()
                        .spawn_scoped(scope, move || open_one(address, &preamble, cc, deadline)),
                )
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
    for (Preamble { role, stream, .. }, opened) in opened {
        let socket = opened.map_err(|why| StreamError { stream, why })?;
        match role {
            Role::Down => streams.incoming.push((stream, socket)),
            Role::Up => streams.outgoing.push((stream, socket)),
        }
    }
    Ok(streams)
}

fn open_one(
    address: SocketAddr,
    preamble: &Preamble,
    cc: &str,
    deadline: Instant,
) -> Result<TcpStream, String> {
    let cc = (preamble.role == Role::Up).then_some(cc);
    let socket = tcp::connect(address, ATTACH_TIMEOUT, cc).map_err(|error| error.to_string())?;
    let greet = || -> io::Result<()> {
        tcp::abort_on_close(&socket)?;
        write_all_by(&socket, &preamble.encode(), deadline)
    };
    greet().map_err(|error| error.to_string())?;
    Ok(socket)
}

//! Finds out what a new connection is: a control connection becomes a session, a data
//! connection goes to the session that it names, anything else is closed.

use std::net::{IpAddr, TcpStream};
use std::time::Instant;

use plumb_load::frames::{LinkError, read_body, read_exact_by};
use plumb_net::tcp;
use plumb_wire::native::control::frame::{Opening, Preamble, opening};
use plumb_wire::native::spec::{FRAME_HEADER_BYTES, GREETING_TIMEOUT, PREAMBLE_BYTES};

use crate::registry::GreetingPlace;
use crate::{Shared, session};

/// Reads the first frame or the preamble within [`GREETING_TIMEOUT`], then runs the session or
/// hands the data connection over and ends.
pub(crate) fn run(shared: &Shared<'_>, socket: TcpStream, peer: IpAddr, place: GreetingPlace<'_>) {
    let Ok(opened) = open(&socket) else { return };
    drop(place);
    match opened {
        Opened::Control(first) => session::run(shared, &socket, peer, first),
        Opened::Data(preamble) => shared.registry.attach(preamble, socket),
    }
}

enum Opened {
    Control(plumb_wire::native::control::ClientMessage),
    Data(Preamble),
}

fn open(socket: &TcpStream) -> Result<Opened, LinkError> {
    let deadline = Instant::now() + GREETING_TIMEOUT;
    let mut first = [0; FRAME_HEADER_BYTES];
    read_exact_by(socket, &mut first, deadline)?;
    match opening(first)? {
        Opening::Control(length) => {
            socket.set_nodelay(true)?;
            Ok(Opened::Control(read_body(socket, length, deadline)?))
        }
        Opening::Data => {
            tcp::abort_on_close(socket)?;
            let mut bytes = [0; PREAMBLE_BYTES];
            let (head, rest) = bytes.split_at_mut(FRAME_HEADER_BYTES);
            head.copy_from_slice(&first);
            read_exact_by(socket, rest, deadline)?;
            Ok(Opened::Data(Preamble::decode(&bytes)?))
        }
    }
}

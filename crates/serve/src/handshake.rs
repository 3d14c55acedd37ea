//! Finds out what a new connection is: a control connection becomes a session, a data
//! connection goes to the session that it names, encrypted first if it is to be, and so does one that is
//! to be silent; anything else is closed.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use plumb_load::frames::{LinkError, read_body, read_exact_by};
use plumb_load::streams::DataConnection;
use plumb_load::tls::TlsSession;
use plumb_net::tcp;
use plumb_wire::native::control::frame::{Opening, Preamble, opening};
use plumb_wire::native::control::silence::Silence;
use plumb_wire::native::spec::{
    FRAME_HEADER_BYTES, GREETING_TIMEOUT, PREAMBLE_BYTES, SILENT_PREAMBLE_BYTES,
};

use crate::access;
use crate::registry::GreetingPlace;
use crate::session;
use crate::shared::Shared;

/// Reads the first frame, or the preamble and the handshake, within [`GREETING_TIMEOUT`], then runs the session or
/// hands the data connection over and ends. It ends at once where its place is needed for another connection.
pub(crate) fn run(shared: &Shared, socket: Arc<TcpStream>, peer: IpAddr, place: GreetingPlace<'_>) {
    let deadline = Instant::now() + GREETING_TIMEOUT;
    match open(&socket, deadline) {
        Ok(Opened::Control(first)) => {
            // In the place of one that has not been greeted: it may end for others.
            if access::check(shared, &socket, peer).is_err() {
                return;
            }
            drop(place);
            session::run(shared, &socket, peer, first);
        }
        Ok(Opened::Data(preamble)) => attach(shared, preamble, socket, peer, place, deadline),
        Ok(Opened::Silent(silence)) => {
            drop(place);
            let Some(socket) = Arc::into_inner(socket) else {
                return;
            };
            shared.registry.hush(silence, socket, peer);
        }
        Err(_) => {
            // A reset leaves nothing behind in this kernel, not even TIME_WAIT.
            let _ = tcp::abort_on_close(&socket);
        }
    }
}

/// Computes nothing for a connection that belongs to no session. The connection of a single
/// transaction is answered here.
fn attach(
    shared: &Shared,
    preamble: Preamble,
    socket: Arc<TcpStream>,
    peer: IpAddr,
    place: GreetingPlace<'_>,
    deadline: Instant,
) {
    let admitted = shared.registry.admit(peer, &preamble);
    let tls = if preamble.tls {
        if !shared.registry.knows(peer, preamble.token) {
            return;
        }
        match TlsSession::accept(&socket, &shared.identity, deadline) {
            Ok(session) => Some(session),
            Err(_) => return,
        }
    } else {
        None
    };
    // Its handle is given back with its place.
    let (transaction, socket) = match &admitted {
        Some(_) => match place.of_a_transaction() {
            Some(place) => (Some(place), Arc::into_inner(socket)),
            None => return,
        },
        None => {
            drop(place);
            (None, Arc::into_inner(socket))
        }
    };
    let Some(socket) = socket else {
        return;
    };
    let connection = DataConnection {
        preamble,
        socket,
        tls,
    };
    match admitted {
        Some(admitted) => admitted.answer(connection),
        None => shared.registry.attach(peer, connection),
    }
    drop(transaction);
}

enum Opened {
    Control(plumb_wire::native::control::ClientMessage),
    Data(Preamble),
    Silent(Silence),
}

fn open(socket: &TcpStream, deadline: Instant) -> Result<Opened, LinkError> {
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
        Opening::Silent => {
            tcp::abort_on_close(socket)?;
            let mut bytes = [0; SILENT_PREAMBLE_BYTES];
            let (head, rest) = bytes.split_at_mut(FRAME_HEADER_BYTES);
            head.copy_from_slice(&first);
            read_exact_by(socket, rest, deadline)?;
            Ok(Opened::Silent(Silence::decode(&bytes)?))
        }
    }
}

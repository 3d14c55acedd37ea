//! What the other threads of a responder let a session know.

use std::convert::Infallible;
use std::net::{IpAddr, TcpStream};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use plumb_load::streams::DataConnection;
use plumb_wire::native::control::ClientMessage;
use plumb_wire::native::control::ServerMessage;

use crate::echo::Asked;
use crate::silent_places::SilentPlace;

/// What happens to a session.
#[derive(Debug)]
pub(crate) enum Event {
    Message(ClientMessage, Taken),
    /// A data connection named the session.
    Attached(Box<DataConnection>),
    /// A datagram asked for a UDP stream; it may come again and again.
    Asked(Asked),
    /// A connection that is to be silent named the session.
    Hushed(Hushed),
    /// The path towards the client was traced, or could not be.
    Traced(ServerMessage),
    /// Its place is another client's now.
    Displaced,
    /// The control connection is over.
    Gone,
}

/// The reader of a session's messages waits until this is dropped: large ones do not pile up.
pub(crate) type Taken = SyncSender<Infallible>;

/// A connection that is to be silent.
#[derive(Debug)]
pub(crate) struct Hushed {
    pub(crate) socket: TcpStream,
    /// Whom it comes from.
    pub(crate) peer: IpAddr,
    pub(crate) time: Duration,
    pub(crate) place: SilentPlace,
}

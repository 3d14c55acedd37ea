//! Who is at the other end of a plan, and carries load.

use std::fmt;
use std::net::SocketAddr;

use plumb_load::{Carries, Client, Peer};

/// A far end that carries load.
pub enum FarEnd {
    /// plumb's own, which does and reports much more besides.
    Responder(Box<Client>),
    /// A server of others.
    Server {
        peer: Box<dyn Peer>,
        /// Its name, where that is not the one that the user typed: a document there named it.
        named: Option<String>,
        address: SocketAddr,
    },
}

impl fmt::Debug for FarEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FarEnd({})", self.address())
    }
}

impl FarEnd {
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Responder(client) => client.address(),
            Self::Server { address, .. } => *address,
        }
    }

    /// What loads it carries.
    pub fn carries(&self) -> Carries {
        match self {
            Self::Responder(client) => client.carries(),
            Self::Server { peer, .. } => peer.carries(),
        }
    }

    /// The responder, where it is one.
    pub fn responder(&self) -> Option<&Client> {
        match self {
            Self::Responder(client) => Some(client),
            Self::Server { .. } => None,
        }
    }

    /// The responder to be asked for something, where it is one.
    pub fn responder_mut(&mut self) -> Option<&mut Client> {
        match self {
            Self::Responder(client) => Some(client),
            Self::Server { .. } => None,
        }
    }

    /// Who runs load phases.
    pub fn peer(&mut self) -> &mut dyn Peer {
        match self {
            Self::Responder(client) => &mut **client,
            Self::Server { peer, .. } => &mut **peer,
        }
    }
}

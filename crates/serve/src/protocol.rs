//! What a protocol that strangers speak is to a responder: it binds ports of its own, and serves until the gate is closed.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::error::ServeError;
use crate::gate::Gate;
use crate::ports::Inherited;
use crate::settings::Settings;

/// One that has its ports.
pub(crate) trait Protocol: Send + fmt::Debug {
    /// Where it listens, with the ports that the system chose where it was asked for port 0.
    fn listening(&self) -> Vec<Listening>;

    /// Serves until the gate is closed, and returns within half a second of that.
    ///
    /// # Errors
    /// When it cannot go on; the whole responder then ends.
    fn run(self: Box<Self>, gate: &Gate) -> io::Result<()>;
}

/// An address at which a protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    pub transport: Transport,
    pub address: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// What is known of a protocol before it is bound: a line of [`crate::protocols`].
#[derive(Debug)]
pub struct Entry {
    /// Its name in options.
    pub name: &'static str,
    /// Which clients speak it, for people.
    pub about: &'static str,
    /// The port that its clients try first.
    pub port: u16,
    pub(crate) bind: Bind,
}

/// Binds the protocol's ports.
pub(crate) type Bind = fn(&Binding<'_>) -> Result<Box<dyn Protocol>, ServeError>;

/// What a protocol binds with.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    /// Addresses to listen on. The unspecified IPv6 address means the IPv4 one where there is no IPv6.
    pub(crate) listen: &'a [IpAddr],
    pub(crate) port: u16,
    pub(crate) settings: &'a Settings,
    pub(crate) inherited: &'a Inherited,
}

impl Binding<'_> {
    /// The addresses with the port.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let at = |address: &IpAddr| SocketAddr::new(*address, self.port);
        self.listen.iter().map(at)
    }
}

/// A protocol that a responder is to speak.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub entry: &'static Entry,
    pub port: u16,
    /// Whether nothing is served without it; else it is left out where its port is taken.
    pub is_required: bool,
}

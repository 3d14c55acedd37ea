//! A server of iperf3: where it is, and how it is connected to.

use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::time::Duration;

use plumb_net::bulk::BulkSocket;
use plumb_net::tcp::{TcpOptions, connect};

use crate::control_client::ClientError;
use crate::streams::Streams;

/// Where public servers listen: one a port, because each of iperf3's serves one client at a time.
const PORTS: RangeInclusive<u16> = 5201..=5210;

/// How long a server has to answer, and a connection to come about: a lost SYN is retransmitted after 1 s and 3 s.
pub(super) const ANSWER: Duration = Duration::from_secs(5);

/// How long `plumb serve` lets a client wait for its turn, and some more.
pub(super) const TURN: Duration = Duration::from_secs(35);

/// Payload of the segments of a control connection, which must pass where larger ones vanish: with headers, less than the 1280
/// bytes of IPv6 (RFC 8200, section 5).
pub(super) const CONTROL_SEGMENT_BYTES: u16 = 1000;

/// Its name in messages.
pub(super) const PROTOCOL: &str = "iperf3";

/// A server of iperf3.
#[derive(Debug)]
pub struct Iperf3 {
    pub(super) name: String,
    address: SocketAddr,
    /// Ports to try, one after the other, where a server is busy.
    pub(super) ports: RangeInclusive<u16>,
}

impl Iperf3 {
    /// The server at the host of `address`, which the user calls `name`: on its port, or on the first from 5201 to 5210 that
    /// is not busy where that is 0.
    pub fn at(name: &str, address: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            address,
            ports: match address.port() {
                0 => PORTS,
                port => port..=port,
            },
        }
    }

    /// With the first port that is tried.
    pub fn address(&self) -> SocketAddr {
        let mut address = self.address;
        address.set_port(*self.ports.start());
        address
    }

    /// Whether something listens on one of its ports.
    pub fn is_there(&self) -> bool {
        self.ports
            .clone()
            .any(|port| self.connect(port, &TcpOptions::default()).is_ok())
    }

    pub(super) fn connect(
        &self,
        port: u16,
        options: &TcpOptions,
    ) -> Result<TcpStream, ClientError> {
        let mut address = self.address;
        address.set_port(port);
        let connected = connect(address, ANSWER, options);
        connected.map_err(|why| ClientError::Unreachable {
            name: self.name.clone(),
            port,
            why: why.to_string(),
        })
    }

    pub(super) fn broken(&self, why: &str) -> ClientError {
        ClientError::Lost {
            name: self.name.clone(),
            why: why.to_owned(),
        }
    }

    pub(super) fn local(&self, error: &impl ToString) -> ClientError {
        ClientError::Local {
            name: self.name.clone(),
            why: error.to_string(),
        }
    }

    pub(super) fn no_stream(&self, stream: u32, error: &impl ToString) -> ClientError {
        ClientError::Stream {
            name: self.name.clone(),
            stream,
            why: error.to_string(),
            is_silence: false,
        }
    }
}

/// Streams before they run.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) streams: Streams,
    /// Each connection once more, and whether this end sends on it: closed when the results are there.
    pub(super) kept: Vec<(bool, TcpStream)>,
    /// Sockets of datagrams once more: a server that sends to one that is closed takes that for an error.
    pub(super) held: Vec<BulkSocket>,
    /// One of those to which no answer came.
    pub(super) unanswered: Option<u32>,
}

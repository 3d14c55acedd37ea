//! Servers and the connections to them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use plumb_model::results::page_load::HttpVersion;
use plumb_wire::http_client::{Event, HttpError, Request};
use plumb_wire::url::Origin;
use plumb_wire::{http1, http2};

/// From one moment to another of CLOCK_MONOTONIC, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Span {
    pub(super) fn length_s(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// How much of it lies in another one.
    pub(super) fn within(self, other: Self) -> Self {
        let from_ns = self.from_ns.max(other.from_ns);
        let to_ns = self.to_ns.min(other.to_ns).max(from_ns);
        Self { from_ns, to_ns }
    }
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) origin: Origin,
    pub(super) lookup: Lookup,
    /// When its name was looked up; `None` where its host is an address, or the address is known already.
    pub(super) dns: Option<Span>,
    /// What it speaks, once that is known.
    pub(super) version: Option<HttpVersion>,
    /// Objects that wait for a connection.
    pub(super) waiting: VecDeque<usize>,
    /// Connections at once, fewer where some were refused.
    pub(super) max_connections: usize,
    /// The user named it, not a page.
    pub(super) chosen: bool,
    /// Why it was not reached.
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    Unknown,
    UnderWay,
    Known(Vec<SocketAddr>),
    Failed,
}

/// A connection that stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Established {
    pub(super) address: SocketAddr,
    pub(super) connect: Span,
    /// Its round trip as the kernel timed it, in seconds; `None` where a SYN was sent again.
    pub(super) rtt_s: Option<f64>,
    pub(super) tls: Option<TlsDone>,
    /// What is spoken on it.
    pub(super) version: HttpVersion,
}

/// A TLS handshake that is over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TlsDone {
    pub(super) handshake: Span,
    pub(super) version: String,
    /// Round trips that it takes (RFC 8446, figure 1; RFC 5246, figure 1).
    pub(super) round_trips: u64,
}

/// A connection, from the decision to open it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) server: usize,
    pub(super) state: State,
    /// How it came to be.
    pub(super) established: Option<Established>,
    /// Requests on it so far.
    pub(super) requests: u64,
    /// Answers that have come whole.
    pub(super) answers: u64,
    /// The objects by the number of the stream that fetches them.
    pub(super) streams: BTreeMap<u32, usize>,
    /// Objects whose requests are written and not yet sent.
    pub(super) unsent: Vec<usize>,
    /// Content that it has carried, in bytes.
    pub(super) carried_bytes: u64,
}

#[derive(Debug)]
pub(super) enum State {
    Connecting,
    Open(Client),
    Closed,
}

#[derive(Debug)]
pub(super) enum Client {
    One(http1::Client),
    Two(Box<http2::Client>),
}

impl Client {
    pub(super) fn new(version: HttpVersion) -> Self {
        match version {
            HttpVersion::Http1 => Self::One(http1::Client::default()),
            HttpVersion::Http2 => Self::Two(Box::default()),
        }
    }

    pub(super) fn can_request(&self) -> bool {
        match self {
            Self::One(client) => client.can_request(),
            Self::Two(client) => client.can_request(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::One(client) => client.is_closed(),
            Self::Two(client) => client.is_closed(),
        }
    }

    pub(super) fn request(&mut self, request: &Request) -> Option<u32> {
        match self {
            Self::One(client) => client.request(request),
            Self::Two(client) => client.request(request),
        }
    }

    pub(super) fn take_output(&mut self) -> Vec<u8> {
        match self {
            Self::One(client) => client.take_output(),
            Self::Two(client) => client.take_output(),
        }
    }

    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), HttpError> {
        match self {
            Self::One(client) => client.receive(bytes, events),
            Self::Two(client) => client.receive(bytes, events),
        }
    }

    pub(super) fn end(&mut self, events: &mut Vec<Event>) {
        match self {
            Self::One(client) => client.end(events),
            Self::Two(client) => client.end(events),
        }
    }
}

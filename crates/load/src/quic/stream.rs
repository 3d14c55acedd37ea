//! A QUIC stream before it runs.

use std::io;

use plumb_net::bulk::BulkSocket;
use plumb_wire::native::control::flow::quic::QuicFlow;
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::datagram;

use crate::tls::{Identity, Trust};

/// A QUIC stream and its socket, connected to the far end.
#[derive(Debug)]
pub struct QuicStream {
    pub name: Preamble,
    pub flow: QuicFlow,
    pub socket: BulkSocket,
}

impl QuicStream {
    /// Asks the far end for it once more.
    pub(crate) fn attach(&self) -> io::Result<()> {
        self.socket.send(&datagram::attach(&self.name)).map(|_| ())
    }
}

/// Which end of its QUIC connections this is.
#[derive(Debug, Clone)]
pub enum QuicSide {
    /// It opens them, and knows what the far end is to show.
    Client(Trust),
    /// It answers, and shows this.
    Server(Identity),
}

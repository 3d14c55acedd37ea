//! What observers learn of each segment while connections are followed.

use std::cell::Cell;
use std::net::SocketAddr;

use crate::packet::{Address, Segment};
use crate::tcp::{CLIENT, Classes, Side, View};

/// Learns of each segment after it was followed.
pub trait Observer {
    /// Learns when the first packet of the capture came, before any segment.
    fn begin(&mut self, _unix_ns: u64) {}

    /// Takes note of a segment.
    fn segment(&mut self, followed: &Followed<'_>);

    /// Whether it can take note of nothing more, so that the capture need not be read on.
    fn has_failed(&self) -> bool {
        false
    }
}

/// A segment that was followed.
pub struct Followed<'a> {
    /// Its place among the packets of the capture, from 1.
    pub(crate) packet: u64,
    pub(crate) unix_ns: u64,
    /// The same as the connection counts time, which does not run backwards.
    pub(crate) steady_ns: u64,
    /// The connection's place in the order in which they began, from 0.
    pub(crate) connection: u32,
    /// Addresses and ports of client and server.
    pub(crate) ends: [(Address, u16); 2],
    pub(crate) from: Side,
    pub(crate) segment: &'a Segment<'a>,
    pub(crate) wire_bytes: u32,
    pub(crate) classes: Classes,
    /// The round trip in nanoseconds that it ended.
    pub(crate) rtt_ns: Option<u64>,
    pub(crate) view: View,
    /// Where the connection's graph is, for who draws them.
    pub(crate) slot: &'a Cell<u16>,
}

impl Followed<'_> {
    /// Whether the client sent it.
    pub(crate) fn is_up(&self) -> bool {
        self.from == CLIENT
    }

    /// Client and server, as the standard library has them.
    pub(crate) fn sockets(&self) -> [SocketAddr; 2] {
        self.ends
            .map(|(address, port)| SocketAddr::new(address.ip(), port))
    }

    /// Its sequence number from the initial one.
    pub(crate) fn sequence(&self) -> u32 {
        let [own, _] = self.view.isns;
        self.segment.seq.wrapping_sub(own)
    }

    /// A number that it acknowledges, from the other side's initial one.
    pub(crate) fn of_other(&self, number: u32) -> u32 {
        let [_, other] = self.view.isns;
        number.wrapping_sub(other)
    }
}

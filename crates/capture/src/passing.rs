//! Flows while they pass, and who is shown them.

use std::net::SocketAddr;

/// What was taken in so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub packets: u64,
    /// Bytes of the packets on the wire.
    pub bytes: u64,
    /// Packets that the source counted as lost.
    pub dropped: u64,
}

/// Shows flows while they pass.
pub trait Viewer {
    /// Whether it is time to show them; asked several times a second.
    fn is_due(&mut self) -> bool;

    /// Shows the flows that are open, with the sums of all packets.
    fn show(&mut self, totals: Totals, flows: &mut dyn Iterator<Item = PassingFlow>);
}

/// A flow as it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassingFlow {
    /// Number of the protocol in IP.
    pub protocol: u8,
    /// Addresses and ports, of TCP the client's first.
    pub ends: [SocketAddr; 2],
    /// Bytes on the wire from the first end and from the second.
    pub bytes: [u64; 2],
    /// The same since the flows were shown before.
    pub recent_bytes: [u64; 2],
    /// The latest round trip of TCP in nanoseconds, over as much of the path between the ends as was seen.
    pub rtt_ns: Option<u64>,
    /// Segments of TCP that carried what was sent before.
    pub retransmissions: u64,
}

//! Sockets, who owns them, and what TCP knows of their paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sockets of this network namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sockets {
    /// TCP sockets by the kernel's name of their state.
    pub tcp_states: std::collections::BTreeMap<String, u64>,
    /// Established connections, those that carried most first.
    pub connections: Vec<Connection>,
    /// Established connections that are not listed.
    pub connections_left_out: u64,
    /// Sockets that wait for connections.
    pub listeners: Vec<Listener>,
    /// UDP sockets.
    pub udp: u64,
    /// Datagrams that UDP sockets dropped for want of receive buffer, those sockets that still live.
    pub udp_drops: u64,
}

/// Who owns a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// Number of the process.
    pub pid: u32,
    /// Name of its program.
    pub program: String,
}

/// A TCP connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// This end's address and port.
    pub local: String,
    /// The other end's.
    pub remote: String,
    /// Who owns it; absent where this user may not see it.
    pub owner: Option<Owner>,
    /// Congestion control.
    pub congestion_control: Option<String>,
    /// Smoothed round trip.
    pub rtt_s: f64,
    /// Smallest round trip.
    pub min_rtt_s: Option<f64>,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Largest payload of a segment.
    pub mss_bytes: u32,
    /// Largest packet that the path takes, as far as is known.
    pub path_mtu_bytes: u32,
    /// Rate at which the other end lately acknowledged.
    pub delivery_bps: f64,
    /// Rate at which segments leave at most.
    pub pacing_bps: Option<f64>,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Segments sent again.
    pub retransmits: u32,
    /// Bytes that wait to be sent or acknowledged.
    pub send_queue_bytes: u64,
    /// Bytes that the program has not read.
    pub receive_queue_bytes: u64,
    /// Limit of the send buffer, in kernel memory.
    pub send_buffer_bytes: Option<u64>,
    /// Limit of the receive buffer.
    pub receive_buffer_bytes: Option<u64>,
    /// Packets dropped for want of receive buffer.
    pub drops: Option<u64>,
    /// Share of its busy time that it waited for the receiver's window.
    pub rwnd_ratio: Option<f64>,
    /// Share of its busy time that it waited for its send buffer.
    pub sndbuf_ratio: Option<f64>,
}

/// A socket that waits for connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// Address and port.
    pub local: String,
    /// Who owns it.
    pub owner: Option<Owner>,
    /// Connections that wait to be accepted.
    pub waiting: u64,
    /// How many may.
    pub backlog: u64,
}

/// What TCP remembers of an address from connections that ended (`net/ipv4/tcp_metrics.c`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CachedMetrics {
    /// The other end.
    pub remote: String,
    /// This end.
    pub local: Option<String>,
    /// When it was last changed.
    pub age_s: Option<f64>,
    /// Where slow start ends at first, in segments.
    pub ssthresh_segments: Option<u32>,
    /// Congestion window that was reached.
    pub cwnd_segments: Option<u32>,
    /// Round trip.
    pub rtt_s: Option<f64>,
    /// Its mean deviation.
    pub rttvar_s: Option<f64>,
    /// By how many segments packets overtook each other.
    pub reordering_segments: Option<u32>,
}

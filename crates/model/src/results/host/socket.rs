//! Sockets, who owns them, and what TCP knows of their paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sockets of this network namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sockets {
    /// Number of TCP sockets by the kernel's name of their state.
    pub tcp_states: std::collections::BTreeMap<String, u64>,
    /// Established connections, those that carried most first.
    pub connections: Vec<Connection>,
    /// Established connections that are not listed.
    pub connections_left_out: u64,
    /// Sockets that wait for connections.
    pub listeners: Vec<Listener>,
    /// Number of UDP sockets.
    pub udp: u64,
    /// Datagrams that UDP sockets dropped for want of receive buffer, those sockets that still live.
    pub udp_drops: u64,
}

/// The process that owns a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// Number of the process.
    pub pid: u32,
    /// Name of the program that it runs.
    pub program: String,
}

/// A TCP connection and its state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// Address and port of this end.
    pub local: String,
    /// Address and port of the other end.
    pub remote: String,
    /// Process that owns it. Null where this user may not see it.
    pub owner: Option<Owner>,
    /// Congestion control of this end. Null where the kernel does not report it.
    pub congestion_control: Option<String>,
    /// Smoothed round-trip time in seconds.
    pub rtt_s: f64,
    /// Smallest round-trip time in seconds. Null where the kernel has none.
    pub min_rtt_s: Option<f64>,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Largest payload of a segment in bytes.
    pub mss_bytes: u32,
    /// Largest packet in bytes that the path takes, as far as the kernel knows.
    pub path_mtu_bytes: u32,
    /// Rate in bit/s at which the other end acknowledged lately.
    pub delivery_bps: f64,
    /// Rate in bit/s at which segments leave at most. Null without a limit.
    pub pacing_bps: Option<f64>,
    /// Bytes that the other end acknowledged.
    pub bytes_acked: u64,
    /// Bytes that were received.
    pub bytes_received: u64,
    /// Segments that were retransmitted.
    pub retransmits: u32,
    /// Bytes that wait to be sent or acknowledged.
    pub send_queue_bytes: u64,
    /// Bytes that the program has not read.
    pub receive_queue_bytes: u64,
    /// Limit of the send buffer, in bytes of kernel memory. Null where the kernel does not report it.
    pub send_buffer_bytes: Option<u64>,
    /// Limit of the receive buffer, in bytes of kernel memory. Null where the kernel does not report it.
    pub receive_buffer_bytes: Option<u64>,
    /// Packets dropped for want of receive buffer. Null where the kernel does not report it.
    pub drops: Option<u64>,
    /// Share of its busy time, 0 to 1, that it waited for the receiver's window. Null where it was never busy.
    pub rwnd_ratio: Option<f64>,
    /// Share of its busy time, 0 to 1, that it waited for its send buffer. Null where it was never busy.
    pub sndbuf_ratio: Option<f64>,
}

/// A socket that waits for connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// Address and port of the socket.
    pub local: String,
    /// Process that owns it. Null where this user may not see it.
    pub owner: Option<Owner>,
    /// Connections that wait to be accepted.
    pub waiting: u64,
    /// Connections that may wait at most.
    pub backlog: u64,
}

/// What TCP remembers of an address from connections that ended (`net/ipv4/tcp_metrics.c`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CachedMetrics {
    /// IP address of the other end.
    pub remote: String,
    /// IP address of this end. Null where the kernel does not report it.
    pub local: Option<String>,
    /// Time since it was last changed, in seconds. Null where the kernel does not report it.
    pub age_s: Option<f64>,
    /// Congestion window in segments at which slow start ends at first. Null where the kernel has none.
    pub ssthresh_segments: Option<u32>,
    /// Congestion window in segments that was reached. Null where the kernel has none.
    pub cwnd_segments: Option<u32>,
    /// Smoothed round-trip time in seconds. Null where the kernel has none.
    pub rtt_s: Option<f64>,
    /// Mean deviation of the round-trip time in seconds. Null where the kernel has none.
    pub rttvar_s: Option<f64>,
    /// By how many segments packets overtook each other. Null where the kernel has none.
    pub reordering_segments: Option<u32>,
}

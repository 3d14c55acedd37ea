//! What the results of every load say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shares of elapsed time in which a sender was held back by each of four things; all zero where the sending end reported
/// nothing.
///
/// From tcpi_busy_time, tcpi_rwnd_limited and tcpi_sndbuf_limited (Linux
/// `net/ipv4/tcp_output.c`, `tcp_chrono_*`): the network's share is what is left of busy time,
/// the application's is the time not busy. The send buffer's share takes the larger of the kernel's
/// count and the time that plumb's own sender waited for room in the buffer with everything
/// written sent: the kernel looks only when it sends, and misses much of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedTime {
    /// Share of the time, 0 to 1, in which the receiver's window was full.
    pub rwnd_ratio: f64,
    /// Share of the time, 0 to 1, in which the send buffer was full of unacknowledged data.
    pub sndbuf_ratio: f64,
    /// Share of the time, 0 to 1, in which there was nothing to send.
    pub app_ratio: f64,
    /// Share of the time, 0 to 1, in which the congestion window was full: the network's share.
    pub network_ratio: f64,
}

/// Share of one processor used by plumb's own process at each end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// Share of one processor core that this host's end used; 1 is one core. Null where it is unknown.
    pub local_ratio: Option<f64>,
    /// Share of one processor core that the far end used; 1 is one core. Null where it is unknown.
    pub remote_ratio: Option<f64>,
    /// Processor time of this end in seconds for 10⁹ bytes of payload of the phase, both directions together. Null
    /// where nothing was carried.
    pub local_s_per_gb: Option<f64>,
    /// Processor time of the far end in seconds for 10⁹ bytes of payload of the phase. Null where it is unknown.
    pub remote_s_per_gb: Option<f64>,
}

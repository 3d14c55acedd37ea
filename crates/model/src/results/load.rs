//! What the results of every load say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shares of elapsed time in which a sender was held back by each of four things.
///
/// From tcpi_busy_time, tcpi_rwnd_limited and tcpi_sndbuf_limited (Linux
/// `net/ipv4/tcp_output.c`, `tcp_chrono_*`): the network's share is what is left of busy time,
/// the application's is the time not busy. The send buffer's share takes the larger of the kernel's
/// count and the time that plumb's own sender waited for room in the buffer with everything
/// written sent: the kernel looks only when it sends, and misses much of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedTime {
    /// The receiver's window was full.
    pub rwnd_ratio: f64,
    /// The send buffer was full of unacknowledged data.
    pub sndbuf_ratio: f64,
    /// There was nothing to send.
    pub app_ratio: f64,
    /// The congestion window, that is the network.
    pub network_ratio: f64,
}

/// Share of one processor used by plumb's own process at each end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// This host; 1 is one core.
    pub local_ratio: f64,
    /// The far host; 1 is one core.
    pub remote_ratio: Option<f64>,
    /// Processor seconds for 10⁹ bytes of payload of the phase, both directions together, here.
    #[serde(default)]
    pub local_s_per_gb: Option<f64>,
    /// The same at the far host.
    #[serde(default)]
    pub remote_s_per_gb: Option<f64>,
}

//! What knobs are chosen for: a path, and what the host does on it.

use plumb_model::formula::bandwidth_delay_product;
use plumb_model::tune::Role;

/// A path, and a host at one end of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    /// Rate that one connection is to reach, in bit/s.
    pub rate_bps: f64,
    /// Round-trip time of the empty path, in seconds.
    pub rtt_s: f64,
    /// Share of packets that the path loses of itself, where it is known.
    pub loss_ratio: Option<f64>,
    /// What the host does.
    pub role: Role,
    /// Memory of the host, where it is known.
    pub memory_bytes: Option<u64>,
    /// Largest packet of the interface that leads to the path, where it is known.
    pub mtu_bytes: Option<u32>,
    /// Release of the system, where it is known: `6.18.44`.
    pub release: Option<String>,
}

/// Round trip below which a path counts as a LAN, in seconds: across a campus it is one.
const LAN_RTT_S: f64 = 0.002;

impl Situation {
    /// Bytes in flight that fill the path.
    pub fn bdp_bytes(&self) -> f64 {
        bandwidth_delay_product(self.rate_bps, self.rtt_s)
    }

    /// Whether the path is a local one.
    pub fn is_lan(&self) -> bool {
        self.rtt_s < LAN_RTT_S
    }
}

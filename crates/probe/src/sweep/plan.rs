//! Which targets to probe, and how.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_net::datagram::PathMtuDiscovery;
use plumb_net::egress::Outlet;

use crate::ping::pattern::Pattern;
use crate::ping::plan::{Plan, ProbeError, Sizes};
use crate::root_store::Trust;

/// Packets a second above which departures are not stamped by the kernel any more: at 100,000 a second stamps take as
/// long as the packets themselves, and the time to send a batch is then shorter than the error that stamps would
/// remove.
pub const STAMPED_PPS: f64 = 20_000.0;

/// Packets a second that may be asked for: more is load, and more than one core sends.
const MAX_PPS: f64 = 1_000_000.0;

/// Connections a second that may be asked for: each costs both ends some hundred microseconds.
const MAX_CONNECTIONS_PPS: f64 = 1000.0;

/// Whom to probe, and how. Each round has one probe for each target, in their order; the rounds begin
/// `period` apart, or later where the rate does not allow it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManyPlan {
    /// What probes are made of.
    pub protocol: Protocol,
    /// The targets; ICMP does not look at their ports.
    pub targets: Vec<SocketAddr>,
    /// What each is called where a name is asked for (HTTP, TLS), in the same order; may be empty otherwise.
    pub hosts: Vec<String>,
    /// What is asked for: a name for DNS, a page for HTTP and HTTPS.
    pub ask: Option<String>,
    /// Whose certificates are believed; `Some` for HTTPS alone.
    pub trust: Option<Trust>,
    /// Rounds; `None` until stopped.
    pub rounds: Option<u64>,
    /// No more rounds begin after this time.
    pub duration: Option<Duration>,
    /// From the beginning of a round to the next.
    pub period: Duration,
    /// Packets, or connections, a second at most.
    pub pps: f64,
    /// Size of the payload in bytes, where the protocol has one.
    pub size_bytes: usize,
    /// What fills ICMP echoes and plain datagrams.
    pub pattern: Pattern,
    /// A probe whose answer takes longer counts as lost.
    pub timeout: Duration,
    /// DSCP of the probes.
    pub dscp: Option<u8>,
    /// How many hops probes live.
    pub hop_limit: Option<u8>,
    /// By which way probes leave this host.
    pub outlet: Outlet,
    /// What becomes of packets larger than the path carries whole; `None` for the kernel's default.
    pub path_mtu: Option<PathMtuDiscovery>,
}

impl ManyPlan {
    /// Three rounds a second apart, of at most a thousand packets or a hundred connections a second.
    pub fn new(protocol: Protocol, targets: Vec<SocketAddr>) -> Self {
        let common = Plan::new(protocol, "", (Ipv4Addr::LOCALHOST, 0).into());
        let pps = match common.connects() {
            true => 100.0,
            false => 1000.0,
        };
        Self {
            protocol,
            targets,
            hosts: Vec::new(),
            ask: None,
            trust: None,
            rounds: Some(3),
            duration: None,
            period: Duration::from_secs(1),
            pps,
            size_bytes: common.sizes.of(0),
            pattern: Pattern::default(),
            timeout: Duration::from_secs(3),
            dscp: None,
            hop_limit: None,
            outlet: Outlet::default(),
            path_mtu: None,
        }
    }

    /// Whether what targets are called is said to them.
    pub fn asks_by_name(&self) -> bool {
        matches!(self.protocol, Protocol::Http | Protocol::Https)
    }

    /// Whether its packets have a size to choose.
    pub fn has_sizes(&self) -> bool {
        self.as_plan().has_sizes()
    }

    pub(super) fn check(&self) -> Result<(), ProbeError> {
        if !(self.pps > 0.0 && self.pps <= MAX_PPS) {
            return Err(ProbeError::Rate);
        }
        if matches!(self.protocol, Protocol::Udp | Protocol::Irtt) {
            return Err(ProbeError::NotMany);
        }
        let common = self.as_plan();
        if common.connects() && self.pps > MAX_CONNECTIONS_PPS {
            return Err(ProbeError::ConnectionRate {
                most: MAX_CONNECTIONS_PPS,
            });
        }
        let many =
            |to: &&SocketAddr| to.ip().is_multicast() || to.ip() == IpAddr::V4(Ipv4Addr::BROADCAST);
        if let Some(to) = self.targets.iter().find(many) {
            return Err(ProbeError::Many {
                name: to.ip().to_string(),
            });
        }
        common.check()
    }

    /// The same plan for one target, for what they have in common.
    pub(super) fn as_plan(&self) -> Plan {
        let first = self.targets.first().copied();
        let target = first.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        let name = match self.targets.len() {
            1 => target.ip().to_string(),
            many => format!("{many} targets"),
        };
        Plan {
            sizes: Sizes::One(self.size_bytes),
            dscp: self.dscp,
            ask: self.ask.clone(),
            trust: self.trust.clone(),
            outlet: self.outlet.clone(),
            ..Plan::new(self.protocol, name, target)
        }
    }
}

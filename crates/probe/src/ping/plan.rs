//! What to probe and how, and why that may not work.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_net::datagram::{IcmpError, PathMtuDiscovery};
use plumb_net::egress::Outlet;
use plumb_wire::{icmp, irtt, native::echo, stamp};

use crate::ping::pattern::Pattern;
use crate::root_store::Trust;

/// The fastest schedule: faster is load, not probing, and a waste of both ends.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// The fastest schedule of connections, of which each costs both ends more than a packet.
const MIN_CONNECTION_INTERVAL: Duration = Duration::from_millis(10);

/// Flooding sends the next probe when this has passed without an answer: 100 a second, as ping -f.
pub const FLOOD_INTERVAL: Duration = Duration::from_millis(10);

/// The largest DSCP: six bits (RFC 2474, section 3).
const MAX_DSCP: u8 = 63;

/// The largest payload of an ICMP or UDP packet over IPv4: 65,535 less 20 and 8 of headers.
const MAX_SIZE_BYTES: usize = 65_507;

/// What to probe, and how. Probe `i` is due at the start plus `i` intervals, whatever came of
/// those before it; probing ends with `count`, `duration` or a request to stop, whichever
/// comes first.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The far end as the user typed it, for messages.
    pub name: String,
    /// What probes are made of.
    pub protocol: Protocol,
    /// The far end. The port is for UDP only.
    pub target: SocketAddr,
    /// Time from one probe to the next.
    pub interval: Duration,
    /// How many probes to send at most.
    pub count: Option<u64>,
    /// How long to send probes at most.
    pub duration: Option<Duration>,
    /// What the next probe waits for.
    pub pace: Pace,
    /// How many probes leave at once to begin with, at least one.
    pub preload: u32,
    /// What fills ICMP echoes and plain datagrams.
    pub pattern: Pattern,
    /// What is asked for: a name for DNS, a page for HTTP and HTTPS; `None` for the servers of the root,
    /// and the page `/`.
    pub ask: Option<String>,
    /// Sizes of the payload of the ICMP or UDP packets.
    pub sizes: Sizes,
    /// A probe whose answer takes longer than this counts as lost.
    pub timeout: Duration,
    /// DSCP of the probes (RFC 2474); a responder's answers bear the same.
    pub dscp: Option<u8>,
    /// How many hops ICMP probes live.
    pub hop_limit: Option<u8>,
    /// Whether the router at which the hop limit ends answers in the far end's place.
    pub routers_answer: bool,
    /// Whose certificates are believed; `Some` for HTTPS alone.
    pub trust: Option<Trust>,
    /// Key by which packets are authenticated, of the same protocol; they are not when absent.
    pub key: Option<Key>,
    /// By which way probes leave this host.
    pub outlet: Outlet,
    /// What becomes of probes larger than the path carries whole; `None` for the kernel's default.
    pub path_mtu: Option<PathMtuDiscovery>,
}

/// A secret that both ends know, and no host on the path.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    Stamp(stamp::Key),
    Irtt(irtt::Key),
}

/// What the next probe waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Schedule,
    /// The answer to the one before, for an interval at most; they come no faster than a schedule may.
    Answers,
    /// The same, for [`FLOOD_INTERVAL`] at most, and however fast answers come.
    Flood,
}

/// Sizes of the payload of probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All alike, in bytes.
    One(usize),
    /// From the smallest to the largest in steps, and again from the smallest.
    Sweep {
        /// The smallest, in bytes.
        from: usize,
        /// No size is larger, in bytes.
        to: usize,
        /// From one to the next, in bytes; not zero.
        step: usize,
    },
}

impl Sizes {
    /// Payload of the probe of that number.
    pub fn of(self, sequence: u32) -> usize {
        match self {
            Self::One(size) => size,
            Self::Sweep { from, step, .. } => from + sequence as usize % self.count() * step,
        }
    }

    /// The largest of them.
    pub(crate) fn largest(self) -> usize {
        match self {
            Self::One(size) => size,
            Self::Sweep { to, .. } => to,
        }
    }

    /// How many different ones there are.
    pub fn count(self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Sweep { from, to, step } => to.saturating_sub(from) / step.max(1) + 1,
        }
    }
}

impl std::str::FromStr for Sizes {
    type Err = SweepError;

    /// `FROM..TO:STEP`, or `FROM..TO` for 16 sizes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (from, rest) = text.split_once("..").ok_or(SweepError)?;
        let (to, step) = match rest.split_once(':') {
            Some((to, step)) => (to, Some(step)),
            None => (rest, None),
        };
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| SweepError);
        let (from, to) = (number(from)?, number(to)?);
        let step = match step {
            Some(step) => number(step)?,
            None => (to.saturating_sub(from) / 15).max(1),
        };
        if from > to || step == 0 || to > MAX_SIZE_BYTES {
            return Err(SweepError);
        }
        Ok(Self::Sweep { from, to, step })
    }
}

/// No sweep of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sizes are written FROM..TO:STEP in bytes up to {MAX_SIZE_BYTES}, such as 56..1472:118")]
pub struct SweepError;

impl Plan {
    /// Probes of the usual size, ten a second, until stopped.
    ///
    /// 64 bytes is what ping sends over ICMP, header included, and the smallest UDP echo. Three
    /// seconds of timeout are above the fullest queue that is met in homes.
    pub fn new(protocol: Protocol, name: impl Into<String>, target: SocketAddr) -> Self {
        Self {
            name: name.into(),
            protocol,
            target,
            interval: Duration::from_millis(100),
            count: None,
            duration: None,
            pace: Pace::Schedule,
            preload: 1,
            pattern: Pattern::default(),
            ask: None,
            sizes: Sizes::One(match protocol {
                Protocol::Icmp => 64 - icmp::HEADER_BYTES,
                Protocol::Udp => echo::MIN_BYTES,
                Protocol::Stamp => stamp::OPEN_BYTES,
                Protocol::Irtt => irtt::Client::least_bytes(false),
                Protocol::UdpPort => 56,
                // What is asked decides.
                _ => 0,
            }),
            trust: None,
            key: None,
            timeout: Duration::from_secs(3),
            dscp: None,
            hop_limit: None,
            routers_answer: false,
            outlet: Outlet::default(),
            path_mtu: None,
        }
    }

    /// The smallest payload that holds what a probe carries.
    pub fn least_size_bytes(&self) -> usize {
        match self.protocol {
            Protocol::Icmp | Protocol::UdpPort => icmp::MARK_BYTES,
            Protocol::Udp => echo::MIN_BYTES,
            Protocol::Stamp if self.key.is_some() => stamp::AUTHENTICATED_BYTES,
            Protocol::Irtt => irtt::Client::least_bytes(self.key.is_some()),
            Protocol::Stamp => stamp::OPEN_BYTES,
            _ => 0,
        }
    }

    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// When it cannot, with what to change.
    pub fn check(&self) -> Result<(), ProbeError> {
        let min_size = self.least_size_bytes();
        let to = self.target.ip();
        if to.is_multicast() || to == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return Err(ProbeError::Many {
                name: self.name.clone(),
            });
        }
        if self.interval < MIN_INTERVAL && self.pace != Pace::Flood {
            return Err(ProbeError::Interval);
        }
        let too_fast = self.pace == Pace::Flood || self.preload > 1;
        if self.connects() && (too_fast || self.interval < MIN_CONNECTION_INTERVAL) {
            return Err(ProbeError::Connections);
        }
        if self.protocol == Protocol::Https && self.trust.is_none() {
            return Err(ProbeError::NoTrust);
        }
        if self.dscp.is_some_and(|dscp| dscp > MAX_DSCP) {
            return Err(ProbeError::Dscp);
        }
        let (smallest, largest) = match self.sizes {
            Sizes::One(size) => (size, size),
            Sizes::Sweep { from, to, .. } => (from, to),
        };
        let wrong = [smallest, largest]
            .into_iter()
            .find(|size| !(min_size..=MAX_SIZE_BYTES).contains(size));
        match wrong {
            Some(asked) => Err(ProbeError::Size {
                asked,
                min: min_size,
            }),
            None => Ok(()),
        }
    }

    /// Whether its packets have a size to choose.
    pub fn has_sizes(&self) -> bool {
        use Protocol::{Icmp, Irtt, Stamp, Udp, UdpPort};
        matches!(self.protocol, Icmp | Udp | Stamp | Irtt | UdpPort)
    }

    /// Whether each probe is a connection.
    pub(crate) fn connects(&self) -> bool {
        use Protocol::{Http, Https, Tcp};
        matches!(self.protocol, Tcp | Http | Https)
    }

    /// The name alone, of what the user typed.
    pub(crate) fn host(&self) -> &str {
        bare_host(&self.name)
    }

    /// Where the next probe follows the answer to the one before: how long after that one at most and at
    /// least.
    pub(crate) fn follows(&self) -> Option<(Duration, Duration)> {
        match self.pace {
            Pace::Schedule => None,
            Pace::Answers if self.connects() => Some((self.interval, MIN_CONNECTION_INTERVAL)),
            Pace::Answers => Some((self.interval, MIN_INTERVAL)),
            Pace::Flood => Some((FLOOD_INTERVAL, Duration::ZERO)),
        }
    }

    /// How many probes will be sent unless they are stopped.
    pub(crate) fn probes(&self) -> u32 {
        let by_count = self.count.unwrap_or(u64::MAX);
        if self.pace != Pace::Schedule {
            return u32::try_from(by_count).unwrap_or(u32::MAX);
        }
        let by_duration = self.duration.map_or(u128::MAX, |d| {
            let by_interval = d.as_nanos().div_ceil(self.interval.as_nanos().max(1));
            by_interval.saturating_add(self.preload.saturating_sub(1).into())
        });
        u32::try_from(u128::from(by_count).min(by_duration)).unwrap_or(u32::MAX)
    }

    /// How long it takes to send all probes; `None` where it is unknown.
    pub(crate) fn takes(&self) -> Option<Duration> {
        let probes = self.probes();
        (probes < u32::MAX).then(|| self.interval.saturating_mul(probes))
    }

    /// The far end as people write it, with the port where there is one.
    pub(crate) fn far_end(&self) -> String {
        match self.protocol {
            Protocol::Icmp => self.name.clone(),
            _ if self.host().contains(':') => {
                format!("[{}]:{}", self.host(), self.target.port())
            }
            _ => format!("{}:{}", self.host(), self.target.port()),
        }
    }
}

/// The name alone, without the brackets of an address and without the port behind it.
pub(crate) fn bare_host(name: &str) -> &str {
    let bare = name.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match (bare, name.split_once(':')) {
        (Some((address, _)), _) => address,
        (None, Some((host, port))) if !port.contains(':') => host,
        _ => name,
    }
}

/// Why probing could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The interval is too short.
    #[error(
        "cannot probe more often than every {MIN_INTERVAL:?}: choose a longer interval, or measure with load"
    )]
    Interval,
    /// Connections would come too fast.
    #[error(
        "connections are not made faster than one every {MIN_CONNECTION_INTERVAL:?}, nor in a flood or several at once: choose a longer interval"
    )]
    Connections,
    /// The name cannot be asked for.
    #[error(transparent)]
    Name(plumb_wire::dns::NameError),
    /// The packet rate is none.
    #[error("a packet rate is above 0 and at most 1000000 a second; more is load")]
    Rate,
    /// Connections would come too fast, all targets together.
    #[error(
        "connections are made at most {most} times a second, all targets together: choose a lower rate (--pps)"
    )]
    ConnectionRate { most: f64 },
    /// HTTPS without saying whom to believe.
    #[error("cannot probe by HTTPS without knowing whose certificates to believe")]
    NoTrust,
    /// Each target would have to hand out a cookie first.
    #[error(
        "the UDP echo of `plumb serve` and an irtt server answer no client before a greeting, so many far ends are not probed by them: \
         choose --protocol stamp, which they answer too"
    )]
    NotMany,
    /// There is no such DSCP.
    #[error("no probes are made of {0}")]
    Protocol(Protocol),
    #[error("a DSCP is 0 to {MAX_DSCP}")]
    Dscp,
    /// The size does not fit.
    #[error("cannot probe with {asked} bytes: choose a size from {min} to {MAX_SIZE_BYTES}")]
    Size {
        /// What was asked for.
        asked: usize,
        /// The least that holds the probe's own data.
        min: usize,
    },
    /// A target at which many hosts may answer.
    #[error(
        "will not probe {name}: packets to a broadcast or multicast address are answered by many hosts, \
         whose answers could not be distinguished; give the address of one host, or a range such as 192.0.2.0/24"
    )]
    Many {
        /// As the user typed it.
        name: String,
    },
    /// The kernel knows the forward path, and refuses it.
    #[error(
        "this host refuses to send to {name}: it is a broadcast address, or a route forbids it \
         (`ip route get {address}`)"
    )]
    Forbidden {
        /// As the user typed it.
        name: String,
        address: IpAddr,
    },
    /// This host knows no way there.
    #[error(
        "cannot probe {name}: this host has no route to {address}{by}; `ip route` lists those it has, and `ip route add` \
         makes one"
    )]
    NoRoute {
        /// As the user typed it.
        name: String,
        address: IpAddr,
        /// By which interface, where that was asked for; in words.
        by: String,
    },
    /// No socket for ICMP.
    #[error("cannot probe {name} with ICMP: {source}")]
    Icmp {
        /// As the user typed it.
        name: String,
        source: IcmpError,
    },
    /// Something that should always work did not.
    #[error("cannot probe {far_end}: {what}: {source}")]
    Local {
        /// As the user typed it.
        far_end: String,
        what: &'static str,
        source: io::Error,
    },
    #[error(
        "no STAMP reflector at {far_end}: {why}. Start `plumb serve` there or another reflector of STAMP or TWAMP \
         Light, give both ends the same key or none, and let its UDP port through the firewalls on the way"
    )]
    NoReflector {
        /// As the user typed it, with the port.
        far_end: String,
        why: String,
    },
    #[error(
        "no irtt session with {far_end}: {why}. Start `irtt server` or `plumb serve` there, give both ends the same key or \
         none, and let its UDP port through the firewalls on the path"
    )]
    NoIrtt {
        /// As the user typed it, with the port.
        far_end: String,
        why: String,
    },
    #[error("the irtt server at {far_end} cannot be used so: {why}")]
    IrttRefuses {
        /// As the user typed it, with the port.
        far_end: String,
        why: String,
    },
    /// No responder sent a cookie.
    #[error(
        "no UDP echo at {far_end}: {why}. Start `plumb serve` there, and let its UDP port through the \
         firewalls on the way"
    )]
    NoEcho {
        /// As the user typed it, with the port.
        far_end: String,
        why: String,
        /// Requests to which nothing at all came back.
        unanswered: u64,
    },
}

impl ProbeError {
    /// Whether what was asked for cannot be, wherever it is asked.
    pub fn is_of_what_was_asked(&self) -> bool {
        use ProbeError::{
            ConnectionRate, Connections, Dscp, Interval, Name, NoTrust, NotMany, Protocol, Rate,
            Size,
        };
        matches!(
            self,
            Interval
                | Connections
                | Rate
                | NoTrust
                | NotMany
                | Dscp
                | Name(_)
                | Protocol(_)
                | ConnectionRate { .. }
                | Size { .. }
        )
    }

    /// Why there is no socket for ICMP. EPERM means that this user may not open one (raw(7)); EACCES comes from
    /// connecting it (connect(2)).
    pub(crate) fn icmp(plan: &Plan, source: IcmpError) -> Self {
        const EACCES: i32 = 13;
        if source.raw.raw_os_error() == Some(EACCES) {
            return Self::Forbidden {
                name: plan.name.clone(),
                address: plan.target.ip(),
            };
        }
        let other = source.beyond_privileges().and_then(io::Error::raw_os_error);
        match other.map(io::Error::from_raw_os_error) {
            Some(error) => Self::local(plan, "opening a socket for ICMP echo", error),
            None => Self::Icmp {
                name: plan.name.clone(),
                source,
            },
        }
    }

    /// Why our own machine could not do something that the plan asks for.
    pub(crate) fn local(plan: &Plan, what: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                let by = plan.outlet.interface.as_ref();
                Self::NoRoute {
                    name: plan.name.clone(),
                    address: plan.target.ip(),
                    by: by.map_or_else(String::new, |by| format!(" by the interface {by}")),
                }
            }
            _ => Self::Local {
                far_end: plan.far_end(),
                what,
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests;

//! What to probe and how, and why that may not work.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use plumb_model::results::ProbeProtocol;
use plumb_net::datagram::IcmpError;
use plumb_wire::{icmp, native::echo};

/// The fastest schedule: faster is load, not probing, and a waste of both ends.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

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
    pub protocol: ProbeProtocol,
    /// The far end. The port is for UDP only.
    pub target: SocketAddr,
    /// Time from one probe to the next.
    pub interval: Duration,
    /// How many probes to send at most.
    pub count: Option<u64>,
    /// How long to send probes at most.
    pub duration: Option<Duration>,
    /// Size of the payload of the ICMP or UDP packet.
    pub size_bytes: usize,
    /// A probe whose answer takes longer than this counts as lost.
    pub timeout: Duration,
    /// DSCP of the probes (RFC 2474); a responder's answers bear the same.
    pub dscp: Option<u8>,
    /// How many hops ICMP probes live: the router at which they end answers in the far end's place.
    pub hop_limit: Option<u8>,
}

impl Plan {
    /// Probes of the usual size, ten a second, until stopped.
    ///
    /// 64 bytes is what ping sends over ICMP, header included, and the smallest UDP echo. Three
    /// seconds of timeout are above the fullest queue that is met in homes.
    pub fn new(protocol: ProbeProtocol, name: impl Into<String>, target: SocketAddr) -> Self {
        Self {
            name: name.into(),
            protocol,
            target,
            interval: Duration::from_millis(100),
            count: None,
            duration: None,
            size_bytes: match protocol {
                ProbeProtocol::Icmp => 64 - icmp::HEADER_BYTES,
                ProbeProtocol::Udp => echo::MIN_BYTES,
            },
            timeout: Duration::from_secs(3),
            dscp: None,
            hop_limit: None,
        }
    }

    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// When it cannot, with what to change.
    pub fn check(&self) -> Result<(), ProbeError> {
        let min_size = match self.protocol {
            ProbeProtocol::Icmp => icmp::MARK_BYTES,
            ProbeProtocol::Udp => echo::MIN_BYTES,
        };
        if self.interval < MIN_INTERVAL {
            return Err(ProbeError::Interval);
        }
        if self.dscp.is_some_and(|dscp| dscp > MAX_DSCP) {
            return Err(ProbeError::Dscp);
        }
        if !(min_size..=MAX_SIZE_BYTES).contains(&self.size_bytes) {
            return Err(ProbeError::Size {
                asked: self.size_bytes,
                min: min_size,
            });
        }
        Ok(())
    }

    /// How many probes will be sent if nobody stops them.
    pub(crate) fn probes(&self) -> u32 {
        let by_count = self.count.unwrap_or(u64::MAX);
        let by_duration = self.duration.map_or(u128::MAX, |d| {
            d.as_nanos().div_ceil(self.interval.as_nanos().max(1))
        });
        u32::try_from(u128::from(by_count).min(by_duration)).unwrap_or(u32::MAX)
    }

    /// The far end as people write it, with the port where there is one.
    pub(crate) fn far_end(&self) -> String {
        match self.protocol {
            ProbeProtocol::Icmp => self.name.clone(),
            ProbeProtocol::Udp if self.name.contains(':') => {
                format!("[{}]:{}", self.name, self.target.port())
            }
            ProbeProtocol::Udp => format!("{}:{}", self.name, self.target.port()),
        }
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
    /// There is no such DSCP.
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
    /// No socket for ICMP.
    #[error("cannot probe {name} with ICMP: {source}")]
    Icmp {
        /// As the user typed it.
        name: String,
        /// Why.
        source: IcmpError,
    },
    /// Something that should always work did not.
    #[error("cannot probe {far_end}: {what}: {source}")]
    Local {
        /// As the user typed it.
        far_end: String,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Nobody handed out a cookie.
    #[error(
        "no UDP echo at {far_end}: {why}. Start `plumb serve` there, and let its UDP port through the \
         firewalls on the way"
    )]
    NoEcho {
        /// As the user typed it, with the port.
        far_end: String,
        /// What happened instead.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::new(
            ProbeProtocol::Udp,
            "example.net",
            SocketAddr::from(([192, 0, 2, 1], 7586)),
        )
    }

    #[test]
    fn the_first_limit_ends_it() {
        let limited = |count, ms: Option<u64>| {
            Plan {
                count,
                duration: ms.map(Duration::from_millis),
                ..plan()
            }
            .probes()
        };
        assert_eq!(limited(Some(5), None), 5);
        assert_eq!(limited(Some(5), Some(300)), 3);
        assert_eq!(limited(None, Some(301)), 4, "one is due at 300 ms");
        assert_eq!(limited(None, None), u32::MAX);
        assert_eq!(limited(Some(0), None), 0);
    }

    #[test]
    fn impossible_plans_are_refused() {
        assert!(plan().check().is_ok());
        let error = |plan: Plan| plan.check().map_err(|e| e.to_string());
        assert!(
            error(Plan {
                interval: Duration::ZERO,
                ..plan()
            })
            .is_err_and(|e| e.contains("1ms"))
        );
        assert!(
            error(Plan {
                size_bytes: 63,
                ..plan()
            })
            .is_err_and(|e| e.contains("64 to 65507"))
        );
        let dscp = Some(64);
        assert!(error(Plan { dscp, ..plan() }).is_err_and(|e| e.contains("0 to 63")));
        let icmp = Plan {
            protocol: ProbeProtocol::Icmp,
            size_bytes: 12,
            ..plan()
        };
        assert!(icmp.check().is_ok());
    }

    #[test]
    fn far_ends_are_named_as_typed() {
        assert_eq!(plan().far_end(), "example.net:7586");
        assert_eq!(
            Plan {
                name: "2001:db8::1".into(),
                ..plan()
            }
            .far_end(),
            "[2001:db8::1]:7586"
        );
    }
}

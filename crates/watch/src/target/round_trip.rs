//! Round trips by what `plumb ping` has: one probe at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_model::protocol::Protocol;
use plumb_probe::{Plan, ProbeError, ProbeLog, Probing, Said, Seen, Trust};
use plumb_wire::native::spec::PORT;
use plumb_wire::{irtt, stamp};

use super::kind::{FarEnd, Kind, Probed, TIMEOUT, us_at};
use super::settings::{Settings, Wrong};

/// One probe of a protocol.
#[derive(Debug)]
struct RoundTrip {
    protocol: Protocol,
    /// Zero where the protocol has none.
    port: u16,
    /// What is asked for: a name for DNS, a page for HTTP.
    ask: Option<String>,
    /// Whether HTTPS takes any certificate.
    insecure: bool,
}

/// Reads what these kinds share.
fn read(
    settings: &mut Settings,
    protocol: Protocol,
    usual: Option<u16>,
) -> Result<Box<dyn Kind>, Wrong> {
    let ask: Option<String> = settings.take("ask")?;
    if let Some(ask) = &ask {
        let fits = match protocol {
            Protocol::Dns => !ask.is_empty(),
            Protocol::Http | Protocol::Https => ask.starts_with('/'),
            _ => false,
        };
        if !fits || ask.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let why = "ask is the name that dns looks up, or the page of http and https, such as /";
            return Err(settings.wrong("ask", why));
        }
    }
    if protocol != Protocol::Https {
        settings.refuse("insecure", "it is for https alone: leave it out")?;
    }
    let insecure: Option<bool> = settings.take("insecure")?;
    let port = match usual {
        Some(0) => {
            settings.refuse("port", "icmp has no ports: leave it out")?;
            0
        }
        Some(usual) => settings.port(usual)?,
        None if settings.has("port") => settings.port(0)?,
        None => {
            let why = format!("{protocol} needs a port, as in port = 443");
            return Err(settings.missing(why.replace('_', "-")));
        }
    };
    Ok(Box::new(RoundTrip {
        protocol,
        port,
        ask,
        insecure: insecure.unwrap_or_default(),
    }))
}

pub(super) fn icmp(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Icmp, Some(0))
}

pub(super) fn tcp(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Tcp, None)
}

pub(super) fn dns(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Dns, Some(53))
}

pub(super) fn http(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Http, Some(80))
}

pub(super) fn https(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Https, Some(443))
}

/// The echoes of `plumb serve`.
pub(super) fn udp(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Udp, Some(PORT))
}

pub(super) fn udp_port(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::UdpPort, None)
}

pub(super) fn stamp(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Stamp, Some(stamp::PORT))
}

pub(super) fn irtt(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    read(settings, Protocol::Irtt, Some(irtt::PORT))
}

impl Kind for RoundTrip {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let to: SocketAddr = far.at(self.port);
        let mut plan = Plan::new(self.protocol, far.host, to);
        plan.count = Some(1);
        plan.timeout = TIMEOUT;
        plan.ask = self.ask.clone();
        plan.trust = match (self.protocol, self.insecure) {
            (Protocol::Https, true) => Some(Trust::anyone().map_err(|error| error.to_string())?),
            (Protocol::Https, false) => far.trust.cloned(),
            _ => None,
        };
        let mut probed = Probed::now();
        let (log, seen) = match Probing::watched(plan, Arc::new(AtomicBool::new(false))) {
            Ok((probing, seen)) => (probing.join(), seen),
            // A line that is down takes its route along.
            Err(error @ ProbeError::NoRoute { .. }) => return Ok(probed.lost(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        // Without a sample this machine refused to send it: no path leads there.
        if let Some(sample) = log.samples.first() {
            probed.sent_us = us_at(sample.sent_monotonic_ns);
            let rtt = sample.rtt.filter(|_| !is_refused(&log));
            probed.value = rtt.map(|rtt| rtt.as_secs_f64());
        }
        probed.why = match probed.value {
            Some(_) => None,
            None if is_refused(&log) => Some("the connection is refused".to_owned()),
            None => seen
                .try_iter()
                .filter_map(|seen| match seen {
                    Seen::Told(words) => Some(words),
                    _ => None,
                })
                .last(),
        };
        Ok(probed)
    }

    fn sweeps(&self) -> Option<Protocol> {
        (self.protocol == Protocol::Icmp).then_some(self.protocol)
    }

    fn overlaps(&self) -> bool {
        true
    }

    fn needs_trust(&self) -> bool {
        self.protocol == Protocol::Https && !self.insecure
    }
}

/// Whether a connection was refused: the host is there, and what is watched is not.
fn is_refused(log: &ProbeLog) -> bool {
    log.protocol == Protocol::Tcp && log.answers.contains_key(&Said::Reset.to_string())
}

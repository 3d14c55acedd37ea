//! The route to a host: one probe to each hop. Its value is the round trip of the target; the route is kept when it changes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_net::egress::Outlet;
use plumb_probe::path::trace::{self, TracePlan};
use plumb_probe::path::{OpenError, ProtocolAndPort, Target, UDP_PORT, open_as};

use super::kind::{FarEnd, Kind, Probed, TIMEOUT};
use super::settings::{Settings, Wrong};

/// Routers limit how many answers they give; routes change seldom.
const EVERY: Duration = Duration::from_secs(60);

/// Hops in a row that do not answer, after which none further on is probed.
const MOST_SILENT: u8 = 5;

/// Probes that the target gets: those to hops beyond it are sent before it has answered.
const TO_TARGET: u32 = 4;

/// Means a hop that did not answer.
const SILENT: &str = "*";

#[derive(Debug)]
struct Path {
    protocol: ProtocolAndPort,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let word: Option<String> = settings.take("protocol")?;
    let protocol = match word.as_deref() {
        None | Some("icmp") => {
            settings.refuse("port", "icmp has no ports: leave it out")?;
            ProtocolAndPort::Icmp
        }
        Some("udp") => ProtocolAndPort::Udp {
            port: settings.port(UDP_PORT)?,
        },
        Some("tcp") => ProtocolAndPort::Tcp {
            port: settings.port(443)?,
        },
        Some(other) => {
            let why = format!("no path is probed by '{other}'; there are icmp, udp and tcp");
            return Err(settings.wrong("protocol", why));
        }
    };
    Ok(Box::new(Path { protocol }))
}

impl Kind for Path {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let target = Target {
            name: far.host.to_owned(),
            address: far.at(0),
            outlet: Outlet::default(),
        };
        let mut probed = Probed::now();
        let mut network = match open_as(&target, self.protocol, session(far.address)) {
            Ok(network) => network,
            // A line that is down takes its route along.
            Err(error @ OpenError::NoRoute { .. }) => return Ok(probed.lost(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        let plan = TracePlan {
            cycles: Some(1),
            timeout: TIMEOUT,
            max_unknown: Some(MOST_SILENT),
            inspect: false,
            ..TracePlan::new(far.address)
        };
        let log = trace::run(&mut network, plan, &AtomicBool::new(false), &mut |_| ());
        let seen: Vec<_> = log
            .shots
            .iter()
            .filter_map(|shot| Some((shot.hops, shot.seen.as_ref()?)))
            .collect();
        let arrived = seen.iter().filter(|(_, seen)| seen.arrival);
        let Some((last, arrival)) = arrived.min_by_key(|(hops, _)| *hops) else {
            return Ok(probed.lost("the target does not answer"));
        };
        probed.value = Some(arrival.rtt.as_secs_f64());
        let hop = |hops: u8| seen.iter().find(|(own, _)| *own == hops);
        let addresses = (1..=*last).map(|hops| hop(hops).map(|(_, seen)| seen.from));
        probed.state = Some(route(addresses));
        Ok(probed)
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn probes(&self) -> u32 {
        TO_TARGET
    }

    fn state(&self) -> &'static str {
        "route"
    }

    fn is_change(&self, before: &str, now: &str) -> bool {
        let (before, now): (Vec<_>, Vec<_>) =
            (before.split(' ').collect(), now.split(' ').collect());
        let differs =
            |(before, now): (&str, &str)| before != now && before != SILENT && now != SILENT;
        before.len() != now.len() || before.into_iter().zip(now).any(differs)
    }
}

/// The same for all probes of one process to an address: one flow, so that routers that share by flows show one route.
fn session(address: IpAddr) -> u32 {
    let mut hasher = DefaultHasher::new();
    (std::process::id(), address).hash(&mut hasher);
    // Either half would do.
    hasher.finish() as u32
}

/// A route in words: its addresses in their order.
fn route(hops: impl Iterator<Item = Option<IpAddr>>) -> String {
    let words = hops.map(|hop| hop.map_or_else(|| SILENT.to_owned(), |at| at.to_string()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::settings::tests::settings;

    #[test]
    fn a_hop_that_is_silent_is_no_change() {
        let kind = read(&mut settings("")).unwrap();
        for (before, now, changed) in [
            ("10.0.0.1 10.0.1.1", "10.0.0.1 10.0.1.1", false),
            ("10.0.0.1 * 10.0.1.1", "10.0.0.1 10.0.2.1 10.0.1.1", false),
            ("10.0.0.1 10.0.2.1 10.0.1.1", "10.0.0.1 * 10.0.1.1", false),
            (
                "10.0.0.1 10.0.2.1 10.0.1.1",
                "10.0.0.1 10.0.3.1 10.0.1.1",
                true,
            ),
            ("10.0.0.1 10.0.1.1", "10.0.0.1 * 10.0.1.1", true),
        ] {
            assert_eq!(kind.is_change(before, now), changed, "{before} {now}");
        }
    }

    #[test]
    fn only_what_has_ports_takes_one() {
        for text in [
            "port = 5",
            "protocol = \"icmp\"\nport = 5",
            "protocol = \"carrier pigeon\"",
        ] {
            assert!(read(&mut settings(text)).is_err(), "{text}");
        }
        read(&mut settings("protocol = \"udp\"\nport = 5")).unwrap();
    }
}

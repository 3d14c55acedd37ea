//! A machine on the path answers TCP connections in the far end's place.
//!
//! Proxies, accelerators and firewalls that split connections: what TCP measures is then the path to that machine.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Port, fact};

/// A handshake is one round trip, so that the fastest of several is as long as the fastest probe: from this share of it
/// on a nearer machine has answered.
const NEARER_RATIO: f64 = 0.6;

/// And by so much, in seconds: what a program's clock and a kernel's time stamps differ by is less.
const NEARER_S: f64 = 0.003;

/// The fastest of so many.
const ENOUGH_ROUND_TRIPS: u64 = 3;

/// Routes may differ by protocol.
const BY_TIME_CONFIDENCE: f64 = 0.9;

/// No host has that address.
const BY_ADDRESS_CONFIDENCE: f64 = 0.97;

/// Answers of HTTP that send elsewhere are a portal's.
const REDIRECTS: std::ops::Range<u16> = 300..400;
const LOGIN_NEEDED: u16 = 511;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "on a port that it does not take, or through a tunnel, a handshake takes the round trip of the path",
    needs: &[Need::Connections],
    resembles: &[(
        Cause::CaptivePortal,
        "there the answer sends to a page to log in",
    )],
    yields_to: &[Cause::CaptivePortal],
    examine: |case| {
        let found = by_time(case)
            .into_iter()
            .chain(by_address(case))
            .take(1)
            .collect();
        let measured = ("connections to a TCP port", case.ports().next().is_some());
        let statement =
            "a connection is answered nearer than the far end, or at an address that no host has";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn by_time(case: &Case<'_>) -> Option<Finding> {
    let idle = case.idle()?;
    let path = idle
        .result
        .rtt_s
        .filter(|rtt| rtt.count >= ENOUGH_ROUND_TRIPS)?;
    let mut to_it = case
        .ports()
        .filter(|port| port.result.address == idle.result.address);
    let (port, nearest_s) = to_it.find_map(|port| {
        let connects = port.result.connect_s?;
        let nearer = connects.count >= ENOUGH_ROUND_TRIPS
            && connects.min <= NEARER_RATIO * path.min
            && path.min - connects.min >= NEARER_S;
        nearer.then_some((port, connects.min))
    })?;
    let summary = format!(
        "A machine on the path answers TCP port {} in the far end's place: a handshake takes {}, and a probe to the far end and back {} at least. What TCP reaches here is the path to that machine.",
        port.result.port,
        human_seconds(nearest_s),
        human_seconds(path.min)
    );
    let evidence = fact(
        port.measurement,
        "connect_s.min",
        nearest_s,
        "fastest TCP handshake, against 60 % of the fastest round trip by other protocols",
        NEARER_RATIO * path.min,
    );
    Some(finding(BY_TIME_CONFIDENCE, summary, evidence))
}

fn by_address(case: &Case<'_>) -> Option<Finding> {
    let port = answered_for_nobody(case)?;
    let summary = format!(
        "A machine on the path answers connections to TCP port {} whatever their address: one to {}, which no host has, came about. It may look into what passes, and change it.",
        port.result.port, port.result.address
    );
    let evidence = fact(
        port.measurement,
        "connected",
        port.result.connected as f64,
        "connections to an address that is for documents alone (RFC 5737)",
        0.0,
    );
    Some(finding(BY_ADDRESS_CONFIDENCE, summary, evidence))
}

/// A connection to the address that no host has.
pub(super) fn answered_for_nobody<'a>(case: &Case<'a>) -> Option<Port<'a>> {
    let mut ports = case.ports();
    ports.find(|port| port.is_nobodys() && port.result.connected > 0)
}

/// Whether its answer sends elsewhere.
pub(super) fn sends_elsewhere(port: Port<'_>) -> Option<u16> {
    let status = port.result.http_status?;
    (REDIRECTS.contains(&status) || status == LOGIN_NEEDED).then_some(status)
}

fn finding(confidence: f64, summary: String, evidence: Evidence) -> Finding {
    Finding {
        cause: Cause::TransparentProxy,
        place: Place::Path,
        severity: Severity::Info,
        confidence,
        matters_for: Vec::new(),
        summary,
        evidence: vec![evidence],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Judge rates of TCP here as those to that machine. Where it hinders, use a port that it leaves alone, TLS or a tunnel, or have this far end exempted.",
            "A handshake takes the round trip of the path.",
        )],
        kb: "port".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connects, found_in, idle};
    use plumb_model::protocol::Protocol;
    use plumb_model::results::port::PortState;

    #[test]
    fn a_handshake_shorter_than_the_path_ends_before_its_end() {
        let found = |handshake_s, path_s| {
            let measured = [
                idle(Protocol::Udp, 250, 250, path_s),
                connects("192.0.2.9", 5, handshake_s, PortState::Open),
            ];
            found_in(CAUSE.examine, &measured).len()
        };
        assert_eq!(found(0.001, 0.040), 1);
        assert_eq!(found(0.039, 0.040), 0);
        assert_eq!(found(0.030, 0.040), 0);
        assert_eq!(found(0.0005, 0.002), 0, "what clocks differ by");
    }

    #[test]
    fn whoever_answers_for_nobody_is_between() {
        let found = |address, connected| {
            let measured = [connects(address, connected, 0.01, PortState::Open)];
            found_in(CAUSE.examine, &measured).len()
        };
        assert_eq!(found("192.0.2.1", 1), 1);
        assert_eq!(found("192.0.2.1", 0), 0);
        assert_eq!(found("192.0.2.9", 5), 0);
    }
}

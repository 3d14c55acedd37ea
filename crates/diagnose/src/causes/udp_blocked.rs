//! UDP does not pass where TCP does.
//!
//! Calls, games and QUIC then fall back to TCP or fail.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;

/// Requests in as many times 0.6 s without any answer are no loss: of one in ten packets that pass, there and back, one
/// request in a hundred would be answered, and neither TCP nor pings would come about.
const ENOUGH_PROBES: u64 = 5;

/// Share of the pings that are answered where the path loses little, or of the segments that TCP did not send again.
const PASSES_RATIO: f64 = 0.8;

/// One port was tried, and a firewall of the far end may be meant to close it.
const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "from another network, or with the port opened, probes over UDP are answered",
    needs: &[Need::Idle],
    resembles: &[(
        Cause::PathLoss,
        "loss takes some packets of every protocol, and never all of one",
    )],
    yields_to: &[Cause::PathRefused],
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    // There are probes over UDP only where the responder said, over TCP, that it echoes them.
    let facts = case.facts(None);
    let udp = facts.known("probes over UDP", case.idle_by(Protocol::Udp))?;
    let unanswered = udp.result.received == 0 && udp.sent() >= ENOUGH_PROBES;
    // Once it passes it is not blocked.
    let answered_later = case
        .every_loaded()
        .any(|loaded| loaded.result.protocol == Protocol::Udp && loaded.result.rtt_s.count > 0);
    let pings = case.idle_by(Protocol::Icmp);
    let answered = pings.is_some_and(|pings| {
        pings.loss_at_least() < 1.0 - PASSES_RATIO && pings.result.received > 0
    });
    let carried = [Direction::Up, Direction::Down].into_iter();
    let mut carried = carried.filter_map(|direction| case.full_load(direction)?.segments());
    let others_pass = answered || carried.any(|segments| segments.ratio() < 1.0 - PASSES_RATIO);
    let blocked = facts.is("all of several probes over UDP go unanswered", unanswered)
        && facts.is("pings or TCP pass", others_pass)
        && facts.is("no probe over UDP is answered later", !answered_later);
    blocked.then(|| Finding {
        cause: Cause::UdpBlocked,
        place: Place::Path,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "UDP does not pass: none of {} requests to the responder's port was answered, while TCP to the same port works. A firewall on the path or at the far end drops them; calls, games and QUIC suffer where it drops all UDP.",
            udp.sent()
        ),
        evidence: vec![fact(
            udp.measurement,
            "received",
            0.0,
            "answers to UDP probes, against the requests; the responder reports over TCP that it echoes them",
            udp.sent() as f64,
        )],
        fixes: vec![Fix::advice(
            Actor::FarHost,
            "Open UDP port 7586 at the far end's firewall (and in its cloud's security group), next to TCP. Where it is open, look for the network that drops UDP: `plumb path HOST --udp` shows how far it gets.",
            "Probes over UDP are answered.",
        )],
        kb: "udp".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found_in, idle};

    #[test]
    fn silence_is_a_firewall_only_where_others_pass() {
        let found = |udp: (u64, u64), pings: u64| {
            let udp = idle(Protocol::Udp, udp.0, udp.1, 0.02);
            let pings = idle(Protocol::Icmp, 50, pings, 0.02);
            found_in(CAUSE.examine, &[udp, pings]).len()
        };
        assert_eq!(found((5, 0), 50), 1);
        assert_eq!(found((5, 1), 50), 0);
        assert_eq!(found((5, 0), 0), 0, "no host answers");
        assert_eq!(found((5, 0), 20), 0, "a path that loses most packets");
        assert_eq!(found((250, 250), 50), 0);
    }
}

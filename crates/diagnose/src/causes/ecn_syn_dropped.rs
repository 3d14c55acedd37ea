//! A firewall drops handshakes that ask for ECN, and each connection begins a second late.
//!
//! Linux asks again without ECN after the first timeout of a SYN, which is a second (RFC 3168, section 6.1.1.1; RFC 6298).

use plumb_model::finding::{Action, Actor, Cause, Finding, Fix, Place, Severity, SysctlAction};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;

/// The first timeout of a SYN in seconds, less what a clock's tick takes from it.
const TIMEOUT_S: f64 = 0.99;

/// Connections whose first SYN vanished, all of them: where a path loses one packet in ten, so many in a row are one case
/// in ten thousand.
const ENOUGH_CONNECTS: u64 = 4;

/// Whether it asks for ECN on connections of its own (Linux Documentation, ip-sysctl: 1, and 3 for AccECN).
const ASKS: [&str; 2] = ["1", "3"];

const KEY: &str = "net.ipv4.tcp_ecn";

/// Something else about SYNs may be disliked; ECN is the usual one.
const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "with ECN not asked for (net.ipv4.tcp_ecn = 2) a handshake takes one round trip",
    needs: &[Need::Connections, Need::Machine],
    resembles: &[(
        Cause::PathLoss,
        "loss takes some handshakes, and not the first packet of each",
    )],
    examine: |case| {
        let found = examine(case).into_iter().collect();
        let measured = (
            "connections to a port of the far end",
            case.ports().any(|port| port.result.connect_s.is_some()),
        );
        let statement =
            "each connects a SYN timeout later than the path takes, and this host asks for ECN";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let (_, host) = case.hosts().next()?;
    let asks = host.sysctl(KEY).is_some_and(|value| ASKS.contains(&value));
    let idle = case.idle()?;
    let path_s = idle.result.rtt_s?.p50;
    let mut to_it = case
        .ports()
        .filter(|port| port.result.address == idle.result.address);
    let (port, least_s) = to_it.find_map(|port| {
        let connects = port.result.connect_s?;
        let late = connects.count >= ENOUGH_CONNECTS && connects.min >= TIMEOUT_S + path_s;
        late.then_some((port, connects.min))
    })?;
    asks.then(|| Finding {
        cause: Cause::EcnSynDropped,
        place: Place::Path,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Every connection takes {} to begin, and a round trip {}: the first SYN of each vanishes. This machine asks for ECN in it, which a firewall on the path probably drops.",
            human_seconds(least_s),
            human_seconds(path_s)
        ),
        evidence: vec![fact(
            port.measurement,
            "connect_s.min",
            least_s,
            "fastest of several connections, against a round trip and the first timeout of a SYN; net.ipv4.tcp_ecn asks for ECN",
            TIMEOUT_S + path_s,
        )],
        fixes: vec![
            Fix::advice(
                Actor::Provider,
                "Find the firewall that drops SYNs with ECE and CWR set, and let them pass (RFC 3360).",
                "A handshake takes one round trip.",
            ),
            Fix::advice(
                Actor::ThisHost,
                "Until then, answer with ECN where it is asked for, and do not ask.",
                "A handshake takes one round trip; queues that mark have to drop.",
            )
            .by(Action::Sysctl(SysctlAction {
                key: KEY.to_owned(),
                value: "2".to_owned(),
            })),
        ],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connects, found_in, idle, measurement};
    use plumb_model::protocol::Protocol;
    use plumb_model::results::Outcome;
    use plumb_model::results::host::{HostResult, Sysctl};
    use plumb_model::results::port::PortState;
    use plumb_model::tune::Scope;

    #[test]
    fn a_second_before_every_connection_is_the_first_syn() {
        let found = |asks: &str, connect_s| {
            let sysctl = Sysctl {
                key: KEY.to_owned(),
                value: Some(asks.to_owned()),
                scope: Scope::Namespace,
                never_because: None,
            };
            let host = HostResult {
                sysctls: vec![sysctl],
                ..HostResult::default()
            };
            let measured = [
                measurement(Outcome::Host(Box::new(host))),
                idle(Protocol::Udp, 250, 250, 0.02),
                connects("192.0.2.9", 5, connect_s, PortState::Open),
            ];
            found_in(CAUSE.examine, &measured).len()
        };
        assert_eq!(found("1", 1.045), 1);
        assert_eq!(found("2", 1.045), 0, "it does not ask");
        assert_eq!(found("1", 0.02), 0);
        assert_eq!(found("1", 0.5), 0);
    }
}

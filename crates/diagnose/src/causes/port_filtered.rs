//! A TCP port of a host that is there gets no answer: a firewall drops what is sent to it.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::port::PortState;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Port, fact};

/// Ports of the web, which any host may lack: that they do not answer is no fault.
const WEB_PORTS: [u16; 2] = [443, 80];

const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "with the port let through, a connection comes about or is refused at once",
    needs: &[Need::Connections],
    resembles: &[(
        Cause::PathRefused,
        "there a router says that packets go no further",
    )],
    yields_to: &[Cause::PathRefused, Cause::CaptivePortal, Cause::Ipv6Broken],
    examine: |case| {
        let found = case
            .ports()
            .filter_map(|port| filtered(case, port))
            .collect();
        let measured = ("connections to a TCP port", case.ports().next().is_some());
        let statement = "a port answers nothing, of a host that answers otherwise";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn filtered(case: &Case<'_>, port: Port<'_>) -> Option<Finding> {
    let result = port.result;
    let silent = result.state == Some(PortState::Filtered) && result.connected == 0;
    if !silent || port.is_nobodys() || WEB_PORTS.contains(&result.port) {
        return None;
    }
    let alive = case
        .idle()
        .is_some_and(|idle| idle.result.address == result.address && idle.result.received > 0)
        || case.ports().any(|other| {
            let answers = matches!(
                other.result.state,
                Some(PortState::Open | PortState::Refused)
            );
            other.result.address == result.address && answers
        });
    alive.then(|| Finding {
        cause: Cause::PortFiltered,
        place: Place::Path,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "TCP port {} of {} is filtered: the host answers otherwise, and to this port nothing comes back. A firewall on the path or at the far end drops it.",
            result.port, result.address
        ),
        evidence: vec![fact(
            port.measurement,
            "state",
            PortState::Filtered.name(),
            "state of the port; a host without the service would refuse the connection",
            PortState::Refused.name(),
        )],
        fixes: vec![Fix::advice(
            Actor::FarHost,
            format!("Let TCP port {} through the far end's firewall (and its cloud's security group). Where it is open there, `plumb path HOST --tcp` shows how far such packets get.", result.port),
            "The port accepts connections, or refuses them at once.",
        )],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connects, found_in, idle};
    use plumb_model::protocol::Protocol;
    use plumb_model::results::port::PortState;

    #[test]
    fn a_host_that_is_there_filters() {
        let found = |state, answered| {
            let measured = [
                idle(Protocol::Icmp, 50, answered, 0.02),
                connects("192.0.2.9", 0, 0.0, state),
            ];
            found_in(CAUSE.examine, &measured).len()
        };
        assert_eq!(found(PortState::Filtered, 50), 1);
        assert_eq!(found(PortState::Refused, 50), 0);
        assert_eq!(found(PortState::Filtered, 0), 0, "nobody is there");
    }
}

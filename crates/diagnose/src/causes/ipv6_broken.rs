//! The far end's name has an address of IPv6, and nothing gets there by it.
//!
//! Programs try IPv6 first and wait for a part of a second, some for a minute, before they take IPv4 (RFC 8305).

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;

/// Connections over IPv4 that came about meanwhile, at the least.
const ENOUGH_CONNECTS: u64 = 3;

/// A firewall of the far end may close the port for IPv6 alone.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "connections by the address of IPv6 come about, or the name has none",
    needs: &[Need::BothVersions],
    resembles: &[(
        Cause::PathRefused,
        "there no version of IP gets to the far end",
    )],
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let both = facts.known("connections by both versions of IP", case.port_by_both());
    let [v4, v6] = both?;
    let broken =
        v4.result.connected >= ENOUGH_CONNECTS && v6.result.connected == 0 && v6.is_out_of_reach();
    let why = v6.result.error.as_deref().unwrap_or("no answer");
    let statement = "those by IPv4 come about, and none by IPv6";
    facts.is(statement, broken).then(|| Finding {
        cause: Cause::Ipv6Broken,
        place: Place::Path,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "IPv6 does not work to the far end: TCP port {} of {} gives {why}, while {} connects at once. Programs that try IPv6 first wait each time.",
            v6.result.port, v6.result.address, v4.result.address
        ),
        evidence: vec![fact(
            v6.measurement,
            "connected",
            0.0,
            "connections over IPv6, against those over IPv4",
            v4.result.connected as f64,
        )],
        fixes: vec![
            Fix::advice(
                Actor::ThisHost,
                "See how far IPv6 gets (`plumb path -6 HOST`), and whether it works to any other host. Where it works nowhere, repair or switch off IPv6 in the router.",
                "Connections by IPv6 come about as by IPv4.",
            ),
            Fix::advice(
                Actor::FarHost,
                "Where other hosts are reached by IPv6: open the port for IPv6 too, or take the AAAA record away.",
                "Connections by IPv6 come about as by IPv4.",
            ),
        ],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connects, found_in};
    use plumb_model::results::port::PortState;

    #[test]
    fn what_refuses_is_reached() {
        let found = |v6: (u64, PortState), v4: u64| {
            let measured = [
                connects("192.0.2.9", v4, 0.02, PortState::Open),
                connects("2001:db8::9", v6.0, 0.02, v6.1),
            ];
            found_in(CAUSE.examine, &measured).len()
        };
        assert_eq!(found((0, PortState::Filtered), 5), 1);
        assert_eq!(found((0, PortState::Unreachable), 5), 1);
        assert_eq!(found((0, PortState::Refused), 5), 0, "nobody listens there");
        assert_eq!(found((5, PortState::Open), 5), 0);
        assert_eq!(found((0, PortState::Filtered), 0), 0, "neither does");
    }
}

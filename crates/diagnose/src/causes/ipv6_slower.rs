//! Connections over IPv6 take longer than over IPv4, by another route or a tunnel.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;
use crate::facts::seconds;

/// So much longer, in seconds and as a share: a smaller difference does not matter to a choice, and medians of five
/// differ by chance.
const LONGER_S: f64 = 0.01;
const LONGER_RATIO: f64 = 0.3;

/// Connections of each, at the least.
const ENOUGH_CONNECTS: u64 = 3;

const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "over a native path IPv6 takes what IPv4 does",
    needs: &[Need::BothVersions],
    resembles: &[(
        Cause::Ipv6Broken,
        "there no connection over IPv6 comes about",
    )],
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let both = facts.known("connections by both versions of IP", case.port_by_both());
    let [v4, v6] = both?;
    let times_s = v6.result.connect_s.zip(v4.result.connect_s);
    let (slow, fast) = facts.known("how long connections take by each", times_s)?;
    let enough = slow.count.min(fast.count) >= ENOUGH_CONNECTS;
    let threshold_s = fast.p50 + LONGER_S.max(LONGER_RATIO * fast.p50);
    // Each by turns, so that nearly all of the one are longer than nearly all of the other.
    let slower = facts.is("enough connections came about by each", enough)
        && facts.above(
            "median time to connect by IPv6",
            seconds(slow.p50),
            threshold_s,
        )
        && facts.above("least time to connect by IPv6", seconds(slow.min), fast.p50);
    slower.then(|| Finding {
        cause: Cause::Ipv6Slower,
        place: Place::Path,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "IPv6 takes a longer path than IPv4: a connection takes {} to {} and {} to {}.",
            human_seconds(slow.p50),
            v6.result.address,
            human_seconds(fast.p50),
            v4.result.address
        ),
        evidence: vec![fact(
            v6.measurement,
            "connect_s.p50",
            slow.p50,
            "median time of a connection over IPv6, against that over IPv4 and a third more",
            threshold_s,
        )],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Compare both routes (`plumb path -4 HOST`, `plumb path -6 HOST`): a tunnel, or another exchange, makes the difference. What both ends may choose themselves is IPv4.",
            "Connections take as long over either.",
        )],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connects, found_in};
    use plumb_model::results::port::PortState;

    #[test]
    fn longer_is_a_third_and_ten_milliseconds() {
        let found = |v6_s, v4_s| {
            let measured = [
                connects("192.0.2.9", 5, v4_s, PortState::Open),
                connects("2001:db8::9", 5, v6_s, PortState::Open),
            ];
            found_in(CAUSE.examine, &measured).len()
        };
        assert_eq!(found(0.060, 0.020), 1);
        assert_eq!(found(0.029, 0.020), 0);
        assert_eq!(found(0.120, 0.100), 0);
        assert_eq!(found(0.020, 0.060), 0);
    }
}

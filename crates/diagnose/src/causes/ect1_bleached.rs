//! A machine on the path clears or drops ECT(1), and leaves ECT(0) alone.
//!
//! A transport asks by ECT(1) for the low-latency queue of L4S (RFC 9331). Without the mark it waits in the queue of all others,
//! and where its packets are dropped it does not get through.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Severity};
use plumb_model::need::Need;
use plumb_model::results::path::{EcnField, MarksBetweenEnds};

use crate::entry::{Entry, Family};
use crate::evidence::{Route, ect1_alone, fact, of_route};

/// Sixteen packets, of one moment and one port.
const CONFIDENCE: f64 = 0.9;

/// So many with ECT(0) arrive, and none with ECT(1), of as many that were sent: chance that loses every second packet
/// would do so once in 250 cases.
const ENOUGH: u64 = 8;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "without the box that does it, or through a tunnel, packets with ECT(1) arrive as they were sent",
    needs: &[Need::Marks],
    resembles: &[(
        Cause::EcnCleared,
        "there ECT(0) does not arrive either, so that no queue can mark anything",
    )],
    yields_to: &[Cause::EcnCleared],
    examine: |case| {
        let found = case.routes().filter_map(examine).take(1).collect();
        let measured = ("the routers of the path", case.routes().next().is_some());
        let statement = "packets with ECT(1) arrive changed, or not at all, while ECT(0) passes";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn examine(route: Route<'_>) -> Option<Finding> {
    let marks = route.result.marks.as_ref()?;
    if is_dropped(marks) {
        let arrived = of(marks, EcnField::Ect0);
        let summary = format!(
            "Packets with ECT(1) to {} are dropped: none of them arrives, and {arrived} with ECT(0) do. A transport of L4S does not get through.",
            route.result.address
        );
        let evidence = fact(
            route.measurement,
            "marks.up.0.packets",
            arrived as f64,
            "packets with ECT(0) that arrived, where none with ECT(1) did that were sent between them",
            ENOUGH as f64,
        );
        return Some(finding(Severity::Warning, summary, evidence));
    }
    let (summary, evidence) = ect1_alone(route)?;
    Some(finding(Severity::Info, summary, evidence))
}

fn finding(severity: Severity, summary: String, evidence: Evidence) -> Finding {
    let mut finding = of_route(
        Cause::Ect1Bleached,
        (severity, CONFIDENCE),
        summary,
        evidence,
        (
            Actor::Provider,
            "Ask who runs the path to leave the field alone (RFC 9331, section 5.4). Until then L4S has no use here: leave TCP Prague and the like off, or tunnel them.",
            "Packets with ECT(1) arrive as they were sent.",
        ),
    );
    finding.fixes.push(Fix::advice(
        Actor::Router,
        "Look for a rule on the own router that clears the old TOS byte or resets ECN, and take it out.",
        "The same.",
    ));
    finding
}

/// How many packets that were sent with that field arrived.
fn of(marks: &MarksBetweenEnds, sent: EcnField) -> u64 {
    let arrived = marks.up.iter().filter(|of| of.sent_ecn == Some(sent));
    arrived.map(|of| of.packets).sum()
}

/// Whether none with ECT(1) arrives of those that were sent between others, which do.
fn is_dropped(marks: &MarksBetweenEnds) -> bool {
    let arrived = of(marks, EcnField::Ect0);
    arrived >= ENOUGH && of(marks, EcnField::Ect1) == 0 && marks.sent >= 2 * ENOUGH
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rules;
    use crate::testing::found;
    use plumb_model::results::Outcome;

    /// Causes found, and how bad they are, of so many packets that were sent with one field and arrived with another.
    fn of_marks(arrived: &[(&str, &str, u64)]) -> Vec<(Cause, Severity)> {
        let up = arrived.iter().map(|(sent, seen, packets)| {
            serde_json::json!({ "sent_ecn": sent, "dscp": 34, "ecn": seen, "packets": packets })
        });
        let marks = serde_json::json!({
            "dscp": 34, "sent": 16, "up": up.collect::<Vec<_>>(), "down": [],
        });
        let path = serde_json::json!({ "kind": "path", "result": {
            "protocol": "icmp", "port": null, "address": "192.0.2.9", "reached": true, "cycles": 3, "hops": [], "loss": null,
            "routes": [], "changes": [], "alterations": [], "marks": marks, "syn_ack": null, "multipath": null,
            "distance": null, "way_back": null, "symmetry": null,
        }});
        let outcome: Outcome = serde_json::from_value(path).unwrap();
        let found = found(rules::found, outcome).into_iter();
        found.map(|f| (f.cause, f.severity)).collect()
    }

    #[test]
    fn a_field_of_l4s_is_told_from_all_of_ecn() {
        let bleached = [(Cause::Ect1Bleached, Severity::Info)];
        let classic = ("ect-0", "ect-0", 8);
        assert_eq!(of_marks(&[classic, ("ect-1", "not-ect", 8)]), bleached);
        assert_eq!(of_marks(&[classic, ("ect-1", "ect-0", 7)]), bleached);
        assert_eq!(of_marks(&[classic, ("ect-1", "ect-1", 8)]), []);
        assert_eq!(of_marks(&[classic, ("ect-1", "ce", 8)]), [], "a mark");
        assert_eq!(
            of_marks(&[classic]),
            [(Cause::Ect1Bleached, Severity::Warning)],
            "dropped"
        );
        let both = [("ect-0", "not-ect", 8), ("ect-1", "not-ect", 8)];
        assert_eq!(of_marks(&both), [(Cause::EcnCleared, Severity::Info)]);
    }
}

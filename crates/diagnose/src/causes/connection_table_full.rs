//! This machine's table of connections is full, and packets of new ones are dropped.
//!
//! Firewalls and NAT of Linux remember each connection (nf_conntrack). What finds no room is dropped; before that, idle
//! connections of others are given up early.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::Counted;
use crate::facts::count;

/// The kernel counted them; the column has counted packets without memory, too.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "with a larger table (net.netfilter.nf_conntrack_max), or without connection tracking, the counter of drops stands still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there connections that exist lose packets as well as new ones",
    )],
    examine: |case| worst(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn worst(case: &Case<'_>) -> Option<Finding> {
    let refused =
        |counted: &Counted<'_>| counted.sum(["connections.drop", "connections.early_drop"]);
    let facts = case.facts(None);
    let counted = case.counted().max_by_key(refused);
    let counted = facts.known("this machine's counters beside each phase", counted)?;
    facts.above(
        "connections dropped or given up in a phase",
        count(refused(&counted)),
        0.0,
    );
    let dropped = counted.grown("connections.drop");
    let early = counted.grown("connections.early_drop");
    let (severity, what) = match (dropped, early) {
        (0, 0) => return None,
        (0, early) => (
            Severity::Info,
            format!("gave up {early} connections before their time to make room"),
        ),
        (dropped, _) => (
            Severity::Warning,
            format!("dropped {dropped} packets of connections for which it had no room"),
        ),
    };
    let (field, value) = match dropped {
        0 => ("early_drop", early),
        _ => ("drop", dropped),
    };
    Some(Finding {
        cause: Cause::ConnectionTableFull,
        place: Place::ThisHost,
        severity,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "This machine's table of connections (nf_conntrack) {what}, {}: new connections fail or begin late.",
            counted.during()
        ),
        evidence: vec![Evidence {
            measurement: counted.measurement.id.clone(),
            field: format!("result.grown.connections.{field}"),
            value: (value as f64).into(),
            rule: "packets or connections that the table refused, against none".to_owned(),
            threshold: 0.0.into(),
        }],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Compare net.netfilter.nf_conntrack_count with nf_conntrack_max and raise the latter (and the hash table, /sys/module/nf_conntrack/parameters/hashsize), or exempt busy flows from tracking (nft notrack).",
            "The counters of /proc/net/stat/nf_conntrack stand still.",
        )],
        kb: "host".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::counted;

    #[test]
    fn drops_are_worse_than_entries_given_up_early() {
        let found = |grown: &[(&str, u64)]| {
            let found = counted(CAUSE.examine, grown).into_iter();
            found.map(|finding| finding.severity).collect::<Vec<_>>()
        };
        assert_eq!(found(&[("connections.insert_failed", 4)]), []);
        assert_eq!(found(&[("connections.early_drop", 4)]), [Severity::Info]);
        assert_eq!(
            found(&[("connections.early_drop", 4), ("connections.drop", 1)]),
            [Severity::Warning]
        );
    }
}

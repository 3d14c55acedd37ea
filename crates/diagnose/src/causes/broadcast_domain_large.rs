//! A link has more neighbours than a broadcast domain should.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a smaller network has less broadcast",
    needs: &[Need::Machine],
    audits: &[(Subject::BroadcastDomain, audit)],
    ..Entry::PLAIN
};

/// Neighbours on one link from which on its broadcasts and look-ups are work for everybody.
const MANY: u64 = 500;

/// A prefix that leaves room for more than a thousand.
const WIDE: u8 = 22;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .in_use()
        .filter_map(|(place, interface)| {
            let widest = interface
                .addresses
                .iter()
                .filter(|text| !text.contains(':'))
                .filter_map(|text| text.rsplit_once('/')?.1.parse::<u8>().ok())
                .min()?;
            let name = &interface.name;
            let subject = format!("{name} broadcast domain");
            let count = interface.neighbours;
            if count <= MANY {
                let room = if widest < WIDE { "large, but few speak: " } else { "" };
                return Some(fine(subject, format!("{room}{count} neighbours of {name} are known in a /{widest}")));
            }
            Some(
                found(
                    subject,
                    Cause::BroadcastDomainLarge,
                    Severity::Warning,
                    &[PathKind::Lan, PathKind::Router],
                    format!("{name} knows {count} neighbours on one link (/{widest}): every broadcast and every look-up is work for all of them."),
                )
                .place(Place::LocalSegment)
                .sure(0.8)
                .evidence(facts.evidence(
                    format!("interfaces[{place}].neighbours"),
                    count as f64,
                    "neighbours known on one link",
                    MANY as f64,
                ))
                .advice(
                    "Part the network into smaller ones with a router between them; meanwhile watch the limit of the neighbour table.",
                    "Fewer broadcasts, and a table that has room.",
                )
                .done(),
            )
        })
        .collect()
}

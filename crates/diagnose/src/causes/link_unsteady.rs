//! A link comes and goes.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;

use crate::entry::{Entry, Family, Harm, of_lost_frames};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    harms: Harm::Delivery,
    vanishes: "another cable, module or port stays up",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the link's own counter of changes stands still",
    )],
    audits: &[(Subject::Carrier, audit)],
    explains: of_lost_frames,
    ..Entry::PLAIN
};

/// A carrier that came or went more often than this is worth a look. Each start and each
/// negotiation counts two.
const MOST_CHANGES: u32 = 20;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.in_use();
    let judged = all.filter_map(|(place, interface)| judge(facts, place, interface));
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface) -> Option<Judged> {
    let changes = interface
        .carrier_changes
        .filter(|_| interface.is_physical())?;
    let name = &interface.name;
    let subject = format!("{name} carrier");
    if changes <= MOST_CHANGES {
        return Some(fine(
            subject,
            format!("the carrier of {name} changed {changes} times"),
        ));
    }
    Some(
        found(
            subject,
            Cause::LinkUnsteady,
            Severity::Info,
            &PathKind::ALL,
            format!("The carrier of {name} came or went {changes} times since the interface is there."),
        )
        .place(Place::LocalSegment)
        .sure(0.6)
        .evidence(facts.evidence(
            format!("interfaces[{place}].carrier_changes"),
            changes,
            "changes of the carrier, for any reason",
            MOST_CHANGES,
        ))
        .advice(
            "If it was not plugged in and out so often: look at the cable, the other end's port and energy-efficient Ethernet.",
            "The number stays the same.",
        )
        .done(),
    )
}

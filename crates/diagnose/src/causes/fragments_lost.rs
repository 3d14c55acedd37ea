//! Packets are not put together from their fragments.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{ENOUGH, Facts, Judged, Subject, events, fine, found, ratio, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "packets that fit the path need no fragments",
    needs: &[Need::CounterRates],
    audits: &[(Subject::Fragments, audit)],
    ..Entry::PLAIN
};

/// Fragmented packets that could not be put together, of those that were tried.
const REASSEMBLY_RATIO: f64 = 0.01;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    vec![judge(facts)]
}

fn judge(facts: &Facts<'_>) -> Judged {
    let subject = "fragments";
    let (Some(failed), Some(fragments), Some(whole)) = (
        events(facts.host, "IpReasmFails"),
        events(facts.host, "IpReasmReqds"),
        events(facts.host, "IpReasmOKs"),
    ) else {
        return unknown(subject, "the counters of IP could not be read");
    };
    let share = ratio(failed, failed.saturating_add(whole));
    if share < REASSEMBLY_RATIO || failed < ENOUGH {
        return fine(
            subject,
            match fragments {
                0 => "no fragments were received".to_owned(),
                some => {
                    format!("{some} fragments were received, and {failed} packets not reassembled")
                }
            },
        );
    }
    found(
        subject,
        Cause::FragmentsLost,
        Severity::Warning,
        &[PathKind::LongPath, PathKind::Router],
        format!("{failed} packets could not be reassembled from their fragments, {:.0} % of those that arrived in fragments.", share * 100.0),
    )
    .place(Place::Downlink)
    .sure(0.8)
    .evidence(facts.counted("IpReasmFails", "packets given up, compared with 1 % of those that were tried", (failed + whole) as f64 * REASSEMBLY_RATIO))
    .evidence(facts.counted("IpReasmTimeout", "of those, the ones that waited too long for a fragment", 0.0))
    .advice(
        "Let senders use smaller datagrams: one lost fragment loses the whole, and firewalls drop what has no ports. If IpReasmTimeout is much smaller, memory ran out: net.ipv4.ipfrag_high_thresh.",
        "The counter stops.",
    )
    .page("tcp-counters")
    .done()
}

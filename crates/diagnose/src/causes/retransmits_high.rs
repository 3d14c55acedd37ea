//! Much of what this host sends is retransmitted.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, events, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "it is found by measuring one path after the other",
    needs: &[Need::CounterRates],
    audits: &[(Subject::Retransmissions, audit)],
    ..Entry::PLAIN
};

/// Segments sent before their share retransmitted says anything.
const ENOUGH_SENT: u64 = 10_000;

/// Shares retransmitted that are worth knowing, and worth fixing.
const RETRANSMIT_INFO: f64 = 0.01;
const RETRANSMIT_WARNING: f64 = 0.03;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    vec![judge(facts)]
}

fn judge(facts: &Facts<'_>) -> Judged {
    let subject = "segments retransmitted";
    let (Some(again), Some(sent)) = (
        events(facts.host, "TcpRetransSegs"),
        events(facts.host, "TcpOutSegs"),
    ) else {
        return unknown(subject, "the counters of TCP could not be read");
    };
    if sent < ENOUGH_SENT {
        return fine(
            subject,
            format!("{again} of {sent} segments were retransmitted, too few to judge"),
        );
    }
    let share = again as f64 / sent as f64;
    if share < RETRANSMIT_INFO {
        return fine(
            subject,
            format!("{:.2} % of all segments were retransmitted", share * 100.0),
        );
    }
    found(
        subject,
        Cause::RetransmitsHigh,
        if share < RETRANSMIT_WARNING { Severity::Info } else { Severity::Warning },
        &[PathKind::LongPath, PathKind::BusyServer],
        format!("{:.1} % of all segments that this host sent since it began were retransmitted.", share * 100.0),
    )
    .place(Place::Uplink)
    .sure(0.6)
    .evidence(facts.counted("TcpRetransSegs", "segments retransmitted, against 1 % of those sent", sent as f64 * RETRANSMIT_INFO))
    .evidence(facts.counted("TcpExtTCPTimeouts", "of the losses, those that cost a timeout", 0.0))
    .advice(
        "Find the path that loses: `plumb host` lists connections with their retransmissions, `plumb check HOST` measures one path. The count is of all paths together.",
        "A smaller share in `plumb host --live`.",
    )
    .page("tcp-counters")
    .done()
}

//! A link runs below what both of its ends can.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{Interface, LinkMode};
use plumb_model::units::si;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another cable or port negotiates the rate that both ends can",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::NarrowestLine,
        "there a line beyond this machine is the narrow one",
    )],
    audits: &[(Subject::Speed, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.hardware();
    let judged = all.filter_map(|(place, interface)| {
        Some(judge(facts, place, interface, interface.link.as_ref()?))
    });
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface, link: &LinkMode) -> Judged {
    let name = &interface.name;
    let subject = format!("{name} speed");
    let Some(speed) = link.speed_bps else {
        return unknown(subject, format!("the driver of {name} does not report it"));
    };
    let rate = |bps: f64| si(bps, "bit/s");
    let (could, severity, confidence, who) = match (link.best_speed_bps, link.partner_speed_bps) {
        (Some(ours), Some(theirs)) => (ours.min(theirs), Severity::Warning, 0.9, "both ends could"),
        (Some(ours), None) => (ours, Severity::Info, 0.6, "this end could"),
        (None, _) => {
            return fine(subject, format!("{name} runs at {}", rate(speed)));
        }
    };
    if speed >= could {
        return fine(
            subject,
            format!("{name} runs at {}, the most that {who}", rate(speed)),
        );
    }
    let held = link
        .offered_speed_bps
        .is_some_and(|offered| offered < could)
        || link.autonegotiation == Some(false);
    let draft = found(
        subject,
        Cause::LinkSlow,
        severity,
        &PathKind::ALL,
        format!("{name} runs at {}, and {who} {}.", rate(speed), rate(could)),
    )
    .place(Place::LocalSegment)
    .sure(confidence)
    .evidence(facts.evidence(
        format!("interfaces[{place}].link.speed_bps"),
        speed,
        &format!("the rate of the link, compared with what {who}"),
        could,
    ));
    if held {
        draft
            .interface(
                "Let this end offer every speed that it has: it is set to fewer.",
                interface,
                InterfaceChange::Autonegotiation(true),
                "The link comes up at the higher rate.",
            )
            .done()
    } else {
        draft
            .advice(
                "Change the cable: 1000BASE-T needs all four pairs (Cat 5e), 10GBASE-T Cat 6A, or Cat 6 up to 55 m. Then try another port.",
                "The link comes up at the higher rate.",
            )
            .done()
    }
}

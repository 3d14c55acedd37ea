//! Only one end of a link may send at a time.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{Duplex, Interface, LinkMode};

use crate::entry::{Entry, Family, of_lost_frames};
use crate::host::{Facts, Judged, Subject, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "both ends negotiate full duplex, over another cable or port",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::PathLoss,
        "a bad line loses as much with one direction loaded as with both",
    )],
    audits: &[(Subject::Duplex, audit)],
    explains: of_lost_frames,
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.in_use();
    let judged = all.filter_map(|(place, interface)| match &interface.link {
        // A TUN device and its like have a speed for show, which nothing keeps to.
        Some(link) if interface.is_physical() || link.duplex == Some(Duplex::Half) => {
            Some(judge(facts, place, interface, link))
        }
        _ if interface.is_physical() && interface.wifi.is_none() => Some(unknown(
            format!("{} link", interface.name),
            format!(
                "the driver of {} reports no speed or duplex",
                interface.name
            ),
        )),
        _ => None,
    });
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface, link: &LinkMode) -> Judged {
    let name = &interface.name;
    let subject = format!("{name} duplex");
    match link.duplex {
        None => unknown(subject, format!("the driver of {name} does not report it")),
        Some(Duplex::Full) => fine(subject, format!("{name} sends and receives at once")),
        Some(Duplex::Half) => {
            // The other end offered nothing: it was set by hand, and this end had to guess (IEEE
            // 802.3 clause 28.2.3.1, parallel detection).
            let mismatch = link.autonegotiation == Some(true) && link.partner_speed_bps.is_none();
            let why = if mismatch {
                "; the other end does not negotiate, so it is probably set to full duplex, and frames collide"
            } else {
                ""
            };
            found(
                subject,
                Cause::LinkDuplexHalf,
                Severity::Critical,
                &PathKind::ALL,
                format!("{name} runs in half duplex{why}."),
            )
            .place(Place::LocalSegment)
            .sure(if mismatch { 0.95 } else { 0.85 })
            .evidence(facts.evidence(
                format!("interfaces[{place}].link.duplex"),
                Duplex::Half.name(),
                &format!("the duplex; {} collisions so far", interface.counters.collisions),
                Duplex::Full.name(),
            ))
            .interface(
                "Let both ends negotiate: a duplex set by hand at one end leaves the other guessing.",
                interface,
                InterfaceChange::Autonegotiation(true),
                "Full duplex, and no more collisions.",
            )
            .done()
        }
    }
}

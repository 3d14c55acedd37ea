//! Speed, duplex and steadiness of links, and the bus behind them.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};
use plumb_model::results::host::{Duplex, Interface, LinkMode};
use plumb_model::units::si;

use super::{Facts, Judged, fine, found, unknown};

/// A carrier that came or went more often than this is worth a look. Each start and each
/// negotiation counts two.
const MOST_CHANGES: u32 = 20;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (place, interface) in facts.in_use() {
        match &interface.link {
            // A TUN device and its like have a speed for show, which nothing keeps to.
            Some(link) if interface.is_physical() || link.duplex == Some(Duplex::Half) => {
                judged.push(duplex(facts, place, interface, link));
                if interface.is_physical() {
                    judged.push(speed(facts, place, interface, link));
                    judged.extend(bus(facts, place, interface, link));
                }
            }
            _ if interface.is_physical() && interface.wifi.is_none() => judged.push(unknown(
                subject(interface, "link"),
                format!(
                    "the driver of {} reports no speed or duplex",
                    interface.name
                ),
            )),
            _ => {}
        }
        judged.extend(steadiness(facts, place, interface));
    }
    judged
}

fn subject(interface: &Interface, what: &str) -> String {
    format!("{} {what}", interface.name)
}

fn duplex(facts: &Facts<'_>, place: usize, interface: &Interface, link: &LinkMode) -> Judged {
    let subject = subject(interface, "duplex");
    let name = &interface.name;
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

fn speed(facts: &Facts<'_>, place: usize, interface: &Interface, link: &LinkMode) -> Judged {
    let subject = subject(interface, "speed");
    let name = &interface.name;
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

fn bus(facts: &Facts<'_>, place: usize, interface: &Interface, link: &LinkMode) -> Option<Judged> {
    let bus = interface.bus.as_ref()?;
    let (speed, needed) = (bus.speed_bps?, link.speed_bps?);
    let name = &interface.name;
    let subject = subject(interface, "bus");
    let kind = match bus.kind.as_str() {
        "pci" => "PCI Express",
        "usb" => "USB",
        other => other,
    };
    if speed >= needed {
        return Some(fine(
            subject,
            format!(
                "{kind} carries {} in each direction for {name}",
                si(speed, "bit/s")
            ),
        ));
    }
    let better = bus.best_speed_bps.filter(|best| *best > speed);
    let draft = found(
        subject,
        Cause::BusSlow,
        Severity::Warning,
        &[PathKind::Lan, PathKind::LongPath, PathKind::Router],
        format!(
            "{kind} carries {} for {name}, whose link is {}.",
            si(speed, "bit/s"),
            si(needed, "bit/s")
        ),
    )
    .evidence(facts.evidence(
        format!("interfaces[{place}].bus.speed_bps"),
        speed,
        "the rate of the bus, compared with the link's",
        needed,
    ));
    let advice = match better {
        Some(best) => format!(
            "Put the card into a slot with more lanes: it could use {}.",
            si(best, "bit/s")
        ),
        None if kind == "USB" => {
            "Plug it into a faster port (USB 3), without a hub in between.".to_owned()
        }
        None => "Use a card with a faster bus.".to_owned(),
    };
    Some(draft.advice(advice, "The link can be filled.").done())
}

fn steadiness(facts: &Facts<'_>, place: usize, interface: &Interface) -> Option<Judged> {
    let changes = interface
        .carrier_changes
        .filter(|_| interface.is_physical())?;
    let name = &interface.name;
    let subject = subject(interface, "carrier");
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

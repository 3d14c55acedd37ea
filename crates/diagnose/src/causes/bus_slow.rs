//! The bus of a network card is slower than its link.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;
use plumb_model::units::si;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another slot gives the card all of its lanes",
    needs: &[Need::Machine],
    audits: &[(Subject::Bus, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.hardware();
    let judged = all.filter_map(|(place, interface)| judge(facts, place, interface));
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface) -> Option<Judged> {
    let bus = interface.bus.as_ref()?;
    let (speed, needed) = (bus.speed_bps?, interface.link.as_ref()?.speed_bps?);
    let name = &interface.name;
    let subject = format!("{name} bus");
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

//! Work that hardware or kernel could do in large pieces is done packet by packet.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{FAST_BPS, Interface};

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the processor does less for the same rate once the offload is on",
    needs: &[Need::Machine],
    audits: &[(Subject::Offloads, audit)],
    ..Entry::PLAIN
};

/// The offloads that spare the processor most, and what each does.
const WANTED: [(&str, &str); 5] = [
    (
        "tx-generic-segmentation",
        "splitting large segments at the last moment (GSO)",
    ),
    (
        "tx-tcp-segmentation",
        "splitting large segments in the card (TSO)",
    ),
    ("rx-gro", "joining received segments (GRO)"),
    ("rx-checksum", "checking received checksums in the card"),
    (
        "tx-scatter-gather",
        "sending from several places of memory at once",
    ),
];

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (place, interface) in facts.with_offloads() {
        // What is no card passes large pieces on whole: the card behind it splits and joins them.
        if interface.kind.is_some() {
            continue;
        }
        let off: Vec<_> = WANTED
            .iter()
            .filter_map(|(name, what)| {
                let position = interface.offloads.iter().position(|o| o.name == *name)?;
                let offload = interface.offloads.get(position)?;
                (!offload.on && !offload.fixed).then_some((position, *name, *what))
            })
            .collect();
        for (position, feature, what) in &off {
            judged.push(switched_off(
                facts, place, interface, *position, feature, what,
            ));
        }
        if off.is_empty() {
            judged.push(fine(
                format!("{} offloads", interface.name),
                format!(
                    "{} does in large pieces what it can (segmentation, GRO, checksums)",
                    interface.name
                ),
            ));
        }
    }
    judged
}

fn switched_off(
    facts: &Facts<'_>,
    place: usize,
    interface: &Interface,
    position: usize,
    feature: &str,
    what: &str,
) -> Judged {
    let name = &interface.name;
    let speed = interface.link.as_ref().and_then(|link| link.speed_bps);
    // A slow link is filled without; on one of unknown speed it is only worth knowing.
    let severity = match speed {
        Some(bps) if bps >= FAST_BPS && interface.is_physical() => Severity::Warning,
        _ => Severity::Info,
    };
    found(
        format!("{name} {feature}"),
        Cause::OffloadOff,
        severity,
        &[PathKind::Lan, PathKind::LongPath, PathKind::BusyServer],
        format!("{name} has {feature} off, {what}, though it can."),
    )
    .evidence(facts.evidence(
        format!("interfaces[{place}].offloads[{position}].on"),
        0.0,
        "the offload is in use (1) or not (0), and is not fixed",
        1.0,
    ))
    .interface(
        "Switch it on, unless it was switched off to work around a faulty driver or to capture packets as they are on the wire.",
        interface,
        InterfaceChange::Offload {
            feature: feature.to_owned(),
            on: true,
        },
        "Less processor time for the same rate.",
    )
    .done()
}

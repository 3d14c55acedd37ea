//! Links that sleep between frames.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};

use super::{Facts, Judged, fine, found};

/// Carrier changes from which on energy-efficient Ethernet is a suspect: some pairs of chips lose the link
/// over it.
const MANY_CHANGES: u32 = 20;

/// How long a link takes to wake (IEEE 802.3 table 78-4, Tw_sys_tx: 16.5 us for 1000BASE-T, 4.48 or 7.36 us for
/// 10GBASE-T).
const WAKE: &str = "about 17 us at 1 Gbit/s, 7 us at 10 Gbit/s";

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .hardware()
        .filter_map(|(place, interface)| {
            let name = &interface.name;
            let subject = format!("{name} link sleep");
            if !interface.energy_efficient? {
                return Some(fine(
                    subject,
                    format!("the link of {name} does not sleep between frames (EEE)"),
                ));
            }
            let changes = interface.carrier_changes.unwrap_or_default();
            let unsteady = changes > MANY_CHANGES;
            let (severity, suspicion) = if unsteady {
                (Severity::Warning, format!(", and its carrier came or went {changes} times, which some pairs of chips do over it"))
            } else {
                (Severity::Info, String::new())
            };
            Some(
                found(
                    subject,
                    Cause::PowerSaving,
                    severity,
                    &[PathKind::Lan],
                    format!("The link of {name} sleeps between frames (EEE) and wakes for each after a pause: {WAKE}{suspicion}."),
                )
                .place(Place::LocalSegment)
                .sure(if unsteady { 0.6 } else { 0.9 })
                .evidence(facts.evidence(
                    format!("interfaces[{place}].energy_efficient"),
                    1.0,
                    "the link sleeps between frames (1) or not (0)",
                    0.0,
                ))
                .interface(
                    "Where microseconds count, or the link is lost now and then, switch it off at this end.",
                    interface,
                    InterfaceChange::EnergyEfficient(false),
                    "Round trips on a LAN vary less, and the carrier stays.",
                )
                .done(),
            )
        })
        .collect()
}

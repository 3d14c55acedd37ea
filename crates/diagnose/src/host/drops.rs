//! Packets that a network card dropped because its ring was full.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Severity};
use plumb_model::results::host::OVERRUN_RATIO;

use super::{Facts, Judged, fine, found, one_in, ratio, unknown};

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (place, interface) in facts.hardware() {
        let counters = &interface.counters;
        let name = &interface.name;
        let subject = format!("{name} receive ring");
        let overrun = counters.overruns();
        let share = ratio(overrun, counters.rx_packets.saturating_add(overrun));
        let rings = interface.rings;
        if share < OVERRUN_RATIO {
            judged.push(match rings {
                Some(rings) => fine(
                    subject,
                    format!("{name} dropped {overrun} packets for want of descriptors, of which it has {}", rings.receive_packets),
                ),
                None if interface.wifi.is_some() => continue,
                None => unknown(subject, format!("the driver of {name} does not report its rings")),
            });
            continue;
        }
        let draft = found(
            subject,
            Cause::ReceiveOverrun,
            Severity::Warning,
            &PathKind::ALL,
            format!(
                "{name} dropped {overrun} packets before the kernel saw them: {}.",
                one_in(share)
            ),
        )
        .evidence(facts.evidence(
            format!("interfaces[{place}].counters.rx_missed_errors"),
            counters.rx_missed_errors as f64,
            "packets that found no descriptor, with rx_fifo_errors and rx_over_errors",
            0.0,
        ));
        let larger = rings.filter(|rings| rings.receive_packets < rings.receive_max_packets);
        judged.push(match larger {
            Some(rings) => draft
                .interface(
                    format!(
                        "Let the ring hold {} packets instead of {}: a burst then waits instead of being lost.",
                        rings.receive_max_packets, rings.receive_packets
                    ),
                    interface,
                    InterfaceChange::ReceiveRingPackets(rings.receive_max_packets),
                    "The counter stops. The price is memory, and some more delay when the processor is too slow all the time.",
                )
                .done(),
            None => draft
                .advice(
                    "The ring is as large as it gets: spread its packets over more queues or processors, and look at power saving.",
                    "The counter stops.",
                )
                .done(),
        });
    }
    judged
}

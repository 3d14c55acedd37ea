//! The network card drops packets before the kernel sees them.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::OVERRUN_RATIO;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, one_in, ratio, unknown};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger ring, or interrupts on more processors, leaves the counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the card's counters of drops stand still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let counters = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];
            let of = |name: &&str| Dropped::at(counted, name, "rx", &counters);
            counted.interfaces().iter().map(of).collect()
        })
    },
    audits: &[(Subject::ReceiveRing, audit)],
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::ReceiveOverrun,
    place: Place::ThisHost,
    what: "had no room in its card's receive ring for",
    warning_ratio: LOSS_WARNING,
    fix: "Let the ring hold more packets (`ethtool -G`), spread them over more queues or processors, and look at power saving: `plumb host` says which of these is left.",
    kb: "host",
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
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

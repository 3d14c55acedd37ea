//! A processor or a link saves power while packets wait.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::entry::{Entry, Family, Harm};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    harms: Harm::Delay,
    vanishes: "round trips get shorter and steadier without it",
    needs: &[Need::Machine],
    audits: &[
        (Subject::LinkSleep, links),
        (Subject::ProcessorSleep, processors),
    ],
    ..Entry::PLAIN
};

/// Carrier changes from which on energy-efficient Ethernet is a suspect: some pairs of chips lose the link
/// over it.
const MANY_CHANGES: u32 = 20;

/// How long a link takes to wake (IEEE 802.3 table 78-4, Tw_sys_tx: 16.5 us for 1000BASE-T, 4.48 or 7.36 us for
/// 10GBASE-T).
const WAKE: &str = "about 17 us at 1 Gbit/s, 7 us at 10 Gbit/s";

fn links(facts: &Facts<'_>) -> Vec<Judged> {
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

/// A processor that takes longer to wake than this adds to every round trip on a LAN.
const WAKE_S: f64 = 100e-6;

/// Drivers that under `powersave` still follow the load (Documentation/admin-guide/pm/intel_pstate.rst,
/// amd-pstate.rst); with all others it is the lowest frequency, always.
const SELF_GOVERNED: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

fn processors(facts: &Facts<'_>) -> Vec<Judged> {
    let cpus = &facts.host.cpus;
    let mut judged = Vec::new();
    let driver = cpus.frequency_driver.as_deref();
    let fixed_low = cpus.governors.iter().any(|g| g == "powersave")
        && !driver.is_some_and(|driver| SELF_GOVERNED.contains(&driver));
    judged.push(if cpus.governors.is_empty() {
        fine("processor frequency", "this kernel cannot set the processor's frequency")
    } else if fixed_low {
        found(
            "processor frequency",
            Cause::PowerSaving,
            Severity::Warning,
            &[PathKind::Lan, PathKind::BusyServer, PathKind::Router],
            "The governor powersave holds a processor at its lowest frequency, whatever there is to do.",
        )
        .evidence(facts.evidence(
            "cpus.frequency_hz",
            cpus.frequency_hz.unwrap_or_default(),
            "frequency now, against the highest",
            cpus.max_frequency_hz.unwrap_or_default(),
        ))
        .advice(
            "Choose schedutil, or performance while it matters: cpupower frequency-set -g schedutil",
            "Higher rates where a processor is the limit: encryption, small packets, 10 Gbit/s.",
        )
        .done()
    } else {
        fine("processor frequency", format!("governed by {}", cpus.governors.join(", ")))
    });
    if let Some(wake) = cpus.wake_s {
        judged.push(if wake <= WAKE_S {
            fine("processor sleep", format!("the deepest sleep ends within {}", human_seconds(wake)))
        } else {
            found(
                "processor sleep",
                Cause::PowerSaving,
                Severity::Info,
                &[PathKind::Lan],
                format!("An idle processor takes up to {} to wake, which every sparse packet waits for.", human_seconds(wake)),
            )
            .sure(0.8)
            .evidence(facts.evidence("cpus.wake_s", wake, "exit latency of the deepest idle state in use", WAKE_S))
            .advice(
                "Where microseconds count, and only there, keep deep idle states off (a PM QoS request, cpupower idle-set -D 100). It costs power, and turbo on other cores.",
                "Round trips on a LAN get shorter and vary less.",
            )
            .done()
        });
    }
    judged
}

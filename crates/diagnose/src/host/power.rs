//! Power saving against delay and rate.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::units::human_seconds;

use super::{Facts, Judged, fine, found};

/// A processor that takes longer to wake than this adds to every round trip on a LAN.
const WAKE_S: f64 = 100e-6;

/// Drivers that under `powersave` still follow the load (Documentation/admin-guide/pm/intel_pstate.rst,
/// amd-pstate.rst); with all others it is the lowest frequency, always.
const SELF_GOVERNED: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
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

//! What is wrong with the clock.

use plumb_model::finding::{Cause, PathKind, Severity};

use super::{Facts, Judged, fine, found, unknown};

/// Sources that are read with a few instructions; every other costs a microsecond or more for each
/// time stamp, of which a packet has several.
const FAST: [&str; 8] = [
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "xen",
    "timebase",
    "riscv_clocksource",
    // Of a lab in virtual time, where all that a program does takes no time.
    "time-travel-clock",
];

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    let clock = &facts.host.clock;
    let synchronised = match clock.synchronised {
        None => unknown("clock", "the kernel does not report whether the clock is synchronised"),
        Some(true) => fine("clock", "something holds the clock to true time"),
        Some(false) => found(
            "clock",
            Cause::ClockUnsynchronised,
            Severity::Info,
            &[],
            "Nothing holds this clock to true time: delays of one direction, logs and captures of two machines cannot be compared.",
        )
        .evidence(facts.evidence("clock.synchronised", 0.0, "kept on true time (1) or not (0), as adjtimex reports", 1.0))
        .advice("Run chrony or systemd-timesyncd.", "adjtimex says that the clock is synchronised.")
        .done(),
    };
    let source = match clock.source.as_deref() {
        None => unknown("clock source", "the kernel does not report it"),
        Some(source) if FAST.contains(&source) => fine("clock source", format!("time is read from {source}")),
        Some(source) => found(
            "clock source",
            Cause::ClockSourceSlow,
            Severity::Warning,
            &[PathKind::Lan, PathKind::BusyServer, PathKind::Router],
            format!("The kernel reads time from {source}, which takes about a microsecond each time, and every packet needs it several times."),
        )
        .sure(0.8)
        .evidence(facts.evidence("clock.source", source, "clock source of the kernel, against one within the processor", FAST.first().copied().unwrap_or_default()))
        .advice(
            "See why the kernel gave up the processor's own counter (dmesg, 'tsc'), or which source the hypervisor offers.",
            "Less processor time for each packet.",
        )
        .done(),
    };
    vec![synchronised, source]
}

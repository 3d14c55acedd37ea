//! The kernel reads time from a slow clock.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the processor's own counter takes less time to read",
    needs: &[Need::Machine],
    audits: &[(Subject::ClockSource, audit)],
    ..Entry::PLAIN
};

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

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let clock = &facts.host.clock;
    let judged = match clock.source.as_deref() {
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
    vec![judged]
}

//! Nothing holds the clock to true time.

use plumb_model::finding::{Cause, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a daemon of NTP or PTP holds it",
    needs: &[Need::Machine],
    audits: &[(Subject::Clock, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let clock = &facts.host.clock;
    let judged = match clock.synchronised {
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
    vec![judged]
}

//! The audit of a machine: pure rules over what `plumb host` read, each with what is fine as well as
//! with what is not.
//!
//! A rule stands in the file of its cause, looks at one subject (`Subject`), and says nothing of a subject that the machine does
//! not have. It reports it as unknown where the machine did not report it. Otherwise it says that the subject is fine, with the
//! number that shows it, or what is wrong and for which uses it matters. Here is what several rules share.

mod audit;
mod judged;
pub(crate) mod queueing;
mod stage;
mod stages;
mod subject;
pub(crate) mod tcp;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod wifi;

use plumb_model::finding::Finding;

pub use audit::{Audit, audit, long_path};
pub(crate) use judged::{
    ENOUGH, Facts, Found, Judged, events, fine, found, one_in, ratio, unknown,
};
pub(crate) use stage::{Stage, against};
pub use stages::stages;
pub(crate) use subject::Subject;

/// Fields of what was read that count since the machine booted.
const COUNTERS: [&str; 8] = [
    "counters",
    "driver_counters",
    "carrier_changes",
    "drops",
    "softnet",
    "counts",
    "retries",
    "busy_ratio",
];

/// Whether a finding rests on what was counted since the machine booted, most of it at other times and for other
/// programs. `plumb host --live` has the rates.
pub(crate) fn is_of_counters(finding: &Finding) -> bool {
    let first = finding.decisive();
    first.is_some_and(|evidence| {
        let parts = evidence.field.split(['.', '[']);
        parts.into_iter().any(|part| COUNTERS.contains(&part))
    })
}

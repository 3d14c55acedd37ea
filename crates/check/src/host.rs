//! `plumb host`: this machine, read and judged.

use std::collections::BTreeMap;

use plumb_diagnose::host::audit;
use plumb_host::facts::{Source, survey};
use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_net::clock;

use crate::assembly::{Assembly, Measured};

/// Reads this machine, as the network namespace of the calling thread shows it, and judges it.
pub fn run(command: Vec<String>) -> Run {
    let mut assembly = Assembly::here(command);
    let started_ns = clock::monotonic_ns();
    let mut result = survey(&mut Source::system());
    let audit = audit(&result, &assembly.next_id());
    result.audit.clone_from(&audit.checks);
    for unread in &result.unread {
        assembly.note(format!(
            "{} could not be read: {}.",
            unread.what, unread.why
        ));
    }
    if !result.of_the_machine.is_empty() {
        assembly.note(format!(
            "This is one network namespace of several. Of the whole machine are: {}, and the kernel variables marked so.",
            result.of_the_machine.join(", ")
        ));
    }
    assembly.add(Measured {
        started_ns,
        duration_s: (clock::monotonic_ns() - started_ns) as f64 / 1e9,
        params: serde_json::Map::new(),
        outcome: Outcome::Host(Box::new(result)),
        series: BTreeMap::new(),
    });
    assembly.audited(audit)
}

//! Every scenario that comes with plumb is what it says: `plumb lab verify` measures in it and
//! compares what was measured, and what the links recorded, with its truth.
//!
//! Those whose truth is a whole check have tests of their own in `truth.rs`.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use plumb_lab::scenario::Scenario;

use crate::common::measured::{disturbances, undisturbed};
use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, stderr, stdout};

/// A scenario's own truth test takes no longer, building the network included, where nothing else runs than tests of this kind, as in the
/// slow set. A machine that is busy with other things may take twice that.
const LONGEST: Duration = Duration::from_secs(2 * 8);

/// The verb that a scenario's truth is measured by.
fn verb(scenario: &Scenario) -> &str {
    scenario.truth.measure.get(1).map_or("", String::as_str)
}

fn weight(scenario: &Scenario) -> Weight {
    Weight::of(&["lab", "verify", &scenario.name])
}

/// What `plumb lab verify` finds wrong with a scenario, or how long it took beyond the longest.
fn verify(scenario: &Scenario, longest: Duration) -> Option<String> {
    let mut command = Command::new(PLUMB);
    command.args(["lab", "verify", &scenario.name]);
    let (output, took) = undisturbed(weight(scenario), || {
        let started = Instant::now();
        let output = command.output().expect("plumb starts");
        let disturbances = disturbances(&command, &output);
        ((output, started.elapsed()), disturbances)
    });
    if !output.status.success() {
        let said = stdout(&output) + &stderr(&output);
        return Some(format!("{}: {said}", scenario.name));
    }
    (took > longest).then(|| format!("{} took {took:?}", scenario.name))
}

/// The scenarios whose truth is one verb, and whether each shows something that none before it does: a kind of cell or
/// queue, or a verb. `make test` measures in those; what a cell does in virtual time is shown where it is
/// (`link/src/cell`), and the slow set measures in the others.
fn measured() -> Vec<(Scenario, bool)> {
    let mut seen = BTreeSet::new();
    let scenarios = Scenario::built_in().unwrap();
    let measured = scenarios.into_iter().filter(|s| verb(s) != "check");
    let mut measured: Vec<Scenario> = measured.collect();
    // Of those that show the same, the one that takes least of the machine.
    measured.sort_by_key(|scenario| weight(scenario).parts());
    let each = measured.into_iter().map(|scenario| {
        let text = Scenario::text(&scenario.name).unwrap();
        let kinds = text.split("type = \"").skip(1).map(|rest| {
            let kind = rest.split('"').next();
            kind.unwrap_or_default().to_owned()
        });
        let before = seen.len();
        seen.extend(kinds.chain([format!("plumb {}", verb(&scenario))]));
        (scenario, seen.len() > before)
    });
    each.collect()
}

#[test]
fn every_kind_of_cell_queue_and_verb_is_what_a_scenario_says() {
    let first = measured().into_iter().filter(|(_, new)| *new);
    agree(first.map(|(scenario, _)| scenario).collect(), Duration::MAX);
}

/// Those that [`measured`] leaves to the slow set.
pub(crate) fn others_agree() {
    let others = measured().into_iter().filter(|(_, new)| !new);
    agree(others.map(|(scenario, _)| scenario).collect(), LONGEST);
}

fn agree(scenarios: Vec<Scenario>, longest: Duration) {
    assert!(scenarios.len() > 25, "too few to be true");
    let test = slots::test();
    let verified: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = scenarios
            .iter()
            .map(|scenario| {
                scope.spawn(|| {
                    slots::works_for(test.clone());
                    verify(scenario, longest)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join()).collect()
    });
    let wrong = verified.iter().flatten().flatten();
    let wrong: Vec<_> = wrong.map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        scenarios.len(),
        wrong.join("\n")
    );
    // What was not measured, and has said so.
    for one in verified {
        one.unwrap_or_else(|why| std::panic::resume_unwind(why));
    }
}

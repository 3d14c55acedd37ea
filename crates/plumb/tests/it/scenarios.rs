//! Every scenario that comes with plumb is what it says: `plumb lab verify` measures in it and
//! compares what was measured, and what the links recorded, with its truth.
//!
//! Those whose truth is a whole check have tests of their own in `truth.rs`.

use std::collections::BTreeSet;
use std::process::Command;

use plumb_lab::scenario::Scenario;

use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, output_of, stderr, stdout};

/// The verb that a scenario's truth is measured by.
fn verb(scenario: &Scenario) -> &str {
    scenario.truth.measure.get(1).map_or("", String::as_str)
}

fn weight(scenario: &Scenario) -> Weight {
    Weight::of(&["lab", "verify", &scenario.name])
}

/// What `plumb lab verify` finds wrong with a scenario.
fn verify(scenario: &Scenario) -> Option<String> {
    let mut command = Command::new(PLUMB);
    command.args(["lab", "verify", "--virtual", &scenario.name]);
    let output = output_of(&mut command);
    let said = stdout(&output) + &stderr(&output);
    (!output.status.success()).then(|| format!("{}: {said}", scenario.name))
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
    agree(first.map(|(scenario, _)| scenario).collect());
}

/// Those that [`measured`] leaves to the slow set.
pub(crate) fn others_agree() {
    let others = measured().into_iter().filter(|(_, new)| !new);
    agree(others.map(|(scenario, _)| scenario).collect());
}

fn agree(scenarios: Vec<Scenario>) {
    assert!(scenarios.len() > 25, "too few to be true");
    let test = slots::test();
    let verified: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = scenarios
            .iter()
            .map(|scenario| {
                scope.spawn(|| {
                    slots::works_for(test.clone());
                    verify(scenario)
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

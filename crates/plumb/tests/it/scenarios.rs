//! Every scenario that comes with plumb is what it says: `plumb lab verify` measures in it and
//! holds what was measured, and what the links recorded, against its truth.
//!
//! Those whose truth is a whole check have tests of their own in `truth.rs`.

use std::time::{Duration, Instant};

use plumb_lab::scenario::Scenario;

use crate::common::slots::{self, Weight};
use crate::common::{plumb, stderr, stdout};

/// A scenario's own truth test takes no longer, building the network included. A machine that is
/// busy with other things may take twice that.
const LONGEST: Duration = Duration::from_secs(2 * 8);

/// The verb that a scenario's truth is measured by.
fn verb(scenario: &Scenario) -> &str {
    scenario.truth.measure.get(1).map_or("", String::as_str)
}

/// What `plumb lab verify` finds wrong with a scenario.
fn verify(scenario: &Scenario) -> Option<String> {
    let command = ["lab", "verify", &scenario.name];
    let _slot = slots::take(Weight::of(&command));
    let started = Instant::now();
    let output = plumb(&command);
    let took = started.elapsed();
    if !output.status.success() {
        let said = stdout(&output) + &stderr(&output);
        return Some(format!("{}: {said}", scenario.name));
    }
    (took > LONGEST).then(|| format!("{} took {took:?}", scenario.name))
}

#[test]
fn every_scenario_is_what_it_says() {
    let scenarios = Scenario::built_in().unwrap();
    let measured: Vec<_> = scenarios.iter().filter(|s| verb(s) != "check").collect();
    assert!(measured.len() > 60, "too few to be true");
    let test = slots::test();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = measured
            .iter()
            .map(|scenario| {
                scope.spawn(|| {
                    slots::works_for(test.clone());
                    verify(scenario)
                })
            })
            .collect();
        let each = all.into_iter().map(|one| one.join().unwrap());
        each.flatten().collect()
    });
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        measured.len(),
        wrong.join("\n")
    );
}

//! Every scenario that comes with plumb is what it says: `plumb lab verify` measures in it and
//! holds what was measured, and what the links recorded, against its truth.
//!
//! Those whose truth is a whole check have tests of their own in `truth.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use plumb_lab::scenario::Scenario;

/// A scenario's own truth test takes no longer, building the network included. A machine that is
/// busy with other things may take twice that.
const LONGEST: Duration = Duration::from_secs(2 * 8);

#[test]
fn every_scenario_is_what_it_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for scenario in Scenario::built_in().unwrap() {
        if scenario
            .truth
            .measure
            .get(1)
            .is_some_and(|verb| verb == "check")
        {
            continue;
        }
        count += 1;
        let started = Instant::now();
        let output = Command::new(common::PLUMB)
            .args(["lab", "verify", &scenario.name])
            .output()
            .unwrap();
        let took = started.elapsed();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !output.status.success() {
            wrong.push(format!(
                "{}: {}{}",
                scenario.name,
                said(&output.stdout),
                said(&output.stderr)
            ));
        }
        if took > LONGEST {
            wrong.push(format!("{} took {took:?}", scenario.name));
        }
    }
    assert!(count >= 1, "there is none");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

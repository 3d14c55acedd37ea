//! Every scenario that comes with plumb is what it says: `plumb lab verify` measures in it and
//! holds what was measured, and what the links recorded, against its truth.
//!
//! Those whose truth is a whole check have tests of their own in `truth.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use plumb_lab::scenario::Scenario;

/// A scenario's own truth test takes no longer, building the network included. A machine that is
/// busy with other things may take twice that.
const LONGEST: Duration = Duration::from_secs(2 * 8);

/// Those that only send a probe now and then leave a machine of two processors time for another one
/// beside them. Whatever fills a link runs alone.
const BESIDE_EACH_OTHER: usize = 2;

/// The verb that a scenario's truth is measured by.
fn verb(scenario: &Scenario) -> &str {
    scenario.truth.measure.get(1).map_or("", String::as_str)
}

/// What `plumb lab verify` has against a scenario.
fn verify(scenario: &Scenario) -> Option<String> {
    let started = Instant::now();
    let output = Command::new(common::PLUMB)
        .args(["lab", "verify", &scenario.name])
        .output()
        .unwrap();
    let took = started.elapsed();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let (out, err) = (said(&output.stdout), said(&output.stderr));
        return Some(format!("{}: {out}{err}", scenario.name));
    }
    (took > LONGEST).then(|| format!("{} took {took:?}", scenario.name))
}

#[test]
fn every_scenario_is_what_it_says() {
    let scenarios = Scenario::built_in().unwrap();
    let measured = scenarios.iter().filter(|s| verb(s) != "check");
    let (light, heavy): (Vec<_>, Vec<_>) = measured.partition(|s| verb(s) == "ping");
    assert!(!light.is_empty() && !heavy.is_empty(), "there is none");

    let waiting = Mutex::new(light.iter());
    let next = || waiting.lock().unwrap().next();
    let worker = || std::iter::from_fn(next).filter_map(|s| verify(s)).collect();
    let mut wrong = std::thread::scope(|scope| {
        let workers = [(); BESIDE_EACH_OTHER].map(|()| scope.spawn(worker));
        let wrong = workers.map(|worker| -> Vec<String> { worker.join().unwrap() });
        wrong.concat()
    });
    wrong.extend(heavy.iter().filter_map(|s| verify(s)));
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        light.len() + heavy.len(),
        wrong.join("\n")
    );
}

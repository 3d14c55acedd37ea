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
use plumb_link::spec::{CellSpec, ChainSpec};

/// A scenario's own truth test takes no longer, building the network included. A machine that is
/// busy with other things may take twice that.
const LONGEST: Duration = Duration::from_secs(2 * 8);

/// How much of the machine a scenario takes, and so how many are measured at a time on two processors.
#[derive(Clone, Copy, PartialEq)]
enum Weight {
    /// It only sends a probe now and then.
    Light = 4,
    /// It fills a line of at most [`SLOW_BPS`].
    Slow = 2,
    /// It fills whatever there is.
    Heavy = 1,
}

/// A line this slow takes a tenth of a processor, its two ends included.
const SLOW_BPS: u64 = 20_000_000;

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

fn weight(scenario: &Scenario) -> Weight {
    if verb(scenario) == "ping" {
        return Weight::Light;
    }
    let goes_only = |way: &str| scenario.truth.measure.iter().any(|word| word == way);
    let (up, down) = (!goes_only("--down"), !goes_only("--up"));
    // What is measured crosses every link, and so the slowest.
    let is_slow = |chain: &ChainSpec| {
        chain.0.iter().any(|named| match &named.cell {
            CellSpec::Shaper(line) => line.rate.is_some_and(|rate| rate.bps() <= SLOW_BPS),
            _ => false,
        })
    };
    let mut links = scenario.links.iter().filter(|link| link.is_emulated());
    match links.any(|link| (!up || is_slow(&link.up)) && (!down || is_slow(&link.down))) {
        true => Weight::Slow,
        false => Weight::Heavy,
    }
}

/// What is wrong with these scenarios, of which some are measured at a time.
fn verify_beside_each_other(scenarios: &[&Scenario], at_a_time: usize) -> Vec<String> {
    let waiting = Mutex::new(scenarios.iter());
    let next = || waiting.lock().unwrap().next();
    let worker = || std::iter::from_fn(next).filter_map(|s| verify(s)).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time).map(|_| scope.spawn(worker)).collect();
        let wrong = workers.into_iter().map(|worker| worker.join().unwrap());
        wrong.collect::<Vec<Vec<String>>>().concat()
    })
}

#[test]
fn every_scenario_is_what_it_says() {
    let scenarios = Scenario::built_in().unwrap();
    let measured = || scenarios.iter().filter(|s| verb(s) != "check");
    let mut wrong = Vec::new();
    for kind in [Weight::Light, Weight::Slow, Weight::Heavy] {
        let of_kind: Vec<_> = measured().filter(|s| weight(s) == kind).collect();
        assert!(of_kind.len() > 5, "too few to be true");
        wrong.extend(verify_beside_each_other(&of_kind, kind as usize));
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        measured().count(),
        wrong.join("\n")
    );
}

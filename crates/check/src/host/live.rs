//! `plumb host --live`: counters as rates, while something else runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use plumb_host::facts::Source;
use plumb_host::rates::{Interval, Rates, read};
use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_net::clock;
use serde_json::Map;

use crate::assembly::{Assembly, Measured};

/// How often the wish to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Reads the counters every `interval` and tells each interval, until there were `count` of them or
/// `stop` is set. Readings are on a schedule; one that comes late does not move the next.
pub fn run(
    command: Vec<String>,
    interval: Duration,
    count: Option<u64>,
    tell: &mut dyn FnMut(&Interval),
    stop: &AtomicBool,
) -> Run {
    let mut assembly = Assembly::here(command);
    let mut source = Source::system();
    let started_ns = clock::monotonic_ns();
    let mut rates = Rates::default();
    rates.take(read(&mut source));
    let mut due_ns = started_ns;
    let step_ns = u64::try_from(interval.as_nanos())
        .unwrap_or(u64::MAX)
        .max(1);
    let mut told = 0;
    while count.is_none_or(|count| told < count) {
        due_ns = due_ns.saturating_add(step_ns);
        if !wait(due_ns, stop) {
            break;
        }
        if let Some(interval) = rates.take(read(&mut source)) {
            told += 1;
            tell(&interval);
        }
    }
    if rates.is_cut() {
        assembly.note("The series hold the last 3600 intervals, the averages all of them.");
    }
    for unread in source.take_unread().into_iter().take(5) {
        assembly.note(format!(
            "{} could not be read: {}.",
            unread.what, unread.why
        ));
    }
    let interval_s = interval.as_secs_f64();
    let (result, series) = rates.finish(interval_s);
    let mut params = Map::new();
    params.insert("interval_s".to_owned(), interval_s.into());
    assembly.add(Measured {
        started_ns,
        duration_s: (clock::monotonic_ns() - started_ns) as f64 / 1e9,
        params,
        outcome: Outcome::HostRates(result),
        series,
    });
    assembly.finish()
}

/// Sleeps until CLOCK_MONOTONIC reaches `due_ns`; false when it is to stop before.
fn wait(due_ns: u64, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(due_ns.saturating_sub(clock::monotonic_ns()));
        if left.is_zero() {
            return true;
        }
        sleep(left.min(LOOK_EVERY));
    }
    false
}

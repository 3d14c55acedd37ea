//! `plumb host --live`: counters as rates, while something else runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use plumb_host::facts::Source;
use plumb_host::rates::{Interval, Rates, Reading, between, read};
use plumb_model::results::Outcome;
use plumb_net::clock;

use crate::conductor::{Conducted, Conductor};
use crate::error::MeasureError;
use crate::progress::Watcher;
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// How often the wish to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Reads the counters every `interval`, `count` times or until it is stopped, and reports each interval.
///
/// # Errors
/// When it was stopped before.
pub fn run(
    command: Vec<String>,
    interval: Duration,
    count: Option<u64>,
    tell: Tell<'_>,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let mut conductor = Conductor::here(command, watcher, stop);
    let mut rates = CounterRates {
        interval,
        count,
        tell,
    };
    conductor.step(&mut rates, 0);
    conductor.finish(Judgement::AsAudited)
}

/// Who is shown each interval.
pub type Tell<'a> = &'a mut dyn FnMut(&Interval);

/// How fast this machine's counters grow.
pub struct CounterRates<'a> {
    interval: Duration,
    count: Option<u64>,
    tell: Tell<'a>,
}

impl Step for CounterRates<'_> {
    fn name(&self) -> String {
        "this machine's counters".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        Ok(watch(self.interval, self.count, self.tell, &session.stop))
    }
}

fn watch(interval: Duration, count: Option<u64>, tell: Tell<'_>, stop: &AtomicBool) -> Yield {
    let mut out = Yield::default();
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
        out.note("The series hold the last 3600 intervals, the averages all of them.");
    }
    for unread in source.take_unread().into_iter().take(5) {
        out.note(format!(
            "{} could not be read: {}.",
            unread.what, unread.why
        ));
    }
    let interval_s = interval.as_secs_f64();
    let (result, series) = rates.finish(interval_s);
    let measured = Measured::until_now(started_ns, Outcome::HostRates(result));
    out.add(measured.set("interval_s", interval_s).with_series(series));
    out
}

/// What grew between two readings.
pub(crate) fn grown(before: Reading, after: Reading) -> Measured {
    let started_ns = before.at_ns;
    let outcome = Outcome::HostRates(between(before, after));
    Measured::until_now(started_ns, outcome)
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

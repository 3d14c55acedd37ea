//! `plumb ping`: round trips, by ICMP or by the responder's UDP echo.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_model::units::human_seconds;
use plumb_probe::{Plan, Probing};

use crate::assembly::{Assembly, Measured};
use crate::error::CheckError;
use crate::probes::{Window, identify};
use crate::watcher::Watcher;

/// How often whoever looks on is told.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Probes until the plan is fulfilled or `stop` is set.
///
/// # Errors
/// When probing cannot begin, or nothing came back.
pub fn run(
    command: Vec<String>,
    plan: Plan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Run, CheckError> {
    let mut assembly = Assembly::begin(command, &plan.name, plan.target.ip());
    let name = plan.name.clone();
    let interval_s = plan.interval.as_secs_f64();
    let size_bytes = plan.size_bytes;
    watcher.step(
        &format!("probing {name}"),
        plan.duration.unwrap_or_default(),
    );
    let probing = Probing::start(plan, Arc::clone(stop))?;
    let progress = probing.progress();
    while !probing.is_finished() {
        sleep(TELL_EVERY);
        let now = progress.read();
        let last = now.last_rtt.map_or_else(
            || "none yet".to_owned(),
            |rtt| human_seconds(rtt.as_secs_f64()),
        );
        watcher.update(&format!(
            "{} sent, {} answered, last {last}",
            now.sent, now.received
        ));
    }
    let log = probing.join();
    let window = Window {
        from_ns: log.started_monotonic_ns,
        to_ns: log.started_monotonic_ns + (log.duration_s * 1e9) as u64 + 1,
    };
    let result = log.result(0.0, f64::INFINITY);
    if result.received == 0 {
        let tried = format!("{} probes", result.protocol.name().to_uppercase());
        return Err(CheckError::Silence {
            name,
            tried,
            notes: log.notes.join(" "),
        });
    }
    for note in &log.notes {
        assembly.note(note);
    }
    let mut params = serde_json::Map::new();
    params.insert("interval_s".to_owned(), interval_s.into());
    params.insert("size_bytes".to_owned(), size_bytes.into());
    identify(&log, window, &mut params);
    assembly.add(Measured {
        started_ns: window.from_ns,
        duration_s: log.duration_s,
        params,
        outcome: Outcome::Ping(result),
        series: BTreeMap::from([("rtt".to_owned(), log.series(0.0, f64::INFINITY))]),
    });
    Ok(assembly.finish())
}

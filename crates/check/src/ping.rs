//! `plumb ping`: round trips, by ICMP or by the responder's UDP echo.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_model::units::human_seconds;
use plumb_probe::{Pace, Plan, Probing, Progress, Sizes};

use crate::assembly::{Assembly, Measured};
use crate::error::{CheckError, Unanswered};
use crate::probes::{Window, identify};
use crate::watcher::Watcher;

/// How often whoever looks on is told.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What a ping learnt.
#[derive(Debug)]
pub struct Pinged {
    /// The Run; also of a far end that did not answer.
    pub run: Run,
    /// Why it does not count as measured: nothing came back.
    pub silence: Option<CheckError>,
}

/// Probes until the plan is fulfilled or `stop` is set.
///
/// # Errors
/// When probing cannot begin.
pub fn run(
    command: Vec<String>,
    plan: Plan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Pinged, CheckError> {
    let mut assembly = Assembly::begin(command, &plan.name, plan.target.ip());
    let name = plan.name.clone();
    let interval_s = plan.interval.as_secs_f64();
    let size_bytes = match plan.sizes {
        Sizes::One(size_bytes) if plan.has_sizes() => Some(size_bytes),
        _ => None,
    };
    let (pace, preload, pattern) = (plan.pace, plan.preload, plan.pattern);
    let trust = plan.trust.clone();
    watcher.step(
        &format!("probing {name}"),
        plan.duration.unwrap_or_default(),
    );
    let (probing, seen) = Probing::watched(plan, Arc::clone(stop))?;
    let progress = probing.progress();
    let mut told_at = Instant::now();
    loop {
        match seen.recv_timeout(TELL_EVERY) {
            Ok(seen) => watcher.probe(&seen),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if told_at.elapsed() >= TELL_EVERY {
            told_at = Instant::now();
            watcher.update(&in_words(progress.read()));
        }
    }
    let log = probing.join();
    let window = Window {
        from_ns: log.started_monotonic_ns,
        to_ns: log.started_monotonic_ns + (log.duration_s * 1e9) as u64 + 1,
    };
    let result = log.result(0.0, f64::INFINITY);
    let silence = (result.received == 0).then(|| {
        CheckError::from(Unanswered {
            name,
            protocol: result.protocol.name().to_owned(),
            sent: result.sent,
            errors: !result.icmp_errors.is_empty(),
            notes: &log.notes,
        })
    });
    for note in &log.notes {
        assembly.note(note);
    }
    let mut params = serde_json::Map::new();
    match pace {
        Pace::Flood => params.insert("flood".to_owned(), true.into()),
        Pace::Schedule | Pace::Answers => params.insert("interval_s".to_owned(), interval_s.into()),
    };
    if pace == Pace::Answers {
        params.insert("adaptive".to_owned(), true.into());
    }
    if preload > 1 {
        params.insert("preload".to_owned(), preload.into());
    }
    if !pattern.bytes().is_empty() {
        params.insert("pattern".to_owned(), pattern.to_string().into());
    }
    if let Some(trust) = trust {
        params.insert("certificates_checked".to_owned(), trust.checks().into());
    }
    if let Some(size_bytes) = size_bytes {
        params.insert("size_bytes".to_owned(), size_bytes.into());
    }
    identify(&log, window, &mut params);
    assembly.add(Measured {
        started_ns: window.from_ns,
        duration_s: log.duration_s,
        params,
        outcome: Outcome::Ping(result),
        series: BTreeMap::from([("rtt".to_owned(), log.series(0.0, f64::INFINITY))]),
    });
    Ok(Pinged {
        run: assembly.finish(),
        silence,
    })
}

fn in_words(now: Progress) -> String {
    let last = now.last_rtt.map_or_else(
        || "none yet".to_owned(),
        |rtt| human_seconds(rtt.as_secs_f64()),
    );
    format!("{} sent, {} answered, last {last}", now.sent, now.received)
}

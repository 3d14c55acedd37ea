//! `plumb ping`: round trips, by ICMP or by the responder's UDP echo.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use plumb_model::context::Context;
use plumb_model::units::human_seconds;
use plumb_probe::{Pace, Plan, Probing, Progress, Sizes};

use crate::error::{MeasureError, Unanswered};
use crate::probes::{Window, identity, whole};
use crate::progress::Watcher;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// How often the watcher is shown how it goes.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Round trips to one target.
pub struct RoundTrips {
    /// How to probe it.
    pub plan: Plan,
}

impl Step for RoundTrips {
    fn name(&self) -> String {
        format!("the round-trip time to {}", self.plan.name)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        probe(self.plan.clone(), session.watcher, &session.stop)
    }
}

/// Probes by that plan.
///
/// # Errors
/// When this host cannot send such probes.
pub(crate) fn probe(
    plan: Plan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Yield, MeasureError> {
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
    let mut measured = whole(&log);
    let seen = measured.outcome.ping();
    let silence = seen.filter(|seen| seen.received == 0).map(|result| {
        MeasureError::from(Unanswered {
            name,
            protocol: result.protocol,
            sent: result.sent,
            errors: !result.icmp_errors.is_empty(),
            notes: &log.notes,
        })
    });
    measured = match pace {
        Pace::Flood => measured.set("flood", true),
        Pace::Schedule => measured.set("interval_s", interval_s),
        Pace::Answers => measured.set("interval_s", interval_s).set("adaptive", true),
    };
    if preload > 1 {
        measured = measured.set("preload", preload);
    }
    if !pattern.bytes().is_empty() {
        measured = measured.set("pattern", pattern.to_string());
    }
    if let Some(trust) = trust {
        measured = measured.set("certificates_checked", trust.checks());
    }
    if let Some(size_bytes) = size_bytes {
        measured = measured.set("size_bytes", size_bytes);
    }
    let context = Context {
        probes: identity(&log, window).into_iter().collect(),
        ..Context::default()
    };
    let rtt = log.series(0.0, f64::INFINITY);
    let series = [("rtt".to_owned(), rtt)].into();
    Ok(Yield {
        shortfall: silence,
        notes: log.notes,
        ..Yield::of(measured.within(context).with_series(series))
    })
}

fn in_words(now: Progress) -> String {
    let last = now.last_rtt.map_or_else(
        || "none yet".to_owned(),
        |rtt| human_seconds(rtt.as_secs_f64()),
    );
    format!("{} sent, {} answered, last {last}", now.sent, now.received)
}

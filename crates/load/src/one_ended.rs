//! Phases with far ends that keep no record for us: what this end saw is all there is.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_net::clock::monotonic_ns;
use plumb_wire::native::control::Start;
use plumb_wire::native::control::report::Report;

use crate::control_client::ClientError;
use crate::outcome::{EndedEarly, PhaseOutcome, has_carried, outcome};
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_watch::{Progress, Watch};
use crate::responsiveness_probes::Foreign;
use crate::streams::Streams;
use crate::traffic::{Done, Traffic, TrafficPlan};

/// Who looks at a phase while it runs.
pub(crate) struct Looks<'a> {
    pub(crate) conductor: &'a mut dyn Conductor,
    pub(crate) progress: &'a dyn Fn(Progress),
    pub(crate) cancel: &'a AtomicBool,
}

/// Streams that have run.
pub(crate) struct Carried {
    pub(crate) local: Done,
    elapsed: Duration,
    started_monotonic_ns: u64,
    /// Whether it ended before its time, or how the far end broke off.
    pub(crate) watched: Result<Option<EndedEarly>, ClientError>,
}

/// Runs streams as a plan says. Between two looks it waits by `wait`, which also says what the far end does; `begun` is
/// called once they run. Where requests are made beside the load, `foreign` makes those on connections of their own.
///
/// # Errors
/// When this machine gives no threads.
pub(crate) fn carry(
    name: &str,
    streams: Streams,
    foreign: Option<Arc<dyn Foreign>>,
    plan: &PhasePlan,
    looks: Looks<'_>,
    begun: impl FnOnce(),
    mut wait: impl FnMut(Duration) -> Result<(), ClientError>,
) -> Result<Carried, ClientError> {
    let Streams {
        mut incoming,
        mut outgoing,
    } = streams;
    for stream in &mut outgoing {
        stream.set_file(plan.from.clone());
    }
    for stream in &mut incoming {
        stream.set_file(plan.to.clone());
    }
    if let Some(to) = plan.to.as_ref().filter(|_| !incoming.is_empty()) {
        // A device has no length.
        let _ = to.file.set_len(0);
    }
    let started_monotonic_ns = monotonic_ns();
    let carried = TrafficPlan {
        outgoing,
        incoming,
        far: None,
        quic: None,
        byte_limit: plan.byte_limit,
        duration: plan.duration,
        longest: plan.duration,
    };
    let traffic = Traffic::start_with(carried, foreign);
    let traffic = traffic.map_err(|error| ClientError::Local {
        name: name.to_owned(),
        why: error.to_string(),
    })?;
    begun();
    let mut watch = Watch::begin(
        &traffic,
        plan,
        looks.conductor,
        looks.progress,
        looks.cancel,
    );
    let watched = loop {
        if let Err(error) = wait(watch.until_next()) {
            break Err(error);
        }
        if let ControlFlow::Break(early) = watch.look() {
            break Ok(early);
        }
    };
    let elapsed = traffic.elapsed().min(plan.duration);
    if watched.is_err() {
        traffic.abandon();
    }
    Ok(Carried {
        local: traffic.finish(),
        elapsed,
        started_monotonic_ns,
        watched,
    })
}

/// Why the first stream ended that did not go on to the end.
fn first_end(report: &Report) -> Option<&str> {
    let sent = report.senders.iter().map(|log| &log.tail.ended);
    let received = report.receivers.iter().map(|log| &log.tail.ended);
    let ended = sent.chain(received).flatten().next()?;
    Some(&ended.error)
}

/// What a phase came to, with the far end's `record` of it where it has one.
///
/// # Errors
/// What the far end broke off with, where nothing had been carried by then.
pub(crate) fn conclude(
    name: &str,
    plan: &PhasePlan,
    carried: Carried,
    record: Option<Report>,
) -> Result<PhaseOutcome, ClientError> {
    let (early, lost) = match carried.watched {
        Ok(Some(EndedEarly::StreamsFailed)) if !has_carried(&carried.local) => {
            let why = first_end(&carried.local.report);
            return Err(ClientError::Web {
                name: name.to_owned(),
                why: why.unwrap_or("the server carried nothing").to_owned(),
            });
        }
        Ok(early) => (early, None),
        Err(error) if has_carried(&carried.local) => {
            (Some(EndedEarly::FarEndLost), Some(error.to_string()))
        }
        Err(error) => return Err(error),
    };
    let start = Start {
        phase: 1,
        flows: plan.flows.clone(),
        duration_s: plan.duration.as_secs_f64(),
        byte_limit: plan.byte_limit,
    };
    let elapsed_s = carried.elapsed.as_secs_f64();
    let outcome = outcome(
        carried.local,
        record,
        &start,
        elapsed_s,
        early,
        &[None, None],
    );
    Ok(PhaseOutcome {
        started_monotonic_ns: carried.started_monotonic_ns,
        lost,
        ..outcome
    })
}

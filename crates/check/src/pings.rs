//! `plumb ping` with many targets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use plumb_model::results::pings::{PingsResult, Spread, TargetRoundTrips};
use plumb_model::results::{Outcome, ProbeProtocol};
use plumb_probe::many::{ManyLog, ManyPlan, ManyProbing, ManySeen, Tally};

use crate::assembly::{Assembly, Measured};
use crate::error::{CheckError, Unanswered};
use crate::ping::Pinged;

/// How often the end is looked for while nothing is told.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Targets by the names that the user gave.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// What is probed: name and address.
    pub found: Vec<(String, SocketAddr)>,
    /// Names that could not be looked up.
    pub unresolved: Vec<String>,
}

/// Who is told of each probe as soon as it is known what became of it.
pub type Tell<'a> = &'a mut dyn FnMut(ManySeen);

/// Probes until the plan is fulfilled or `stop` is set.
///
/// # Errors
/// When probing cannot begin.
pub fn run(
    command: Vec<String>,
    plan: ManyPlan,
    targets: Targets,
    tell: Option<Tell<'_>>,
    stop: &Arc<AtomicBool>,
) -> Result<Pinged, CheckError> {
    let name = format!("{} targets", targets.found.len());
    let mut assembly = Assembly::begin(command, &name, None);
    let mut params = serde_json::Map::new();
    params.insert("period_s".to_owned(), plan.period.as_secs_f64().into());
    if plan.has_sizes() {
        params.insert("size_bytes".to_owned(), plan.size_bytes.into());
    }
    if !plan.pattern.bytes().is_empty() {
        params.insert("pattern".to_owned(), plan.pattern.to_string().into());
    }
    if let Some(trust) = &plan.trust {
        params.insert("certificates_checked".to_owned(), trust.checks().into());
    }
    let protocol = plan.protocol;
    params.insert("timeout_s".to_owned(), plan.timeout.as_secs_f64().into());
    let asked_pps = plan.pps;
    let (sender, seen) = mpsc::channel();
    let probing = ManyProbing::start(plan, Arc::clone(stop), tell.is_some().then_some(sender))?;
    if let Some(tell) = tell {
        loop {
            match seen.recv_timeout(LOOK_EVERY) {
                Ok(seen) => tell(seen),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
    let log = probing.join();
    for note in &log.notes {
        assembly.note(note);
    }
    let (started_ns, duration_s) = (log.started_monotonic_ns, log.duration_s);
    let mut notes = log.notes.clone();
    let result = result(log, targets, protocol, asked_pps);
    let one = result
        .targets
        .iter()
        .find_map(|target| target.error.as_ref());
    let new = one.filter(|why| !notes.contains(why));
    notes.extend(new.map(|why| format!("one of them: {why}")));
    let silence = (result.received == 0).then(|| {
        CheckError::from(Unanswered {
            name,
            protocol: protocol.name().to_owned(),
            sent: result.sent,
            errors: one.is_some(),
            notes: &notes,
        })
    });
    assembly.add(Measured {
        started_ns,
        duration_s,
        params,
        outcome: Outcome::Pings(Box::new(result)),
        series: BTreeMap::new(),
    });
    Ok(Pinged {
        run: assembly.finish(),
        silence,
    })
}

fn result(log: ManyLog, targets: Targets, protocol: ProbeProtocol, asked_pps: f64) -> PingsResult {
    let sum = |of: fn(&Tally) -> u64| log.tallies.iter().map(of).sum::<u64>();
    let (sent, received) = (sum(|t| t.sent), sum(|t| t.received));
    PingsResult {
        protocol,
        asked_pps,
        // The gaps between the packets are one less than these.
        sent_pps: match log.sending_s {
            time if time > 0.0 => sent.saturating_sub(1) as f64 / time,
            _ => 0.0,
        },
        sent,
        received,
        loss_ratio: share(sent - received, sent),
        answering: sum(|t| u64::from(t.received > 0)),
        answers: log.answers,
        strays: log.strays,
        dropped_here: log.dropped_here,
        rtt_s: log.rtt_s,
        lateness_s: log.lateness_s,
        timestamps: log.timestamps,
        unresolved: targets.unresolved,
        targets: targets
            .found
            .into_iter()
            .zip(&log.tallies)
            .map(|((name, address), tally)| of_target(name, address, tally))
            .collect(),
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn of_target(name: String, address: SocketAddr, tally: &Tally) -> TargetRoundTrips {
    let spread = || {
        Some(Spread {
            min: tally.min_ns as f64 / 1e9,
            mean: tally.mean_s()?,
            max: tally.max_ns as f64 / 1e9,
            stddev: tally.stddev_s()?,
        })
    };
    TargetRoundTrips {
        name,
        address: address.ip().to_string(),
        sent: tally.sent,
        received: tally.received,
        loss_ratio: share(tally.sent - tally.received, tally.sent),
        duplicates: tally.duplicates,
        reordered: tally.reordered,
        late: tally.late,
        send_errors: tally.refused,
        rtt_s: spread(),
        answer: tally.said.map(|said| said.to_string()),
        error: tally.error.as_deref().map(str::to_owned),
    }
}

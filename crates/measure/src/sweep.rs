//! `plumb ping` with many targets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use plumb_model::results::sweep::{PingsResult, Spread, TargetRoundTrips};
use plumb_probe::sweep::{ManyLog, ManyPlan, ManyProbing, ManySeen, Tally};
use serde_json::{Map, Value};

use crate::conductor::{Conducted, Conductor};
use crate::error::{MeasureError, Unanswered};
use crate::progress::Watcher;
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// How often the end is looked for while no outcome is reported.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Targets by the names that the user gave.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// What is probed: name and address.
    pub found: Vec<(String, SocketAddr)>,
    /// Names that could not be looked up.
    pub unresolved: Vec<String>,
}

/// Called with the outcome of each probe as soon as that is known.
pub type Tell<'a> = &'a mut dyn FnMut(ManySeen);

/// Probes many targets by the plan, and reports the outcome of each probe.
///
/// # Errors
/// When no probe can be sent. Where nothing came back, that is the shortfall.
pub fn run(
    command: Vec<String>,
    plan: ManyPlan,
    targets: Targets,
    tell: Option<Tell<'_>>,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let name = format!("{} targets", targets.found.len());
    let mut conductor = Conductor::towards(command, &name, None, watcher, stop);
    let mut sweep = Sweep {
        name,
        plan,
        targets,
        tell,
    };
    conductor.step(&mut sweep, 0);
    conductor.finish(Judgement::AsAudited)
}

/// Round trips to many targets, on one schedule.
pub struct Sweep<'a> {
    name: String,
    plan: ManyPlan,
    targets: Targets,
    tell: Option<Tell<'a>>,
}

impl Step for Sweep<'_> {
    fn name(&self) -> String {
        format!("the round-trip time to {}", self.name)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let (plan, targets) = (self.plan.clone(), self.targets.clone());
        sweep(
            self.name.clone(),
            plan,
            targets,
            self.tell.as_mut(),
            session,
        )
    }
}

fn sweep(
    name: String,
    plan: ManyPlan,
    targets: Targets,
    tell: Option<&mut Tell<'_>>,
    session: &Session<'_>,
) -> Result<Yield, MeasureError> {
    let settings = settings(&plan);
    let protocol = plan.protocol;
    let asked_pps = plan.pps;
    let (sender, seen) = mpsc::channel();
    let probing = ManyProbing::start(
        plan,
        Arc::clone(&session.stop),
        tell.is_some().then_some(sender),
    )?;
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
    let (started_ns, duration_s) = (log.started_monotonic_ns, log.duration_s);
    let mut said = log.notes.clone();
    let mut notes = said.clone();
    let result = result(log, targets, protocol, asked_pps);
    if result.corrupted > 0 {
        said.push(format!(
            "Up to {} answers came with a wrong checksum: the path corrupts packets; the kernel discards them, and they count as lost.",
            result.corrupted
        ));
    }
    let one = result
        .targets
        .iter()
        .find_map(|target| target.error.as_ref());
    let new = one.filter(|why| !notes.contains(why));
    notes.extend(new.map(|why| format!("one of them: {why}")));
    let silence = (result.received == 0).then(|| {
        MeasureError::from(Unanswered {
            name,
            protocol,
            sent: result.sent,
            errors: one.is_some(),
            notes: &notes,
        })
    });
    let outcome = Outcome::Pings(Box::new(result));
    Ok(Yield {
        shortfall: silence,
        notes: said,
        ..Yield::of(Measured {
            settings,
            ..Measured::of(started_ns, duration_s, outcome)
        })
    })
}

/// What was asked for besides the targets.
fn settings(plan: &ManyPlan) -> Map<String, Value> {
    let mut settings = Map::new();
    let mut set = |name: &str, value: Value| settings.insert(name.to_owned(), value);
    set("period_s", plan.period.as_secs_f64().into());
    if plan.has_sizes() {
        set("size_bytes", plan.size_bytes.into());
    }
    if !plan.pattern.bytes().is_empty() {
        set("pattern", plan.pattern.to_string().into());
    }
    if let Some(trust) = &plan.trust {
        set("certificates_checked", trust.checks().into());
    }
    set("timeout_s", plan.timeout.as_secs_f64().into());
    settings
}

fn result(log: ManyLog, targets: Targets, protocol: Protocol, asked_pps: f64) -> PingsResult {
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
        dropped_here: log.drops.full,
        corrupted: log.drops.corrupted.min(sent - received),
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

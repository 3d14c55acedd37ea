//! `plumb check` against a native responder: idle, up, down, both.
//!
//! Both probe streams run throughout. Between phases the sockets are aborted, and the next phase
//! waits until the queue has emptied, so that each phase meets the path as it is.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_load::client::Client;
use plumb_model::distribution::Distribution;
use plumb_model::results::{Direction, Outcome, PingResult};
use plumb_model::run::Run;
use plumb_model::units::{ByteCount, human_seconds, si};
use plumb_net::clock;

use crate::assembly::{Assembly, Measured};
use crate::budget::Budget;
use crate::error::CheckError;
use crate::phase::{Phase, PhaseSpec};
use crate::probes::{ProbeLogs, Probes, Window, identify, result, window_series};
use crate::watcher::Watcher;

/// How long the idle path is watched: 250 round trips, and longer than the second that Wi-Fi's
/// power saving takes to end.
const IDLE: Duration = Duration::from_secs(5);

/// The same after the load, to see that the path has recovered.
const AFTER: Duration = Duration::from_secs(2);

/// Longest wait for a queue to empty: several times what any queue holds.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// A queue counts as empty when so many looks in a row, [`LOOK_EVERY`] apart, saw round trips of
/// no more than [`EMPTY_ABOVE_IDLE`] over the idle p95.
const EMPTY_LOOKS: u32 = 5;
const LOOK_EVERY: Duration = Duration::from_millis(50);
const EMPTY_ABOVE_IDLE: Duration = Duration::from_millis(5);

/// What to check, and how far to go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The far end as the user typed it.
    pub name: String,
    /// The address used for it.
    pub address: IpAddr,
    /// The verb and its arguments, for the Run.
    pub command: Vec<String>,
    /// Load phases, in order.
    pub directions: Vec<Direction>,
    /// How long each phase lasts.
    pub phase: Duration,
    /// Streams each way.
    pub streams: u32,
    /// Congestion control; CUBIC when absent.
    pub cc: Option<String>,
    /// The most payload that may be transferred.
    pub budget: ByteCount,
    /// Whether the Run ends in findings and a verdict.
    pub judge: bool,
}

/// The phases of a check, and of the RRUL test among them.
pub const CHECK_DIRECTIONS: [Direction; 3] = [Direction::Up, Direction::Down, Direction::Both];

/// How long each phase of a check lasts: a queue of 700 ms takes CUBIC ten seconds to fill.
pub const PHASE: Duration = Duration::from_secs(15);

/// Streams each way, as RRUL has them.
pub const STREAMS: u32 = 4;

/// Measures everything that a responder lets be measured.
///
/// `cancel` ends it early; what was measured until then is kept.
///
/// # Errors
/// When the responder goes away, or nothing comes back.
pub fn run(
    mut client: Client,
    plan: &Plan,
    watcher: &dyn Watcher,
    cancel: &Arc<AtomicBool>,
) -> Result<Run, CheckError> {
    let mut assembly = Assembly::begin(plan.command.clone(), &plan.name, plan.address);
    assembly.far_host(client.welcome().host.clone());
    let stop = Arc::new(AtomicBool::new(false));
    // Whatever goes wrong from here on, the probes end.
    let _stop = StopOnDrop(Arc::clone(&stop));
    let probes = Probes::start(&plan.name, plan.address, client.welcome().udp_port, &stop)?;
    for note in &probes.notes {
        assembly.note(note);
    }

    watcher.step("idle", IDLE);
    let from = clock::monotonic_ns();
    wait(IDLE, &probes, watcher, cancel);
    let idle = Window::until_now(from);
    let idle_rtt = probes.last_rtt().unwrap_or_default();

    let mut phases = Vec::new();
    let mut drains = Vec::new();
    let mut budget = Budget::new(plan.budget);
    for (number, direction) in plan.directions.iter().enumerate() {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let later = plan
            .directions
            .iter()
            .skip(number + 1)
            .map(|d| weight(*d))
            .sum();
        let share = budget.share(weight(*direction), later);
        let spec = PhaseSpec {
            direction: *direction,
            streams: plan.streams,
            duration: plan.phase,
            byte_limit: Some(share),
            cc: plan.cc.clone(),
        };
        let phase = Phase::run(&mut client, spec, watcher, cancel)?;
        budget.spend(phase.bytes());
        drains.push(drain(&probes, idle_rtt, watcher, cancel));
        phases.push(phase);
    }

    watcher.step("after", AFTER);
    let from = clock::monotonic_ns();
    wait(AFTER, &probes, watcher, cancel);
    let after = Window::until_now(from);
    let logs = probes.finish();

    let idle_ping = logs
        .main(idle)
        .ok_or_else(|| match cancel.load(Ordering::Relaxed) {
            true => CheckError::Cancelled,
            false => CheckError::Silence {
                name: plan.name.clone(),
            },
        })?;
    record_ping(&mut assembly, &logs, idle, "idle");
    for (phase, drained) in phases.iter().zip(&drains) {
        phase.record_rates(&mut assembly);
        phase.record_latency(&mut assembly, &logs, &idle_ping, *drained);
    }
    record_ping(&mut assembly, &logs, after, "after");
    note_what_matters(&mut assembly, &logs, &idle_ping, cancel);
    Ok(if plan.judge {
        assembly.judge()
    } else {
        assembly.finish()
    })
}

/// About how much a plan may transfer, for those who pay for it.
pub fn announcement(plan: &Plan) -> String {
    let seconds =
        plan.phase.as_secs_f64() * plan.directions.len() as f64 + (IDLE + AFTER).as_secs_f64();
    format!(
        "about {:.0} s against {}; it may transfer up to {} (--budget changes that)",
        seconds,
        plan.name,
        si(plan.budget.bytes() as f64, "B")
    )
}

/// Both ways at once carries as much as the two alone.
fn weight(direction: Direction) -> u64 {
    match direction {
        Direction::Both => 2,
        Direction::Up | Direction::Down => 1,
    }
}

fn wait(time: Duration, probes: &Probes, watcher: &dyn Watcher, cancel: &AtomicBool) {
    let end = Instant::now() + time;
    while Instant::now() < end && !cancel.load(Ordering::Relaxed) {
        sleep(LOOK_EVERY);
        if let Some(rtt) = probes.last_rtt() {
            watcher.update(&format!("round trip {}", human_seconds(rtt.as_secs_f64())));
        }
    }
}

/// Waits until round trips are those of the idle path again; how long that took, if it was seen.
fn drain(
    probes: &Probes,
    idle_rtt: Duration,
    watcher: &dyn Watcher,
    cancel: &AtomicBool,
) -> Option<f64> {
    watcher.step("waiting for the queue to empty", Duration::from_secs(1));
    let started = Instant::now();
    let mut looks = 0;
    while started.elapsed() < DRAIN_LIMIT && !cancel.load(Ordering::Relaxed) {
        sleep(LOOK_EVERY);
        let Some(rtt) = probes.last_rtt() else {
            continue;
        };
        looks = if rtt <= idle_rtt + EMPTY_ABOVE_IDLE {
            looks + 1
        } else {
            0
        };
        if looks == EMPTY_LOOKS {
            let took = started.elapsed().saturating_sub(LOOK_EVERY * EMPTY_LOOKS);
            return Some(took.as_secs_f64());
        }
    }
    None
}

/// Adds the round trips of a time without load, one measurement a probe stream.
fn record_ping(assembly: &mut Assembly, logs: &ProbeLogs, window: Window, phase: &str) {
    for log in logs.streams() {
        let mut params = serde_json::Map::new();
        params.insert("phase".to_owned(), phase.into());
        identify(log, window, &mut params);
        assembly.add(Measured {
            started_ns: window.from_ns,
            duration_s: window.seconds(),
            params,
            outcome: Outcome::Ping(result(log, window)),
            series: [("rtt".to_owned(), window_series(log, window))].into(),
        });
    }
}

fn note_what_matters(
    assembly: &mut Assembly,
    logs: &ProbeLogs,
    idle: &PingResult,
    cancel: &AtomicBool,
) {
    /// Lateness of our own probes, in seconds, from which on the machine was too busy to be
    /// trusted with milliseconds.
    const LATE_S: f64 = 0.005;
    for note in logs.notes() {
        assembly.note(note);
    }
    if cancel.load(Ordering::Relaxed) {
        assembly.note("The check was stopped before its end.");
    }
    if let Some(late) = idle
        .lateness_s
        .as_ref()
        .map(|l: &Distribution| l.p95)
        .filter(|late| *late > LATE_S)
    {
        assembly.note(format!(
            "This machine sent probes up to {} late (p95): it was busy.",
            human_seconds(late)
        ));
    }
}

/// Ends the probes when a check ends in an error.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

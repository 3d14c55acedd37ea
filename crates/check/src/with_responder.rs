//! What is measured against a native responder: idle, up, down, both.
//!
//! The probe streams run throughout. Between phases the sockets are aborted, and the next phase
//! waits until the queue has emptied, so that each phase meets the path as it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_host::facts::facts;
use plumb_load::client::Client;
use plumb_load::file::StreamFile;
use plumb_model::distribution::Distribution;
use plumb_model::results::{Direction, PingResult};
use plumb_model::run::{HostFacts, Run};
use plumb_model::units::{ByteCount, human_seconds};
use plumb_net::clock;
use plumb_wire::native::control::Limits;
use plumb_wire::native::control::flow::Flow;

use crate::assembly::Assembly;
use crate::budget::Budget;
use crate::clocks::{Comparison, Incomparable};
use crate::cut_short;
use crate::error::CheckError;
use crate::phase::{Group, Phase, PhaseSpec};
use crate::places;
use crate::probes::{Aim, ProbeLogs, Probes, Window};
use crate::profiles;
use crate::profiles::catalogue::Profile;
use crate::shape::Shape;
use crate::watcher::Watcher;

/// How long the idle path is watched: 250 round trips, and longer than the second that Wi-Fi's
/// power saving takes to end.
pub(crate) const IDLE: Duration = Duration::from_secs(5);

/// The same after the load, to see that the path has recovered.
pub(crate) const AFTER: Duration = Duration::from_secs(2);

/// The same for comparing the clocks alone: 25 exchanges, of which the best counts.
const CLOCKS: Duration = Duration::from_millis(500);

/// Longest wait for a queue to empty: several times what any queue holds.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// A queue counts as empty when so many answers in a row took no more than [`EMPTY_ABOVE_IDLE`]
/// longer than the 95th percentile of the idle path.
const EMPTY_ANSWERS: u32 = 5;
const EMPTY_ABOVE_IDLE: Duration = Duration::from_millis(5);

/// How often the latest answer is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What to check, and how far to go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The far end as the user typed it.
    pub name: String,
    /// The verb and its arguments, for the Run.
    pub command: Vec<String>,
    /// Load phases, in order.
    pub directions: Vec<Direction>,
    /// How long each phase lasts, at the longest.
    pub phase: Duration,
    /// Payload after which each phase ends, in place of its share of the budget.
    pub bytes: Option<ByteCount>,
    /// Whether a phase ends when its rate has become steady.
    pub until_steady: bool,
    /// What uploads send; bytes from memory when absent.
    pub from: Option<StreamFile>,
    /// Where downloads go to; nowhere when absent.
    pub to: Option<StreamFile>,
    /// Streams each way.
    pub groups: Vec<Group>,
    /// Which classes of traffic they belong to.
    pub shape: Shape,
    /// Applications whose traffic goes alone first, and then beside each load phase.
    pub applications: Vec<&'static Profile>,
    /// The most payload that may be transferred.
    pub budget: ByteCount,
    /// Whether round trips are measured too, before, beside and after the load.
    pub latency: bool,
    /// Whether all of the path is judged: then the Run ends in a verdict where nothing was found, too.
    pub judge: bool,
}

/// The phases of a check, and of the RRUL test among them.
pub const CHECK_DIRECTIONS: [Direction; 3] = [Direction::Up, Direction::Down, Direction::Both];

/// How long each phase of a check lasts: a queue of 700 ms takes CUBIC ten seconds to fill.
pub const PHASE: Duration = Duration::from_secs(15);

/// Streams each way, as RRUL has them.
pub const STREAMS: u32 = 4;

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// All of it.
    pub run: Run,
    /// Why it is not all that was asked for, when the responder went away meanwhile.
    pub lost: Option<String>,
}

/// Measures what the plan says.
///
/// `cancel` ends it early; what was measured until then is kept, as it is when the responder
/// goes away after the first phase.
///
/// # Errors
/// When the responder allows less than the plan asks for, or is gone before anything was
/// measured.
pub fn run(
    mut client: Client,
    plan: &Plan,
    watcher: &dyn Watcher,
    cancel: &Arc<AtomicBool>,
) -> Result<Measured, CheckError> {
    let mut assembly = Assembly::begin(plan.command.clone(), &plan.name, client.address().ip());
    assembly.far_host(client.welcome().host.clone());
    plan.keeps_to(&client.welcome().limits)?;
    plan.has_congestion_control(&facts(), "this host")?;
    plan.has_congestion_control(&client.welcome().host, "the far host")?;
    let stop = Arc::new(AtomicBool::new(false));
    // Whatever goes wrong from here on, the probes end.
    let _stop = StopOnDrop(Arc::clone(&stop));
    // The echo is on the port that was dialled, also where a router forwards it.
    let echoes = client.welcome().udp_port.is_some();
    let probes = if plan.latency {
        let (places, silent) = places::find(client.address().ip());
        for note in silent {
            assembly.note(note);
        }
        let aim = Aim {
            name: plan.name.clone(),
            address: client.address(),
            echoes,
            classes: plan.shape.other_classes(plan.streams()),
            places,
        };
        Probes::start(&aim, &stop)
    } else if plan.has_udp() {
        Probes::for_clocks(&plan.name, client.address(), echoes, &stop)
    } else {
        Probes::none()
    };
    let around = |time| if plan.latency { time } else { CLOCKS };
    for note in &probes.notes {
        assembly.note(note);
    }

    let quiet = watch("idle", around(IDLE), &probes, watcher, cancel);
    let (mut phases, mut lost) = (Vec::new(), None);
    let mut budget = Budget::new(plan.budget);
    for (number, direction) in plan.phases().iter().enumerate() {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let later = plan
            .phases()
            .iter()
            .skip(number + 1)
            .flatten()
            .map(|d| weight(*d))
            .sum();
        let direction_of_all = direction.unwrap_or(Direction::Both);
        let sends = direction_of_all != Direction::Down;
        let receives = direction_of_all != Direction::Up;
        let spec = PhaseSpec {
            direction: direction_of_all,
            groups: direction.map_or_else(Vec::new, |_| plan.groups.clone()),
            shape: plan.shape,
            applications: plan.applications.clone(),
            duration: plan.phase,
            byte_limit: Some(match (direction, plan.bytes) {
                (None, _) => budget.left(),
                (Some(_), Some(bytes)) => bytes.bytes(),
                (Some(direction), None) => budget.share(weight(*direction), later),
            }),
            bytes_are_the_goal: direction.is_some() && plan.bytes.is_some(),
            until_steady: direction.is_some() && plan.until_steady,
            from: sends.then(|| plan.from.clone()).flatten(),
            to: receives.then(|| plan.to.clone()).flatten(),
        };
        let name = spec.name();
        match Phase::run(&mut client, spec, watcher, cancel) {
            Ok(phase) => {
                budget.spend(phase.bytes());
                lost = phase.lost().map(str::to_owned);
                if lost.is_some() {
                    phases.push((phase, None));
                    break;
                }
                let drained = drain(&probes, quiet.p95, watcher, cancel);
                phases.push((phase, drained));
            }
            Err(error) if phases.is_empty() => return Err(error.into()),
            Err(error) => {
                assembly.note(format!(
                    "The phase '{name}' and those after it were not measured: {error}."
                ));
                lost = Some(error.to_string());
                break;
            }
        }
    }
    // Nobody is left who would answer.
    let (after, logs) = match &lost {
        None => {
            let after = watch("after", around(AFTER), &probes, watcher, cancel);
            (Some(after), probes.finish())
        }
        Some(_) => (None, probes.abandon()),
    };

    let idle_ping = logs.main(quiet.window).filter(|_| plan.latency);
    if plan.latency {
        logs.record_ping(&mut assembly, quiet.window, "idle");
    }
    if plan.latency && idle_ping.is_none() {
        assembly.note(format!(
            "No round trip came back: neither ICMP nor UDP port {} passes. Latency was not measured; let one of them through the firewalls on the way.",
            client.address().port()
        ));
    }
    let clocks = match logs.udp() {
        Some(log) => Comparison::by(log),
        None => Err(Incomparable::Silence),
    };
    let weights: u64 = plan.phases().iter().flatten().map(|d| weight(*d)).sum();
    let cut_short = plan.phases().into_iter().zip(&phases);
    let cut_short: Vec<_> = cut_short
        .filter_map(|(way, (phase, _))| {
            phase.cut_short(way.map_or(1.0, |way| weight(way) as f64 / weights as f64))
        })
        .collect();
    if let Some(note) = cut_short::note(&cut_short, plan.latency) {
        assembly.note(note);
    }
    for (phase, drained) in &phases {
        phase.record_rates(&mut assembly);
        phase.record_asked(&mut assembly);
        phase.record_quic(&mut assembly);
        phase.record_responsiveness(&mut assembly);
        phase.record_udp(&mut assembly, clocks);
        if let Some(idle) = idle_ping.as_ref().filter(|_| phase.has_load()) {
            phase.note_gentle_loads(&mut assembly);
            phase.record_latency(&mut assembly, &logs, quiet.window, idle, *drained);
        }
    }
    if let Some(after) = after.filter(|_| plan.latency) {
        logs.record_ping(&mut assembly, after.window, "after");
    }
    note_what_matters(&mut assembly, &logs, idle_ping.as_ref(), cancel);
    if phases.is_empty() && idle_ping.is_none() {
        return Err(CheckError::Cancelled);
    }
    let run = if plan.judge {
        assembly.judge()
    } else {
        assembly.with_findings()
    };
    Ok(Measured { run, lost })
}

impl Plan {
    /// How many streams its load has each way.
    fn streams(&self) -> u32 {
        self.groups.iter().map(|group| group.streams).sum()
    }

    /// Whether some of its streams are datagrams.
    fn has_udp(&self) -> bool {
        let is_udp = |group: &Group| matches!(group.flow, Flow::Udp(_));
        !self.applications.is_empty() || self.groups.iter().any(is_udp)
    }

    /// Its phases: the applications alone, where there are some, and then the load each way.
    pub(crate) fn phases(&self) -> Vec<Option<Direction>> {
        let alone = (!self.applications.is_empty()).then_some(None);
        let loaded = self.directions.iter().copied().map(Some);
        alone.into_iter().chain(loaded).collect()
    }

    /// Whether an end has the congestion control that was asked for, as far as it tells.
    fn has_congestion_control(
        &self,
        host: &HostFacts,
        end: &'static str,
    ) -> Result<(), CheckError> {
        let known = &host.congestion_controls;
        let tcp = self.groups.iter().filter_map(|group| match &group.flow {
            Flow::Tcp(tcp) => tcp.cc.as_ref(),
            Flow::Udp(_) | Flow::Quic(_) | Flow::Transactions(_) => None,
        });
        match tcp.into_iter().find(|cc| !known.contains(cc)) {
            Some(cc) if !known.is_empty() => Err(CheckError::CongestionControl {
                name: cc.clone(),
                end,
                known: known.join(", "),
            }),
            _ => Ok(()),
        }
    }

    /// Whether the responder will grant every phase.
    fn keeps_to(&self, limits: &Limits) -> Result<(), CheckError> {
        let name = || self.name.clone();
        let both = self.directions.contains(&Direction::Both);
        let applications = profiles::streams(&self.applications).count() as u32;
        let ways = match self.directions.as_slice() {
            [] => 0,
            _ if both => 2,
            _ => 1,
        };
        let beside = self.shape.beside().map_or(0, |flows| flows.count);
        let streams = self.streams() * ways + applications + beside;
        if streams > limits.max_streams {
            return Err(CheckError::Streams {
                name: name(),
                wanted: streams,
                allowed: limits.max_streams,
            });
        }
        if self.phase.as_secs_f64() > limits.max_duration_s {
            return Err(CheckError::Duration {
                name: name(),
                allowed_s: limits.max_duration_s,
            });
        }
        Ok(())
    }
}

/// Both ways at once carries as much as the two alone.
pub(crate) fn weight(direction: Direction) -> u64 {
    match direction {
        Direction::Both => 2,
        Direction::Up | Direction::Down => 1,
    }
}

/// A time without load.
struct Quiet {
    window: Window,
    /// 95th percentile of the round trips, as far as they were looked at.
    p95: Duration,
}

/// Lets the probes run for a while without load; no time at all where there are none.
fn watch(
    name: &str,
    time: Duration,
    probes: &Probes,
    watcher: &dyn Watcher,
    cancel: &AtomicBool,
) -> Quiet {
    let from = clock::monotonic_ns();
    let mut seen = Vec::new();
    if !probes.is_empty() {
        watcher.step(name, time);
        let end = Instant::now() + time;
        while Instant::now() < end && !cancel.load(Ordering::Relaxed) {
            sleep(LOOK_EVERY);
            if let Some(rtt) = probes.latest().last_rtt {
                seen.push(rtt.as_secs_f64());
                watcher.update(&format!("round trip {}", human_seconds(rtt.as_secs_f64())));
            }
        }
    }
    let p95 = Distribution::of(seen).map_or(0.0, |rtt| rtt.p95);
    Quiet {
        window: Window::until_now(from),
        p95: Duration::from_secs_f64(p95),
    }
}

/// Waits until round trips are those of the idle path again; how long that took, if it was seen.
fn drain(
    probes: &Probes,
    idle_p95: Duration,
    watcher: &dyn Watcher,
    cancel: &AtomicBool,
) -> Option<f64> {
    if probes.is_empty() {
        return None;
    }
    watcher.step("waiting for the queue to empty", Duration::from_secs(1));
    let started = Instant::now();
    let mut counted = probes.latest().received;
    let mut empty = 0;
    let mut empty_since = Duration::ZERO;
    while started.elapsed() < DRAIN_LIMIT && !cancel.load(Ordering::Relaxed) {
        sleep(LOOK_EVERY);
        let latest = probes.latest();
        let Some(rtt) = latest.last_rtt.filter(|_| latest.received > counted) else {
            continue;
        };
        counted = latest.received;
        if rtt > idle_p95 + EMPTY_ABOVE_IDLE {
            empty = 0;
            continue;
        }
        if empty == 0 {
            empty_since = started.elapsed();
        }
        empty += 1;
        if empty == EMPTY_ANSWERS {
            return Some(empty_since.as_secs_f64());
        }
    }
    None
}

fn note_what_matters(
    assembly: &mut Assembly,
    logs: &ProbeLogs,
    idle: Option<&PingResult>,
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
        .and_then(|idle| idle.lateness_s.as_ref())
        .map(|late| late.p95)
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

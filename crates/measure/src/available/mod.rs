//! The highest UDP rate of which no more than 1 % is lost, as the PERT guides find "available
//! bandwidth", and what it says beside the rates of TCP and of an application.
//!
//! First TCP, for its rate; then steps of UDP that [`search`] chooses; then [`compare`] says which
//! of the three is the narrow one.

pub mod compare;
pub mod search;
mod step;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::PhasePlan;
use plumb_load::{Client, ClientError};
use plumb_load::{EndedEarly, PhaseOutcome};
use plumb_model::direction::OneDirection;
use plumb_model::results::available_bandwidth::{AvailableBandwidthResult, SearchEnd};
use plumb_model::results::{Direction, Outcome, ThroughputResult};
use plumb_model::units::{ByteCount, si};
use plumb_net::clock::monotonic_ns;
use plumb_wire::native::control::flow::{Flow, Flows, TcpFlow};

use crate::budget::Budget;
use crate::conductor::{Conducted, Conductor, Went};
use crate::cut_short;
use crate::error::MeasureError;
use crate::far_end::FarEnd;
use crate::phase::{Group, Phase, PhaseSpec};
use crate::progress::Watcher;
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::traffic_classes::Shape;
use crate::yields::Yield;
use search::Search;

/// What a Run calls the method.
const METHOD: &str = "udp-rate-at-1-percent-loss";

/// How long TCP is measured first: slow start is over after two seconds on most paths.
const TCP_TIME: Duration = Duration::from_secs(5);

/// Of what may be transferred in a direction TCP gets one part and the steps so many.
const PARTS_OF_STEPS: u64 = 3;

/// Where TCP got nothing through, the search begins here.
const LEAST_BPS: f64 = 64_000.0;

/// What to search, and how far to go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The far end as the user typed it.
    pub name: String,
    /// The verb and its arguments, for the Run.
    pub command: Vec<String>,
    pub directions: Vec<Direction>,
    /// What TCP is to be.
    pub tcp: TcpFlow,
    /// What an application gets, in bits a second.
    pub application_bps: Option<f64>,
    /// The most payload that may be transferred.
    pub budget: ByteCount,
}

impl Plan {
    /// How much it may transfer and how long it takes, for those who pay for it.
    pub fn announcement(&self) -> String {
        format!(
            "half a minute in each direction against {}, in steps up to the rate at which 1 % is lost; it transfers at most {} (--budget changes that)",
            self.name,
            si(self.budget.bytes() as f64, "B")
        )
    }
}

/// Searches each direction.
///
/// # Errors
/// When the responder refuses, or goes away before anything was measured.
pub fn run(
    responder: Client,
    plan: &Plan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let command = plan.command.clone();
    let conductor = Conductor::with_responder(command, &plan.name, responder, watcher, stop);
    let mut conductor = conductor.within(plan.budget);
    let directions = (plan.directions.iter().copied()).zip((0..plan.directions.len() as u64).rev());
    for (direction, later) in directions {
        if conductor.step(&mut Available { plan, direction }, later) != Went::Recorded {
            break;
        }
    }
    if conductor.session().is_stopped() {
        conductor.note("The search was stopped before its end.");
    }
    conductor.finish(Judgement::AsAudited)
}

/// The highest UDP rate of a direction of which no more than 1 % is lost, and the rate of TCP before it.
pub struct Available<'a> {
    pub plan: &'a Plan,
    pub direction: Direction,
}

impl Step for Available<'_> {
    fn name(&self) -> String {
        format!("the available bandwidth {}", self.direction.name())
    }

    fn needs_responder(&self) -> bool {
        true
    }

    fn weight(&self) -> u64 {
        1
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let (plan, direction) = (self.plan, self.direction);
        let (watcher, stop) = (session.watcher, Arc::clone(&session.stop));
        let stop = &stop;
        let far_end = session.far_end.as_mut();
        let Some(responder) = far_end.and_then(FarEnd::responder_mut) else {
            return Err(MeasureError::Cancelled);
        };
        let mut share = Budget::new(ByteCount::from_bytes(session.share));
        let tcp = tcp(responder, plan, direction, &share, watcher, stop)?;
        share.spend(tcp.bytes());
        let mut out = Yield::default();
        tcp.record_rates(&mut out, &session.local, session.far.as_ref());
        let directions = plan.directions.len() as u64;
        let share_of_tcp = 1.0 / ((PARTS_OF_STEPS + 1) * directions) as f64;
        let cut_short: Vec<_> = tcp.cut_short(share_of_tcp).into_iter().collect();
        out.notes(cut_short::note(&cut_short, false));
        let mut lost = tcp.lost().map(str::to_owned);
        if let (None, Some(carried)) = (&lost, tcp.throughput(direction)) {
            let look: (&dyn Watcher, &AtomicBool) = (watcher, stop);
            lost = steps(responder, plan, carried, &mut share, &mut out, look);
        }
        if let Some(why) = &lost {
            out.note(format!("The rest was not measured: {why}."));
        }
        out.bytes = session.share.saturating_sub(share.left());
        out.shortfall = lost.map(|why| MeasureError::InPart { why });
        Ok(out)
    }
}

fn tcp(
    client: &mut Client,
    plan: &Plan,
    direction: Direction,
    share: &Budget,
    watcher: &dyn Watcher,
    cancel: &AtomicBool,
) -> Result<Phase, MeasureError> {
    let spec = PhaseSpec {
        direction,
        groups: vec![Group {
            streams: 1,
            flow: Flow::Tcp(plan.tcp.clone()),
        }],
        applications: Vec::new(),
        shape: Shape::BestEffort,
        experiment: None,
        duration: TCP_TIME.min(longest(client)),
        byte_limit: Some(share.share(1, PARTS_OF_STEPS)),
        bytes_are_the_goal: false,
        until_steady: false,
        from: None,
        to: None,
    };
    Ok(Phase::run(client, spec, watcher, &|| None, cancel)?)
}

/// Makes the steps of UDP in the direction of `tcp`, and adds what they came to; why the far end is gone,
/// where it is.
fn steps(
    client: &mut Client,
    plan: &Plan,
    tcp: &ThroughputResult,
    share: &mut Budget,
    out: &mut Yield,
    (watcher, cancel): (&dyn Watcher, &AtomicBool),
) -> Option<String> {
    let started_ns = monotonic_ns();
    let tcp_bps = tcp.steady_bps.unwrap_or(tcp.bps);
    let mut search = Search::from_tcp(tcp_bps.max(LEAST_BPS));
    let mut lost = None;
    while let Some(bps) = search.next_bps() {
        let duration = step::duration(bps, longest(client), share.left());
        let bytes = (bps / 8.0 * duration.as_secs_f64()) as u64;
        if bytes > share.left() {
            search.stop(SearchEnd::OutOfBudget);
            break;
        }
        watcher.step(&format!("UDP at {}", si(bps, "bit/s")), duration);
        share.spend(bytes);
        let phase = step_phase(tcp.direction, bps, duration);
        let outcome = match client.run_phase(&phase, &|_| (), cancel) {
            Ok(outcome) => outcome,
            Err(ClientError::Cancelled { .. }) => {
                search.stop(SearchEnd::Cancelled);
                break;
            }
            Err(error) => {
                search.stop(match error {
                    ClientError::Lost { .. } => SearchEnd::FarEndLost,
                    _ => SearchEnd::StepFailed,
                });
                lost = Some(error.to_string());
                break;
            }
        };
        for note in &outcome.notes {
            out.note(note);
        }
        match (outcome.ended_early, step::seen(bps, &outcome)) {
            (None, Some(seen)) => search.record(&seen),
            (Some(EndedEarly::Cancelled), _) => search.stop(SearchEnd::Cancelled),
            (Some(EndedEarly::FarEndLost), _) => {
                search.stop(SearchEnd::FarEndLost);
                lost = outcome.lost;
            }
            _ => {
                out.note(why_no_step(bps, &outcome));
                search.stop(SearchEnd::StepFailed);
            }
        }
    }
    let found = search.finish();
    let known_closely = found.ended == SearchEnd::Found;
    let result = AvailableBandwidthResult {
        direction: tcp.direction,
        method: METHOD.to_owned(),
        bps: found.bps,
        above_bps: found.above_bps,
        at_least_bps: found.at_least_bps,
        ended: found.ended,
        steps: found.steps,
        tcp_bps,
        tcp_limited: tcp.tcp.limited,
        application_bps: plan.application_bps,
        limit: compare::narrow_one(
            plan.application_bps,
            tcp_bps,
            &tcp.tcp.limited,
            (found.bps.or(found.at_least_bps), known_closely),
        ),
    };
    let outcome = Outcome::AvailableBandwidth(Box::new(result));
    out.add(Measured::until_now(started_ns, outcome));
    lost
}

/// What a step is for a responder.
fn step_phase(direction: Direction, bps: f64, duration: Duration) -> PhasePlan {
    let role = match direction {
        Direction::Up => OneDirection::Up,
        Direction::Down | Direction::Both => OneDirection::Down,
    };
    PhasePlan {
        flows: vec![Flows {
            count: 1,
            role,
            flow: Flow::Udp(step::flow(bps)),
        }],
        duration,
        byte_limit: None,
        until_steady: false,
        from: None,
        to: None,
    }
}

/// What is known of a step that shows nothing.
fn why_no_step(bps: f64, outcome: &PhaseOutcome) -> String {
    let error = outcome
        .udp
        .first()
        .and_then(|udp| udp.result.error.as_deref());
    format!(
        "The step of UDP at {} could not be made: {}.",
        si(bps, "bit/s"),
        error.unwrap_or("the record of one end is missing")
    )
}

/// The longest phase that the responder allows.
fn longest(client: &Client) -> Duration {
    Duration::from_secs_f64(client.welcome().limits.max_duration_s.clamp(0.0, 1e6))
}

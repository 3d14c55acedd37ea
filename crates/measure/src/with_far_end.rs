//! The plan of what is measured against a far end that carries load: idle, up, down, both.
//!
//! The probe streams run throughout. Between phases the sockets are aborted, and the next phase waits until the queue
//! has emptied, so that each phase meets an idle path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumb_host::facts::facts;
use plumb_load::Carries;
use plumb_load::file::StreamFile;
use plumb_model::finding::Verdict;
use plumb_model::goal::Asked;
use plumb_model::results::Direction;
use plumb_model::run::{HostFacts, Run};
use plumb_model::units::ByteCount;
use plumb_wire::native::control::Limits;
use plumb_wire::native::control::flow::Flow;

use crate::conductor::{Conducted, Conductor, Went};
use crate::cut_short;
use crate::error::MeasureError;
use crate::experiments;
use crate::far_end::FarEnd;
use crate::host::counted::Counted;
use crate::idle::{IdlePath, Purpose, RecoveredPath};
use crate::mtu;
use crate::parts::Parts;
use crate::phase::{Group, LoadPhase, PhaseSpec};
use crate::probes::Aim;
use crate::profiles;
use crate::profiles::catalogue::Profile;
use crate::progress::Watcher;
use crate::record::Judgement;
use crate::step::Step;
use crate::times::{CLOSING, Times};
use crate::traffic_classes::Shape;

/// What to check, and how far to go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The far end as the user typed it.
    pub name: String,
    /// The verb and its arguments, for the Run.
    pub command: Vec<String>,
    /// Load phases, in order.
    pub directions: Vec<Direction>,
    /// How long its parts last, at the longest.
    pub times: Times,
    /// When all of it has to be over; `None` where nothing limits it.
    pub until: Option<Instant>,
    /// What it was asked for, where it is a check.
    pub asked: Option<Asked>,
    /// Payload after which each phase ends, in place of its share of the budget.
    pub bytes: Option<ByteCount>,
    /// Whether a phase ends when its rate has become steady.
    pub until_steady: bool,
    /// What uploads send; bytes from memory when absent.
    pub from: Option<StreamFile>,
    /// Where downloads go to; nowhere when absent.
    pub to: Option<StreamFile>,
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

/// What must be known of a verdict by the word of a server of others.
const OF_OTHERS: &str = "The far end is a server of others, which may be what is slow: before the line or a provider is blamed, check against \
     a second one in another network. What needs both ends, such as each direction's delay and loss, is not known without `plumb serve` there.";

/// How long the responder may take to answer once more.
const RECONNECT: Duration = Duration::from_secs(5);

/// Streams each way, as RRUL has them.
pub const STREAMS: u32 = 4;

/// Steps of a plan besides its loads.
#[derive(Default)]
pub struct Besides<'s> {
    /// Before any load: what is cheap and harmless.
    pub before: Vec<&'s mut (dyn Step + 's)>,
    /// After all loads and experiments, where there is time.
    pub after: Vec<&'s mut (dyn Step + 's)>,
}

/// Measures what the plan says.
///
/// `stop` ends it early; what was measured until then is kept, as also when the responder goes away.
///
/// # Errors
/// When the responder allows less than the plan asks for, or is gone before anything was
/// measured.
pub fn run(
    far_end: FarEnd,
    plan: &Plan,
    besides: Besides<'_>,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    plan.has_congestion_control(&facts(), "this host")?;
    if let Some(responder) = far_end.responder() {
        plan.keeps_to(&responder.welcome().limits)?;
        plan.has_congestion_control(&responder.welcome().host, "the far host")?;
    }
    let carried = match plan.judge {
        true => plan.for_far_end(far_end.carries()),
        // What was asked for is refused in words.
        false => plan.clone(),
    };
    let plan = &carried;
    let address = far_end.address();
    let responder = far_end.responder();
    let aim = Aim {
        name: plan.name.clone(),
        address,
        // The echo is on the port that was dialled, also where a router forwards it.
        echoes: responder.is_some_and(|far| far.welcome().udp_port.is_some()),
        classes: plan.shape.other_classes(plan.streams()),
        places: Vec::new(),
    };
    let purpose = match plan.latency {
        true => Purpose::Latency(aim),
        false if plan.has_udp() => Purpose::Clocks(aim),
        false => Purpose::None,
    };
    let command = plan.command.clone();
    let conductor = Conductor::with_far_end(command, &plan.name, far_end, watcher, stop);
    let mut conductor = conductor.within(plan.for_loads());
    conductor.asked(plan.asked.clone());
    if plan.judge && conductor.session().has_server() {
        conductor.note(OF_OTHERS);
    }
    conductor.session().deadline = plan.until;
    let mut parts = Parts::new(plan.parts(&besides), plan.until, watcher);
    let mut idle = IdlePath::new(purpose).lasting(plan.times.idle);
    if plan.latency {
        parts.begin();
    }
    match plan.judge {
        true => conductor.step(&mut Counted(&mut idle), 0),
        false => conductor.step(&mut idle, 0),
    };
    let mut phases = plan.load_phases();
    let loads: u64 = phases.iter().map(Step::weight).sum();
    if !besides.before.is_empty() {
        parts.begin();
    }
    conductor.conduct(besides.before, loads);
    // Past a black hole the line can be seen all the same, by segments that pass.
    let fits = plan.judge.then(|| mtu::segment_that_fits(conductor.run()));
    if let Some(bytes) = fits.flatten() {
        phases
            .iter_mut()
            .for_each(|phase| phase.limit_segments(bytes));
        // What the responder reports fills packets, too.
        let session = conductor.session();
        let responder = session.far_end.as_ref().and_then(FarEnd::responder);
        if let Some(Ok(small)) = responder.map(|far| far.with_segments_of(bytes, RECONNECT)) {
            session.far_end = Some(FarEnd::Responder(Box::new(small)));
        }
        conductor.note(format!(
            "The loads used segments of at most {bytes} bytes, because larger packets vanish on this path."
        ));
    }
    let mut all = true;
    let mut kept = plan.for_experiments();
    let mut left = plan.phases();
    for phase in &mut phases {
        // Where one direction at a time leaves something open, that is asked for first, and both at once, which say less, have
        // what time is left.
        if plan.judge && left == [Some(Direction::Both)] {
            conductor.grant(std::mem::take(&mut kept));
            let reserve = |settled| CLOSING + plan.times.room_for_both(settled);
            plan.experiment(&mut conductor, address, phase.weight(), &reserve);
        }
        let time_left = conductor.session().time_left();
        match plan.times.room(&left, time_left) {
            Some(room) => phase.lasts(room),
            None => phase.lasts(Duration::ZERO),
        }
        left.remove(0);
        parts.begin();
        let later: u64 = left.iter().map(|d| plan.weight(*d)).sum();
        let went = match plan.judge {
            true => conductor.step(&mut Counted(phase), later),
            false => conductor.step(phase, later),
        };
        all &= went == Went::Recorded;
    }
    // One of them needs no responder, which may be lost to what is wrong.
    if plan.judge {
        conductor.grant(kept);
        parts.begin();
        plan.experiment(&mut conductor, address, 0, &|_| CLOSING);
    }
    let time = plan.times.after;
    let time_left = conductor.session().time_left();
    let has_time = !time.is_zero() && time_left.is_none_or(|left| left >= time);
    if plan.latency && all && has_time {
        parts.begin();
        conductor.step(&mut RecoveredPath { time }, 0);
    }
    if !besides.after.is_empty() {
        parts.begin();
    }
    conductor.conduct(besides.after, 0);
    let cut_short: Vec<_> = phases.iter().filter_map(LoadPhase::cut_short).collect();
    if let Some(note) = cut_short::note(&cut_short, plan.latency) {
        conductor.note(note);
    }
    if conductor.session().is_stopped() {
        conductor.note("The check was stopped before its end.");
    }
    let mut conducted = conductor.finish(match plan.judge {
        true => Judgement::Whole,
        false => Judgement::Part,
    })?;
    if plan.latency && !has_loaded_latency(&conducted.run) && conducted.run.verdict.is_none() {
        let headline = cut_short::without_latency(&cut_short);
        conducted.run.verdict = headline.map(Verdict::of_a_part);
    }
    let why = conducted.shortfall.as_ref().filter(|_| !all);
    if let (Some(verdict), Some(why)) = (&mut conducted.run.verdict, why) {
        plumb_diagnose::without_load(verdict, &format!("the load failed ({why})"));
    }
    Ok(conducted)
}

/// Whether round trips were measured while the path was loaded.
fn has_loaded_latency(run: &Run) -> bool {
    let mut outcomes = run.measurements.iter().map(|m| &m.outcome);
    outcomes.any(|outcome| outcome.loaded_latency().is_some())
}

impl Plan {
    /// The same, as far as a far end carries it.
    fn for_far_end(&self, carries: Carries) -> Self {
        let mut this = self.clone();
        this.directions.retain(|direction| carries.has(*direction));
        for group in &mut this.groups {
            group.streams = group.streams.min(carries.streams);
        }
        this
    }

    /// How long each part is to last, in order; no time at all where that is not known beforehand.
    fn parts(&self, besides: &Besides<'_>) -> Vec<Duration> {
        let when = |is: bool, time: Duration| is.then_some(time);
        let before = [
            when(self.latency, self.times.idle),
            when(!besides.before.is_empty(), Duration::ZERO),
        ];
        let loads = self.phases().into_iter();
        let loads = loads.map(|direction| Some(self.times.of_phase(direction)));
        let after = [
            when(self.judge, Duration::ZERO),
            when(
                self.latency && !self.times.after.is_zero(),
                self.times.after,
            ),
            when(!besides.after.is_empty(), Duration::ZERO),
        ];
        let all = before.into_iter().chain(loads).chain(after);
        all.flatten().collect()
    }

    /// Conducts experiments; what is to come besides weighs `later` and takes `reserve`, by whether nothing is left open.
    fn experiment(
        &self,
        conductor: &mut Conductor<'_>,
        address: SocketAddr,
        later: u64,
        reserve: &dyn Fn(bool) -> Duration,
    ) {
        let usual = Instant::now() + self.times.experiments;
        let until = |settled| {
            let until = self
                .until
                .and_then(|until| until.checked_sub(reserve(settled)));
            until.map_or(usual, |until| until.min(usual))
        };
        let tcp = self.groups.first().map(|group| &group.flow);
        experiments::conduct(conductor, &self.name, address, tcp, later, &until);
        conductor.session().deadline = self.until;
    }

    /// The part of the budget that is kept for experiments.
    fn for_experiments(&self) -> ByteCount {
        match self.judge {
            true => ByteCount::from_bytes(self.budget.bytes() / experiments::BUDGET_PARTS),
            false => ByteCount::from_bytes(0),
        }
    }

    /// The part of the budget that the load phases share.
    pub(crate) fn for_loads(&self) -> ByteCount {
        ByteCount::from_bytes(self.budget.bytes() - self.for_experiments().bytes())
    }

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

    /// What a phase weighs for the budget; applications alone keep to their rates.
    fn weight(&self, direction: Option<Direction>) -> u64 {
        direction.map_or(0, |direction| self.times.weight(direction))
    }

    /// Its phases as steps.
    fn load_phases(&self) -> Vec<LoadPhase> {
        let directions = self.phases();
        let all: u64 = directions.iter().map(|d| self.weight(*d)).sum();
        let step = |direction: Option<Direction>| {
            let weight = self.weight(direction);
            let part = direction.map_or(1.0, |_| weight as f64 / all as f64);
            LoadPhase::new(self.spec(direction), weight, part)
        };
        directions.into_iter().map(step).collect()
    }

    /// The phase that loads a direction; without a direction, the phase of the applications alone.
    pub(crate) fn spec(&self, direction: Option<Direction>) -> PhaseSpec {
        let loaded = direction.unwrap_or(Direction::Both);
        let goal = self.bytes.filter(|_| direction.is_some());
        PhaseSpec {
            direction: loaded,
            groups: direction.map_or_else(Vec::new, |_| self.groups.clone()),
            shape: self.shape,
            experiment: None,
            applications: self.applications.clone(),
            duration: self.times.of_phase(direction),
            byte_limit: goal.map(ByteCount::bytes),
            bytes_are_the_goal: goal.is_some(),
            until_steady: direction.is_some() && self.until_steady,
            from: self.from.clone().filter(|_| loaded != Direction::Down),
            to: self.to.clone().filter(|_| loaded != Direction::Up),
        }
    }

    /// Whether an end has the congestion control that was asked for, as far as it reports that.
    fn has_congestion_control(
        &self,
        host: &HostFacts,
        end: &'static str,
    ) -> Result<(), MeasureError> {
        let known = &host.congestion_controls;
        let tcp = self.groups.iter().filter_map(|group| group.flow.tcp());
        let tcp = tcp.filter_map(|tcp| tcp.cc.as_ref());
        match tcp.into_iter().find(|cc| !known.contains(cc)) {
            Some(cc) if !known.is_empty() => Err(MeasureError::CongestionControl {
                name: cc.clone(),
                end,
                known: known.join(", "),
            }),
            _ => Ok(()),
        }
    }

    /// Whether the responder will grant every phase.
    fn keeps_to(&self, limits: &Limits) -> Result<(), MeasureError> {
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
            return Err(MeasureError::Streams {
                name: name(),
                wanted: streams,
                allowed: limits.max_streams,
            });
        }
        if self.times.phase.as_secs_f64() > limits.max_duration_s {
            return Err(MeasureError::Duration {
                name: name(),
                allowed_s: limits.max_duration_s,
            });
        }
        Ok(())
    }
}

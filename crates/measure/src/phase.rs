//! One load phase: heavy traffic, probes beside it, and the measurements that come of the two.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::DirectionOutcome;
use plumb_load::PhasePlan;
use plumb_load::{ClientError, Peer, Unconducted};
use plumb_load::{EndedEarly, PhaseOutcome};
use plumb_model::results::responsiveness::ResponsivenessResult;
use plumb_model::results::{Direction, Outcome, ThroughputResult};
use plumb_model::run::{Ended, HostFacts, Run};
use plumb_model::series::Series;
use plumb_model::units::{human_seconds, si};
use plumb_net::clock::apart_ns;
use plumb_wire::native::control::flow::Flow;

use crate::bdp::windows;
use crate::cut_short::CutShort;
use crate::probes::Window;
use crate::profiles;
use crate::progress::Watcher;
use crate::record::Measured;
use crate::responsiveness;
use crate::responsiveness::controller::{Controller, Found};
use crate::traffic_classes::Shape;
use crate::yields::Yield;

mod datagrams;
mod latency;
mod spec;
mod step;

pub(crate) use latency::{Plain, plain};
pub(crate) use spec::asked;
pub use spec::{Group, PhaseSpec};
pub use step::LoadPhase;

/// Shorter than this, slow start and the ends' looks 50 ms apart make a rate uncertain.
const RATE_NEEDS_S: f64 = 1.0;

/// Congestion controls that send faster until something is lost.
const LOSS_BASED: [&str; 2] = ["cubic", "reno"];

/// Each stream's rate over time is kept in a phase with no more streams a direction than this: more curves cannot be
/// read, and a Run grows by 2 kB for each and every 15 s.
const MOST_STREAM_SERIES: usize = 8;

/// A load phase that has run.
#[derive(Debug)]
pub struct Phase {
    spec: PhaseSpec,
    outcome: PhaseOutcome,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC when it began, ns.
    apart_ns: i64,
    /// What its conductor found, where it had one, and how round trips a minute were measured.
    responsiveness: Option<Found>,
    rpm_method: &'static str,
}

/// What the first load of a Run in that direction carried in bit/s, without slow start where it was long enough to separate it;
/// `None` without any.
pub fn carried_bps(run: &Run, direction: Direction) -> Option<f64> {
    run.measurements
        .iter()
        .find_map(|measured| match &measured.outcome {
            Outcome::Throughput(carried) if carried.direction == direction => {
                Some(carried.steady_bps.unwrap_or(carried.bps))
            }
            _ => None,
        })
}

impl Phase {
    /// Runs the load; `last_rtt` returns the latest round trip of the probes beside it.
    ///
    /// # Errors
    /// When the responder refuses or goes away.
    pub fn run(
        peer: &mut dyn Peer,
        spec: PhaseSpec,
        watcher: &dyn Watcher,
        last_rtt: &dyn Fn() -> Option<Duration>,
        cancel: &AtomicBool,
    ) -> Result<Self, ClientError> {
        let plan = PhasePlan {
            flows: spec.flows(),
            duration: spec.duration,
            byte_limit: spec.byte_limit,
            until_steady: spec.until_steady,
            from: spec.from.clone(),
            to: spec.to.clone(),
        };
        watcher.step(title(&spec), spec.duration);
        let progress = |p: plumb_load::Progress| {
            if let Some(rtt) = last_rtt() {
                watcher.round_trip(rtt);
            }
            watcher.carried(&p);
        };
        let mut controller = spec.controller();
        let apart_ns = apart_ns();
        let outcome = match &mut controller {
            Some(conductor) => peer.run_phase(&plan, conductor, &progress, cancel)?,
            None => peer.run_phase(&plan, &mut Unconducted, &progress, cancel)?,
        };
        Ok(Self {
            spec,
            outcome,
            apart_ns,
            responsiveness: controller.map(Controller::finish),
            rpm_method: peer.rpm_method(),
        })
    }

    /// The word for it in Runs.
    pub fn name(&self) -> String {
        self.spec.name()
    }

    /// Why the far end went away in it, if it did: there can be no more phases.
    pub fn lost(&self) -> Option<&str> {
        self.outcome.lost.as_deref()
    }

    pub fn window(&self) -> Window {
        let from_ns = self.outcome.started_monotonic_ns;
        Window {
            from_ns,
            to_ns: from_ns + (self.outcome.duration_s * 1e9) as u64,
        }
    }

    /// How short it was where its share of the budget ended it: `share` of the whole of it.
    pub(crate) fn cut_short(&self, share: f64) -> Option<CutShort> {
        self.is_cut_short().then(|| CutShort {
            name: self.spec.phase().name(),
            seconds: self.outcome.duration_s,
            wanted_s: self.spec.duration.as_secs_f64(),
            bytes: self.bytes(),
            share,
        })
    }

    /// Whether what there is to say of its length is said of all such phases together.
    fn is_cut_short(&self) -> bool {
        let by_budget = self.outcome.ended_early == Some(EndedEarly::Budget);
        by_budget && !self.spec.bytes_are_the_goal
    }

    /// Whether there was more than applications alone.
    pub fn has_load(&self) -> bool {
        self.spec.has_load()
    }

    /// Something that was measured from its beginning to its end.
    fn measured(&self, outcome: Outcome, series: BTreeMap<String, Series>) -> Measured {
        let (started_ns, duration_s) = (self.outcome.started_monotonic_ns, self.outcome.duration_s);
        Measured {
            ended: ended(self.outcome.ended_early),
            ..Measured::of(started_ns, duration_s, outcome)
                .within(self.spec.context())
                .with_series(series)
        }
    }

    /// Payload that it carried.
    pub fn bytes(&self) -> u64 {
        [&self.outcome.down, &self.outcome.up]
            .into_iter()
            .flatten()
            .map(|d| d.result.bytes)
            .chain(self.outcome.quic.iter().map(|quic| {
                let sent = quic.result.streams.iter().filter_map(|s| s.sender.as_ref());
                let sent = || sent.map(|s| s.sent_bytes).sum();
                quic.result.bytes.unwrap_or_else(sent)
            }))
            .chain(self.outcome.udp.iter().map(|udp| {
                let sent = udp.result.sender.as_ref().map(|s| s.sent_bytes);
                let came = udp.result.receiver.as_ref().map(|r| r.received_bytes);
                sent.or(came).unwrap_or(0)
            }))
            .chain(self.outcome.transactions.iter().map(|asked| {
                let r = &asked.result;
                r.completed * (r.request_bytes + r.response_bytes)
            }))
            .sum()
    }

    /// Adds how the applications fared that ask over TCP.
    pub fn record_asked(&self, found: &mut Yield) {
        for asked in &self.outcome.transactions {
            let Some(profile) = self.spec.asking_application(&asked.result) else {
                continue;
            };
            let lost = self.lost().is_some();
            let seconds = self.outcome.duration_s;
            let result = profiles::result_of_segments(profile, asked, seconds, lost);
            found.add(self.measured(Outcome::App(Box::new(result)), asked.series.clone()));
        }
    }

    /// Adds what QUIC carried.
    pub fn record_quic(&self, found: &mut Yield) {
        for quic in &self.outcome.quic {
            let dropped = quic.result.streams.iter().filter_map(|s| s.dropped_here);
            let dropped: u64 = dropped.sum();
            if dropped > 0 {
                found.note(format!(
                    "The receiving host of the {}load dropped {dropped} packets or trains of them itself: QUIC took them for lost on the path.",
                    quic.result.direction.name()
                ));
            }
            let corrupted = quic.result.streams.iter().filter_map(|s| s.corrupted);
            let corrupted: u64 = corrupted.sum();
            if corrupted > 0 {
                found.note(format!(
                    "{corrupted} packets came to the receiving host of the {}load with a wrong checksum: the path corrupts packets, which QUIC takes for lost.",
                    quic.result.direction.name()
                ));
            }
            let outcome = Outcome::Quic(Box::new(quic.result.clone()));
            found.add(self.measured(outcome, quic.series.clone()));
        }
    }

    /// What TCP carried in a direction.
    pub fn throughput(&self, direction: Direction) -> Option<&ThroughputResult> {
        let of = match direction {
            Direction::Up => &self.outcome.up,
            Direction::Down | Direction::Both => &self.outcome.down,
        };
        of.as_ref().map(|outcome| &outcome.result)
    }

    /// Adds the rates that it carried, and what one connection could carry between hosts of these facts.
    pub fn record_rates(&self, found: &mut Yield, local: &HostFacts, far: Option<&HostFacts>) {
        for direction in [&self.outcome.down, &self.outcome.up].into_iter().flatten() {
            let mut result = direction.result.clone();
            if self.responsiveness.is_some() {
                // Connections that begin one after the other were not to share alike.
                result.sharing = None;
            }
            let series = self.rate_series(direction);
            found.add(self.measured(result.into(), series));
            // With both directions loaded neither shows what it could carry, one connection alone adds nothing to
            // several, and with a pinned window the ends' settings do not matter.
            if self.spec.direction != Direction::Both
                && self.spec.experiment.is_none()
                && self.spec.kernels_choose_buffers()
                && let Some(windows) = windows(&direction.result, local, far)
            {
                let started_ns = self.outcome.started_monotonic_ns;
                let measured = Measured::of(started_ns, 0.0, Outcome::Tcp(windows));
                found.add(measured.within(self.spec.context()));
            }
        }
        for note in &self.outcome.notes {
            found.note(note);
        }
        if self.outcome.duration_s < RATE_NEEDS_S && !self.is_cut_short() {
            found.note(format!(
                "The phase '{}' lasted {}: slow start, and when the ends looked, make its rates uncertain by more than half.",
                self.spec.name(),
                human_seconds(self.outcome.duration_s)
            ));
        }
        if let Some(note) = self.ended_early() {
            found.note(note);
        }
    }

    /// Notes which loads may have left queues empty, where round trips beside them are to show queues.
    pub fn note_gentle_loads(&self, found: &mut Yield) {
        for direction in [&self.outcome.down, &self.outcome.up].into_iter().flatten() {
            // Those fill every queue there is until it overflows.
            let cc = direction.result.cc.as_str();
            let mut ran = cc.split(", ");
            // The record of the end that sent may be missing.
            if !cc.is_empty() && !ran.all(|cc| LOSS_BASED.contains(&cc)) {
                found.note(format!(
                    "The {}load ran {cc}: a congestion control that is not driven by loss may leave queues empty that CUBIC fills, so bufferbloat may be hidden.",
                    direction.result.direction.name(),
                ));
            }
        }
    }

    /// Adds its round trips a minute, where they were to be measured.
    pub fn record_responsiveness(&self, found: &mut Yield) {
        let (Some(seen), Shape::Responsiveness { interval }) =
            (&self.responsiveness, self.spec.shape)
        else {
            return;
        };
        if seen.broken_connections > 0 {
            found.note(format!(
                "The phase '{}' ended because a loaded connection broke: without the whole load there is no number of round trips a minute.",
                self.spec.name()
            ));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let cpu = self
            .throughput(self.spec.direction)
            .map(|carried| &carried.cpu);
        for note in responsiveness::limits::notes(self.spec.direction, seen, cpu, processors) {
            found.note(note);
        }
        let size = (self.spec.streams(), interval);
        let seconds = self.outcome.duration_s;
        let result = ResponsivenessResult {
            lost: self.outcome.lost.clone(),
            ..responsiveness::result(self.spec.direction, seen, self.rpm_method, size, seconds)
        };
        let series = seen
            .series
            .iter()
            .map(|(name, series)| ((*name).to_owned(), series.clone()))
            .collect();
        found.add(self.measured(Outcome::Responsiveness(Box::new(result)), series));
    }

    /// Why it ended before its time, where that must be known to read the numbers.
    fn ended_early(&self) -> Option<String> {
        let phase = format!(
            "The phase '{}' ended after {}",
            self.spec.name(),
            human_seconds(self.outcome.duration_s)
        );
        let limit = si(self.spec.byte_limit.unwrap_or(0) as f64, "B");
        let (goal, steady) = (self.spec.bytes_are_the_goal, self.spec.until_steady);
        // Of what leaves as datagrams only the sending is counted here, headers and repetitions included.
        let is_tcp = |group: &Group| matches!(group.flow, Flow::Tcp(_));
        let come = match self.spec.direction {
            Direction::Up | Direction::Both if !self.spec.groups.iter().all(is_tcp) => "been sent",
            _ => "arrived",
        };
        match self.outcome.ended_early {
            Some(EndedEarly::Budget) if goal => Some(format!("{phase}: the {limit} had {come}.")),
            // Said of all such phases together.
            Some(EndedEarly::Budget) => None,
            Some(EndedEarly::Steady) if self.responsiveness.is_some() => None,
            None if self.responsiveness.is_some() => Some(format!(
                "{phase}, before its goodput and its responsiveness had both become stable; --duration allows more."
            )),
            Some(EndedEarly::Steady) => Some(format!("{phase}: the rate had become steady.")),
            Some(EndedEarly::SourceEnded) => {
                let name = self
                    .spec
                    .from
                    .as_ref()
                    .map_or("the file", |from| &from.name);
                Some(format!("{phase} with {name}, all of which has arrived."))
            }
            Some(EndedEarly::FarEndLost) => {
                let why = self
                    .outcome
                    .lost
                    .as_deref()
                    .unwrap_or("it is not known why");
                Some(format!(
                    "{phase} because the far end went away ({why}). What this end saw until then is kept, the last seconds of it perhaps without anything arriving; the far end's record is missing."
                ))
            }
            None if steady => Some(format!("{phase} before the rate had become steady.")),
            None if goal => Some(format!("{phase}, before {limit} had {come}.")),
            None | Some(EndedEarly::Cancelled | EndedEarly::StreamsFailed) => None,
        }
    }

    /// What a direction carried over time, and where its streams are few, each by itself too.
    fn rate_series(&self, direction: &DirectionOutcome) -> BTreeMap<String, Series> {
        let mut all = direction.series.clone();
        if self.responsiveness.is_some() {
            all.remove("jain_index");
        }
        if direction.stream_bps.len() <= MOST_STREAM_SERIES {
            let of_streams = direction.stream_bps.iter();
            all.extend(of_streams.map(|(n, series)| (format!("bps_stream{n}"), series.clone())));
        }
        all
    }
}

/// How a phase came to its end, as the Run has it.
pub(crate) fn ended(early: Option<EndedEarly>) -> Ended {
    match early {
        None => Ended::Complete,
        Some(EndedEarly::Budget) => Ended::Budget,
        Some(EndedEarly::Steady) => Ended::Steady,
        Some(EndedEarly::SourceEnded) => Ended::SourceEnded,
        Some(EndedEarly::Cancelled) => Ended::Cancelled,
        Some(EndedEarly::StreamsFailed) => Ended::StreamsFailed,
        Some(EndedEarly::FarEndLost) => Ended::FarEndLost,
    }
}

fn title(spec: &PhaseSpec) -> &'static str {
    match spec.direction {
        _ if spec.groups.is_empty() => "the applications alone",
        Direction::Down => "downloading",
        Direction::Up => "uploading",
        Direction::Both => "both at once",
    }
}

//! One load phase: heavy traffic, probes beside it, and the measurements that come of the two.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use plumb_load::DirectionOutcome;
use plumb_load::client::{Client, ClientError};
use plumb_load::phase::{EndedEarly, PhaseOutcome, PhasePlan};
use plumb_model::grade::{DSLREPORTS, Grade};
use plumb_model::results::{
    ClassLatency, Direction, LoadedLatencyResult, Outcome, Periodic, PingResult, RAMP_S,
    ThroughputResult,
};
use plumb_model::series::Series;
use plumb_model::units::{human_seconds, si};
use plumb_net::clock::apart_ns;

use crate::assembly::{Assembly, Measured};
use crate::beside::{self, Beside};
use crate::periodicity;
use crate::probes::{ProbeLogs, Window, result};
use crate::profiles;
use crate::responsiveness;
use crate::responsiveness::controller::{Controller, Found};
use crate::shape::Shape;
use crate::watcher::Watcher;

mod datagrams;
mod spec;

pub use spec::{Group, PhaseSpec};

/// Shorter than this, a phase is slow start alone and tells nothing of the queue.
const TELLING_S: f64 = RAMP_S;

/// Shorter than this, slow start and the ends' looks 50 ms apart make a rate uncertain.
const RATE_NEEDS_S: f64 = 1.0;

/// Congestion controls that send faster until something is lost.
const LOSS_BASED: [&str; 2] = ["cubic", "reno"];

/// Shorter than this, a phase has not shown a large queue: CUBIC with HyStart takes ten seconds
/// to fill 700 ms.
const CONCLUSIVE_S: f64 = 14.0;

/// Each stream's rate over time is kept in a phase with no more streams a direction than this: more
/// curves than that tell nobody anything, and a Run grows by 2 kB for each and every 15 s.
const MOST_STREAM_SERIES: usize = 8;
/// A load phase that has run.
#[derive(Debug)]
pub struct Phase {
    spec: PhaseSpec,
    outcome: PhaseOutcome,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC when it began, ns.
    apart_ns: i64,
    /// What its conductor found, where it had one.
    responsiveness: Option<Found>,
}

impl Phase {
    /// Runs the load.
    ///
    /// # Errors
    /// When the responder refuses or goes away.
    pub fn run(
        client: &mut Client,
        spec: PhaseSpec,
        watcher: &dyn Watcher,
        cancel: &AtomicBool,
    ) -> Result<Self, ClientError> {
        let loaded = |way: Direction| spec.direction == way || spec.direction == Direction::Both;
        let (down, up) = (loaded(Direction::Down), loaded(Direction::Up));
        let plan = PhasePlan {
            flows: spec.flows(),
            duration: spec.duration,
            byte_limit: spec.byte_limit,
            until_steady: spec.until_steady,
            from: spec.from.clone(),
            to: spec.to.clone(),
        };
        if let Some(to) = &spec.to {
            // A device has no length.
            let _ = to.file.set_len(0);
        }
        watcher.step(title(&spec), spec.duration);
        let progress = |p: plumb_load::phase::Progress| {
            let way = |loaded: bool, name: &str, bps: f64| {
                if loaded {
                    format!("{name} {}  ", si(bps, "bit/s"))
                } else {
                    String::new()
                }
            };
            watcher.update(&(way(down, "down", p.down_bps) + &way(up, "up", p.up_bps)));
            watcher.carried(&p);
        };
        let mut controller = spec.controller();
        let apart_ns = apart_ns();
        let outcome = match &mut controller {
            Some(conductor) => client.run_conducted_phase(&plan, conductor, &progress, cancel)?,
            None => client.run_phase(&plan, &progress, cancel)?,
        };
        Ok(Self {
            spec,
            outcome,
            apart_ns,
            responsiveness: controller.map(Controller::finish),
        })
    }

    /// Why the far end went away in it, if it did: there can be no more phases.
    pub fn lost(&self) -> Option<&str> {
        self.outcome.lost.as_deref()
    }

    /// When it was.
    pub fn window(&self) -> Window {
        let from_ns = self.outcome.started_monotonic_ns;
        Window {
            from_ns,
            to_ns: from_ns + (self.outcome.duration_s * 1e9) as u64,
        }
    }

    /// Whether there was more than applications alone.
    pub fn has_load(&self) -> bool {
        !self.spec.groups.is_empty()
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
    pub fn record_asked(&self, assembly: &mut Assembly) {
        for asked in &self.outcome.transactions {
            let Some(profile) = self.spec.asking_application(&asked.result) else {
                continue;
            };
            let result = profiles::result_of_segments(profile, asked, self.outcome.duration_s);
            assembly.add(Measured {
                started_ns: self.outcome.started_monotonic_ns,
                duration_s: self.outcome.duration_s,
                params: self.spec.params(),
                outcome: Outcome::App(Box::new(result)),
                series: asked.series.clone(),
            });
        }
    }

    /// Adds what QUIC carried.
    pub fn record_quic(&self, assembly: &mut Assembly) {
        for quic in &self.outcome.quic {
            let dropped = quic.result.streams.iter().filter_map(|s| s.dropped_here);
            let dropped: u64 = dropped.sum();
            if dropped > 0 {
                assembly.note(format!(
                    "The receiving host of the {}load dropped {dropped} packets or trains of them itself: QUIC took them for lost on the path.",
                    quic.result.direction.name()
                ));
            }
            assembly.add(Measured {
                started_ns: self.outcome.started_monotonic_ns,
                duration_s: self.outcome.duration_s,
                params: self.spec.params(),
                outcome: Outcome::Quic(Box::new(quic.result.clone())),
                series: quic.series.clone(),
            });
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

    /// Adds the rates that it carried.
    pub fn record_rates(&self, assembly: &mut Assembly) {
        for direction in [&self.outcome.down, &self.outcome.up].into_iter().flatten() {
            let mut result = direction.result.clone();
            if self.responsiveness.is_some() {
                // Connections that begin one after the other were not to share alike.
                result.sharing = None;
            }
            assembly.add(Measured {
                started_ns: self.outcome.started_monotonic_ns,
                duration_s: self.outcome.duration_s,
                params: self.spec.params(),
                outcome: Outcome::Throughput(result),
                series: self.rate_series(direction),
            });
            // With both directions loaded neither shows what it could carry, and with a pinned
            // window the ends' settings do not matter.
            if self.spec.direction != Direction::Both && self.spec.kernels_choose_buffers() {
                assembly.add_windows(
                    &direction.result,
                    self.outcome.started_monotonic_ns,
                    self.spec.params(),
                );
            }
        }
        for note in &self.outcome.notes {
            assembly.note(note);
        }
        if self.outcome.duration_s < RATE_NEEDS_S {
            assembly.note(format!(
                "The phase '{}' lasted {}: slow start, and when the ends looked, make its rates uncertain by more than half.",
                self.spec.name(),
                human_seconds(self.outcome.duration_s)
            ));
        }
        if let Some(note) = self.ended_early() {
            assembly.note(note);
        }
    }

    /// Notes which loads may have left queues empty, where round trips beside them are to tell of queues.
    pub fn note_gentle_loads(&self, assembly: &mut Assembly) {
        for direction in [&self.outcome.down, &self.outcome.up].into_iter().flatten() {
            // Those fill every queue there is until it overflows.
            let cc = direction.result.cc.as_str();
            let mut ran = cc.split(", ");
            // The record of the end that sent may be missing.
            if !cc.is_empty() && !ran.all(|cc| LOSS_BASED.contains(&cc)) {
                assembly.note(format!(
                    "The {}load ran {cc}: a congestion control that is not driven by loss may leave queues empty that CUBIC fills, so bufferbloat may be hidden.",
                    direction.result.direction.name(),
                ));
            }
        }
    }

    /// Adds its round trips a minute, where they were to be measured.
    pub fn record_responsiveness(&self, assembly: &mut Assembly) {
        let (Some(found), Shape::Responsiveness { interval }) =
            (&self.responsiveness, self.spec.shape)
        else {
            return;
        };
        if found.broken_connections > 0 {
            assembly.note(format!(
                "The phase '{}' ended because a loaded connection broke: without the whole load there is no number of round trips a minute.",
                self.spec.name()
            ));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let cpu = self
            .throughput(self.spec.direction)
            .map(|carried| &carried.cpu);
        for note in responsiveness::limits::notes(self.spec.direction, found, cpu, processors) {
            assembly.note(note);
        }
        let size = (self.spec.streams(), interval);
        let seconds = self.outcome.duration_s;
        let result = responsiveness::result(self.spec.direction, found, size, seconds);
        assembly.add(Measured {
            started_ns: self.outcome.started_monotonic_ns,
            duration_s: self.outcome.duration_s,
            params: self.spec.params(),
            outcome: Outcome::Responsiveness(Box::new(result)),
            series: found
                .series
                .iter()
                .map(|(name, series)| ((*name).to_owned(), series.clone()))
                .collect(),
        });
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
        match self.outcome.ended_early {
            Some(EndedEarly::Budget) if goal => Some(format!("{phase}: the {limit} had arrived.")),
            Some(EndedEarly::Budget) => Some(format!(
                "{phase} because its share of the budget ({limit}) was used; --budget allows more."
            )),
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
            None if goal => Some(format!("{phase}, before {limit} had arrived.")),
            None | Some(EndedEarly::Cancelled | EndedEarly::StreamsFailed) => None,
        }
    }

    /// Adds the round trips beside it, held against those of the idle path.
    pub fn record_latency(
        &self,
        assembly: &mut Assembly,
        logs: &ProbeLogs,
        idle_window: Window,
        idle: &PingResult,
        drain_s: Option<f64>,
    ) {
        let window = self.window();
        let name = self.spec.name();
        if window.seconds() < TELLING_S {
            assembly.note(format!(
                "The phase '{name}' lasted {}: too short to say anything of latency under load, or of bufferbloat. Allow more with --budget or --duration.",
                human_seconds(window.seconds())
            ));
            return;
        }
        if window.seconds() < CONCLUSIVE_S {
            assembly.note(format!(
                "The phase '{name}' lasted {}: a large queue takes longer to fill, so latency under load may be worse than measured.",
                human_seconds(window.seconds())
            ));
        }
        // A phase too short to leave its beginning out is judged by its second half.
        let loaded_window = window.after(RAMP_S.min(window.seconds() / 2.0));
        let loaded = logs
            .streams()
            .filter(|log| log.protocol == idle.protocol)
            .map(|log| result(log, loaded_window))
            .next();
        let Some((loaded, rtt, idle_rtt)) = loaded.and_then(|l| {
            let rtt = l.rtt_s?;
            Some((l, rtt, idle.rtt_s?))
        }) else {
            assembly.note(format!(
                "No round trip came back during the phase '{name}': its latency was not measured."
            ));
            return;
        };
        let seen = Beside {
            logs,
            idle_window,
            loaded_window,
        };
        let far_idle_s = idle_rtt.p50;
        let (series, identity) = logs.series(window);
        let mut params = self.spec.params();
        params.extend(identity);
        let bps = |d: &Option<DirectionOutcome>| d.as_ref().map(|d| d.result.bps);
        let classes = self.classes(&seen);
        for note in beside::starved(&classes, name) {
            assembly.note(note);
        }
        let increase_s = rtt.above(idle_rtt.p50);
        let found = self.responsiveness.as_ref();
        let rpm = found.and_then(|found| found.rpm.both());
        let result = LoadedLatencyResult {
            direction: self.spec.direction,
            protocol: loaded.protocol,
            idle_rtt_s: idle_rtt,
            rtt_s: rtt,
            grade: Some(Grade::of_increase(increase_s.p95)),
            grade_table: Some(DSLREPORTS.to_owned()),
            increase_s,
            loss_ratio: loaded.loss_ratio,
            down_bps: bps(&self.outcome.down),
            up_bps: bps(&self.outcome.up),
            rpm,
            rpm_method: rpm.map(|_| responsiveness::METHOD.to_owned()),
            drain_s,
            classes,
            path: seen.path(far_idle_s),
            periodic: self.periodic(&series),
        };
        assembly.add(Measured {
            started_ns: window.from_ns,
            duration_s: window.seconds(),
            params,
            outcome: Outcome::LoadedLatency(result),
            series,
        });
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

    /// What repeats in the round trips and in the rates, slow start left out.
    fn periodic(&self, latency: &BTreeMap<String, Series>) -> Vec<Periodic> {
        let rate = |direction: &'_ Option<DirectionOutcome>| {
            let series = direction.as_ref()?.series.get("bps")?;
            Some(series.clone())
        };
        let rtt = latency.get("rtt").or_else(|| latency.get("rtt_icmp"));
        let all = [
            ("rtt", rtt.cloned()),
            ("down_bps", rate(&self.outcome.down)),
            ("up_bps", rate(&self.outcome.up)),
        ];
        let mut found = Vec::new();
        for (name, series) in all {
            let Some(series) = series else { continue };
            let steady: Vec<_> = series.points().filter(|(t, _)| *t >= RAMP_S).collect();
            found.extend(
                periodicity::find(&steady)
                    .into_iter()
                    .map(|period| Periodic {
                        series: name.to_owned(),
                        of: period.of,
                        period_s: period.period_s,
                        strength_ratio: period.strength_ratio,
                        confidence: period.confidence,
                        times_seen: period.times_seen,
                    }),
            );
        }
        found
    }

    /// What each class got, where there are several.
    fn classes(&self, seen: &Beside<'_>) -> BTreeMap<String, ClassLatency> {
        let classes = self.spec.shape.classes(self.spec.streams());
        if classes.len() < 2 {
            return BTreeMap::new();
        }
        let mut first = 0;
        let mut found = BTreeMap::new();
        for (class, count) in classes {
            // Streams are numbered class after class, alike in both directions.
            let numbers = first..first + count;
            first += count;
            let carried = |direction: &Option<DirectionOutcome>| {
                let streams = &direction.as_ref()?.result.streams;
                let its = streams.iter().filter(|stream| numbers.contains(&stream.id));
                Some(its.map(|stream| stream.bps).sum())
            };
            let latency = ClassLatency {
                down_bps: carried(&self.outcome.down),
                up_bps: carried(&self.outcome.up),
                ..seen.class(class)
            };
            found.insert(class.name.to_owned(), latency);
        }
        found
    }
}

fn title(spec: &PhaseSpec) -> &'static str {
    match spec.direction {
        _ if spec.groups.is_empty() => "the applications alone",
        Direction::Down => "downloading",
        Direction::Up => "uploading",
        Direction::Both => "both ways at once",
    }
}

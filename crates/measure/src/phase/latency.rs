//! Round trips beside a load phase, what they say of queues, and what of each class of traffic.

use std::collections::BTreeMap;

use plumb_diagnose::grade;
use plumb_diagnose::lengths::{LATENCY_S, QUEUE_S};
use plumb_load::DirectionOutcome;
use plumb_model::distribution::Distribution;
use plumb_model::grade::DSLREPORTS;
use plumb_model::protocol::Protocol;
use plumb_model::results::{
    ClassLatency, Direction, LoadedLatencyResult, Outcome, Periodic, ramp_end_s,
};
use plumb_model::series::Series;
use plumb_model::units::human_seconds;

use super::Phase;
use crate::one_way::OneWay;
use crate::periodicity;
use crate::probes::{Answered, ProbeLogs, Window, result};
use crate::side_probes::{self, Beside};
use crate::yields::Yield;

/// Round trips beside a load, of which no more is known.
pub(crate) struct Plain {
    pub(crate) direction: Direction,
    pub(crate) protocol: Protocol,
    pub(crate) idle: Distribution,
    /// Those after slow start.
    pub(crate) rtt: Distribution,
    pub(crate) loss_ratio: f64,
    /// What was carried down and up.
    pub(crate) carried_bps: [Option<f64>; 2],
}

/// What they say by themselves.
pub(crate) fn plain(seen: Plain) -> LoadedLatencyResult {
    let increase_s = seen.rtt.above(seen.idle.p50);
    let [down_bps, up_bps] = seen.carried_bps;
    LoadedLatencyResult {
        direction: seen.direction,
        protocol: seen.protocol,
        idle_rtt_s: seen.idle,
        rtt_s: seen.rtt,
        grade: grade(increase_s.p95, seen.loss_ratio),
        grade_table: Some(DSLREPORTS.to_owned()),
        increase_s,
        loss_ratio: seen.loss_ratio,
        down_bps,
        up_bps,
        rpm: None,
        rpm_method: None,
        one_way: None,
        drain_s: None,
        classes: BTreeMap::new(),
        path: None,
        periodic: Vec::new(),
    }
}

impl Phase {
    /// Adds the round trips beside it, compared with the round trips of the idle path.
    pub fn record_latency(
        &self,
        found: &mut Yield,
        logs: &ProbeLogs,
        idle_window: Window,
        idle: &Answered,
        drain_s: Option<f64>,
    ) {
        let window = self.window();
        let name = self.spec.name();
        if window.seconds() < LATENCY_S && self.is_cut_short() {
            return;
        }
        if window.seconds() < LATENCY_S {
            found.note(format!(
                "The phase '{name}' lasted {}: too short to say anything of latency under load, or of bufferbloat. Allow more with --budget or --duration.",
                human_seconds(window.seconds())
            ));
            return;
        }
        // Each queue was filled by its direction alone.
        let alone = self.spec.direction != Direction::Both;
        if alone && window.seconds() < QUEUE_S && !self.is_cut_short() {
            found.note(format!(
                "Load phases of {:.0} s do not fill a large queue, so latency under load may be worse than measured (--duration 15s).",
                window.seconds()
            ));
        }
        let ramp_end_s = ramp_end_s(idle.rtt_s.min, window.seconds());
        let loaded_window = window.after(ramp_end_s);
        // Probes for which no host was left to answer are not lost on the path.
        let loaded_window = match (self.lost(), logs.last_answer_ns()) {
            (Some(_), Some(last_ns)) => loaded_window.until(last_ns),
            _ => loaded_window,
        };
        let loaded = logs
            .streams()
            .filter(|log| log.protocol == idle.protocol)
            .map(|log| result(log, loaded_window))
            .next();
        let Some((loaded, rtt)) = loaded.and_then(|loaded| {
            let rtt = loaded.rtt_s?;
            Some((loaded, rtt))
        }) else {
            found.note(format!(
                "No round trip came back during the phase '{name}': its latency was not measured."
            ));
            return;
        };
        let seen = Beside {
            logs,
            idle_window,
            loaded_window,
        };
        let idle_rtt = idle.rtt_s;
        let far_idle_s = idle_rtt.p50;
        let (series, probes) = logs.series(window);
        let bps = |d: &Option<DirectionOutcome>| d.as_ref().map(|d| d.result.bps);
        let classes = self.classes(&seen);
        for note in side_probes::starved(&classes, &name) {
            found.note(note);
        }
        // Some were sent, for some came back.
        let loss_ratio = loaded.loss_ratio.unwrap_or_default();
        let responsiveness = self.responsiveness.as_ref();
        let rpm = responsiveness.and_then(|seen| seen.rpm.both());
        let plain = plain(Plain {
            direction: self.spec.direction,
            protocol: loaded.protocol,
            idle: idle_rtt,
            rtt,
            loss_ratio,
            carried_bps: [bps(&self.outcome.down), bps(&self.outcome.up)],
        });
        let result = LoadedLatencyResult {
            grade: plain.grade.filter(|_| self.carried()),
            rpm,
            rpm_method: rpm.map(|_| self.rpm_method.to_owned()),
            one_way: logs
                .udp()
                .and_then(|log| OneWay::of(log)?.waits(log, loaded_window))
                .map(Box::new),
            drain_s,
            classes,
            path: seen.path(far_idle_s),
            periodic: self.periodic(&series, ramp_end_s),
            ..plain
        };
        let mut measured = self.measured(Outcome::LoadedLatency(result), series);
        measured.context.probes = probes;
        found.add(measured);
    }

    /// How much longer than the median of the idle path the probes beside it took, from its beginning on.
    pub(super) fn probe_wait_s(&self, logs: &ProbeLogs, idle: &Answered) -> Option<Distribution> {
        let mut of_main = logs.streams().filter(|log| log.protocol == idle.protocol);
        let seen = result(of_main.next()?, self.window());
        Some(seen.rtt_s?.above(idle.rtt_s.p50))
    }

    /// Whether every direction that was loaded carried something: round trips beside no load have no
    /// grade of latency under load.
    fn carried(&self) -> bool {
        let mut loaded = [&self.outcome.down, &self.outcome.up].into_iter().flatten();
        loaded.all(|direction| direction.result.bytes > 0)
    }

    /// What repeats in the round trips and in the rates, slow start left out.
    fn periodic(&self, latency: &BTreeMap<String, Series>, ramp_end_s: f64) -> Vec<Periodic> {
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
            let steady: Vec<_> = series.points().filter(|(t, _)| *t >= ramp_end_s).collect();
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

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod all_clear;
mod carried;
mod losses;
mod rates;

use plumb_model::context::{self, Context, Phase};
use plumb_model::distribution::Distribution;
use plumb_model::finding::Place;
use plumb_model::run::{Ended, HostFacts, Measurement};
use plumb_model::series::{Series, Unit};
use serde_json::json;

use plumb_model::results::Outcome;

use super::*;
use crate::diagnose;
use crate::testing::measurement;

/// A direction of a load phase.
#[derive(Debug, Clone, Copy)]
struct Load {
    bps: f64,
    /// Share of the segments sent that are retransmitted.
    again: f64,
    /// What TCP's own round trip shows above 20 ms, in seconds.
    queue_s: f64,
    /// Share of the probes beside it that are lost.
    loss: f64,
    seconds: f64,
    network_ratio: f64,
    sndbuf_ratio: f64,
    cc: &'static str,
}

/// Four streams that keep a queue of 8 ms filled, and lose what that takes.
const HEALTHY: Load = Load {
    bps: 50e6,
    again: 0.001,
    queue_s: 0.008,
    loss: 0.0,
    seconds: 15.0,
    network_ratio: 0.95,
    sndbuf_ratio: 0.0,
    cc: "cubic",
};

const ASKED_S: f64 = 15.0;
const STREAMS: u64 = 4;
const MSS: f64 = 1448.0;

#[derive(Debug, Clone, Copy)]
struct Check {
    /// Probes sent and answered while idle.
    idle: [u64; 2],
    up: Load,
    down: Load,
    /// Of each direction, with both loaded.
    both: Load,
    asked_s: f64,
}

const CHECK: Check = Check {
    idle: [250, 250],
    up: HEALTHY,
    down: HEALTHY,
    both: HEALTHY,
    asked_s: ASKED_S,
};

fn constant(unit: Unit, seconds: f64, value: impl Fn(f64) -> f64) -> Series {
    let mut series = Series::new(unit);
    for step in 1..=(seconds * 10.0) as u32 {
        let t = f64::from(step) / 10.0;
        series.push(t, Some(value(t)));
    }
    series
}

fn loaded(phase: Phase, asked_s: f64) -> Context {
    Context {
        load: Some(context::Load {
            duration_s: asked_s,
            ..context::Load::default()
        }),
        ..Context::phase(phase)
    }
}

impl Load {
    fn bytes(self) -> f64 {
        self.bps * self.seconds / 8.0
    }

    fn again_per_s(self) -> f64 {
        let segments = self.bps / 8.0 / MSS;
        segments * self.again / (1.0 - self.again)
    }

    fn throughput(self, direction: &str, phase: &str, asked_s: f64) -> Measurement {
        let again = (self.again_per_s() * self.seconds) as u64;
        let stream =
            |id: u64| json!({"id": id, "bytes": 1, "bps": 1.0, "retransmits": 0, "error": null});
        let result = json!({
            "direction": direction, "protocol": "tcp", "bps": self.bps,
            "steady_bps": (self.seconds >= 4.0).then_some(self.bps), "bytes": self.bytes() as u64,
            "cc": self.cc, "streams": (0..STREAMS).map(stream).collect::<Vec<_>>(),
            "tcp": {
                "retransmits": again, "min_rtt_s": 0.020, "max_srtt_s": 0.020 + self.queue_s,
                "mss_bytes": MSS as u64, "send_buffer_bytes": null, "max_in_flight_bytes": 50_000,
                "limited": {
                    "rwnd_ratio": 0.0, "sndbuf_ratio": self.sndbuf_ratio, "network_ratio": self.network_ratio,
                    "app_ratio": 1.0 - self.network_ratio - self.sndbuf_ratio,
                },
            },
            "tcp_receiver": { "receive_buffer_bytes": null, "max_window_bytes": null },
            "cpu": { "local_ratio": 0.1, "remote_ratio": null },
        });
        let mut measured =
            measurement(Outcome::Throughput(serde_json::from_value(result).unwrap()));
        measured.id = format!("{phase}-{direction}");
        measured.duration_s = self.seconds;
        measured.context = loaded(phase.parse().unwrap(), asked_s);
        if self.seconds < asked_s {
            measured.ended = Ended::Budget;
        }
        let flight = self.bps / 8.0 * (0.020 + self.queue_s);
        let mut add = |name: &str, series| measured.series.insert(name.to_owned(), series);
        add(
            "bps",
            constant(Unit::BitsPerSecond, self.seconds, |_| self.bps),
        );
        add(
            "srtt_s",
            constant(Unit::Seconds, self.seconds, |_| 0.020 + self.queue_s),
        );
        add(
            "in_flight_bytes",
            constant(Unit::Bytes, self.seconds, |_| flight),
        );
        add(
            "retransmits",
            constant(Unit::Count, self.seconds, |t| self.again_per_s() * t),
        );
        measured
    }

    fn latency(self, direction: &str) -> Option<Measurement> {
        let probes = (self.seconds - 2.0) * 50.0;
        let answered = (probes * (1.0 - self.loss)) as usize;
        let rtt = Distribution::of(vec![0.024; answered])?;
        let result = json!({
            "direction": direction, "protocol": "udp", "idle_rtt_s": Distribution::of([0.02; 100]), "rtt_s": rtt,
            "increase_s": rtt.above(0.02), "loss_ratio": self.loss, "grade": (self.loss <= 0.05).then_some("A+"),
            "grade_table": null,
        });
        let mut measured = measurement(Outcome::LoadedLatency(
            serde_json::from_value(result).unwrap(),
        ));
        measured.id = format!("latency-{direction}");
        measured.duration_s = self.seconds;
        (self.seconds >= 2.0).then_some(measured)
    }
}

impl Check {
    fn measurements(self) -> Vec<Measurement> {
        let [sent, received] = self.idle;
        let ping = json!({
            "protocol": "udp", "address": "192.0.2.1", "sent": sent, "received": received,
            "loss_ratio": (sent - received) as f64 / sent.max(1) as f64, "duplicates": 0, "reordered": 0,
            "send_errors": 0, "dropped_here": 0, "rtt_s": Distribution::of(vec![0.02; received as usize]),
            "lateness_s": null, "timestamps": "kernel",
        });
        let mut idle = measurement(Outcome::Ping(serde_json::from_value(ping).unwrap()));
        idle.context.phase = Some(Phase::Idle);
        let mut all = vec![
            idle,
            self.up.throughput("up", "up", self.asked_s),
            self.down.throughput("down", "down", self.asked_s),
            self.both.throughput("up", "both", self.asked_s),
            self.both.throughput("down", "both", self.asked_s),
        ];
        for measured in [
            self.up.latency("up"),
            self.down.latency("down"),
            self.both.latency("both"),
        ]
        .into_iter()
        .flatten()
        {
            all.push(measured);
        }
        all
    }

    fn judged(self) -> (Vec<Finding>, Verdict) {
        judged(&self.measurements(), Scope::Path)
    }

    /// What it comes to, and the one finding.
    fn only_finding(self) -> (Clearance, Finding) {
        let (mut findings, verdict) = self.judged();
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(verdict.latency_grade, None, "{verdict:?}");
        (verdict.clearance.unwrap(), findings.remove(0))
    }
}

fn judged(measurements: &[Measurement], scope: Scope) -> (Vec<Finding>, Verdict) {
    with_case(measurements, |case| diagnose(case, scope))
}

fn with_case<T>(measurements: &[Measurement], judge: impl FnOnce(&Case<'_>) -> T) -> T {
    judge(&Case {
        measurements,
        local: &HostFacts::default(),
        far: None,
        asked: None,
        log: None,
    })
}

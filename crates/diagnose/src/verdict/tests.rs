#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::context::{self, Context, Phase};
use plumb_model::distribution::Distribution;
use plumb_model::finding::Place;
use plumb_model::run::{Ended, HostFacts, Measurement};
use plumb_model::series::{Series, Unit};
use proptest::prelude::*;
use serde_json::json;

use plumb_model::results::Outcome;

use super::*;
use crate::diagnose;
use crate::testing::measurement;

/// A direction of a load phase.
#[derive(Debug, Clone, Copy)]
struct Load {
    bps: f64,
    /// Share of the segments sent that are sent again.
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
    let case = Case {
        measurements,
        local: &HostFacts::default(),
        far: None,
    };
    diagnose(&case, scope)
}

#[test]
fn what_is_measured_and_healthy_is_cleared() {
    let (findings, verdict) = CHECK.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::Cleared), "{verdict:?}");
    assert_eq!(verdict.latency_grade, Some(Grade::APlus));
    assert_eq!(
        verdict.headline,
        "No fault found: 50.0 Mbit/s down and 50.0 Mbit/s up, round trips grow by at most 4.0 ms under load, no probe of the idle path was lost (below 1.9 %)."
    );
}

#[test]
fn a_part_is_never_cleared() {
    let (findings, verdict) = judged(&CHECK.measurements(), Scope::Part);
    assert_eq!((findings, verdict.clearance), (vec![], None));
    assert!(verdict.headline.is_empty() && verdict.not_measured.is_empty());
}

#[test]
fn a_direction_that_carries_nothing_is_the_finding() {
    // Small packets pass, nothing was acknowledged, and the send buffer is full all the time.
    let dead = Load {
        bps: 0.0,
        again: 0.0,
        network_ratio: 0.0,
        sndbuf_ratio: 1.0,
        ..HEALTHY
    };
    let (clearance, finding) = Check { up: dead, ..CHECK }.only_finding();
    assert_eq!(clearance, Clearance::Found);
    assert_eq!(
        (finding.cause, finding.place, finding.severity),
        (Cause::NothingCarried, Place::Uplink, Severity::Critical)
    );
    assert!(
        finding.summary.starts_with(
            "Uploads carry nothing: 0 bytes arrived in 15.00 s, while small packets pass"
        ),
        "{}",
        finding.summary
    );
}

/// A check whose far end fell silent 4.7 s into an upload of 8 s; whether probes still came back then.
fn fallen_silent(answered: bool) -> Vec<Measurement> {
    let up = Load {
        seconds: 8.0,
        ..HEALTHY
    };
    let mut measured = Check { up, ..CHECK }.measurements();
    measured.retain(|m| ["m1", "up-up", "latency-up"].contains(&m.id.as_str()));
    for measurement in &mut measured[1..] {
        measurement.ended = Ended::FarEndLost;
    }
    let passes = |t: f64| if t <= 4.7 { 50e6 } else { 0.0 };
    let bps = constant(Unit::BitsPerSecond, 8.0, passes);
    measured[1].series.insert("bps".to_owned(), bps);
    let mut rtt = constant(Unit::Seconds, 8.0, |_| 0.024);
    let lost = rtt.t_s.iter().zip(&mut rtt.values);
    let lost = lost.filter(|(t, _)| **t > 4.7 && !answered);
    lost.for_each(|(_, value)| *value = None);
    measured[2].series.insert("rtt".to_owned(), rtt);
    measured
}

#[test]
fn a_path_that_stops_carrying_is_the_finding_with_what_still_passes() {
    for (answered, place, passes) in [
        (
            true,
            Place::Uplink,
            "while small packets still pass (33 of 33 probes)",
        ),
        (
            false,
            Place::Path,
            "and none of 33 probes came back: the path or the far end is down",
        ),
    ] {
        let (findings, verdict) = judged(&fallen_silent(answered), Scope::Path);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(verdict.clearance, Some(Clearance::Found));
        assert_eq!(verdict.latency_grade, None);
        let found = &findings[0];
        assert_eq!(
            (found.cause, found.place, found.severity),
            (Cause::NothingCarried, place, Severity::Critical)
        );
        let begins = "The path stopped carrying our packets in the up phase: no payload arrived in its last 3.30 s, ";
        assert!(found.summary.starts_with(begins), "{}", found.summary);
        assert!(found.summary.contains(passes), "{}", found.summary);
        assert_eq!(verdict.headline, found.summary);
    }
}

#[test]
fn a_responder_that_ends_is_no_path_that_stops() {
    let mut measured = fallen_silent(true);
    let bps = constant(Unit::BitsPerSecond, 8.0, |_| 50e6);
    measured[1].series.insert("bps".to_owned(), bps);
    assert_eq!(judged(&measured, Scope::Path).0, []);
    // The time of the phase was over, and only the report is missing.
    measured[1].context = loaded(Phase::Up, 8.0);
    let (findings, _) = judged(&measured, Scope::Path);
    assert_eq!(
        (findings[0].cause, findings[0].place),
        (Cause::NothingCarried, Place::Downlink)
    );
    assert!(
        findings[0].summary.contains("report on it did not"),
        "{findings:?}"
    );
}

#[test]
fn a_short_phase_without_payload_is_not_measured() {
    let dead = Load {
        bps: 0.0,
        again: 0.0,
        seconds: 2.5,
        ..HEALTHY
    };
    let (findings, verdict) = Check { up: dead, ..CHECK }.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    assert_eq!(verdict.latency_grade, None);
}

#[test]
fn segments_sent_again_without_a_queue_are_unexplained() {
    // A policer, bursts of loss, and a duplex mismatch.
    for (bps, again, says) in [
        (9.6e6, 0.037, "3.7 % of the segments of uploads"),
        (5.6e6, 0.02, "2.0 % of the segments of uploads"),
        (149e3, 0.85, "85 % of the segments of uploads"),
    ] {
        let up = Load {
            bps,
            again,
            queue_s: 0.0,
            ..HEALTHY
        };
        let (clearance, finding) = Check { up, ..CHECK }.only_finding();
        assert_eq!(clearance, Clearance::Unexplained);
        assert_eq!(
            (finding.cause, finding.place, finding.severity),
            (Cause::Unexplained, Place::Uplink, Severity::Warning)
        );
        assert!(finding.summary.contains(says), "{}", finding.summary);
    }
}

#[test]
fn a_full_queue_explains_only_what_it_loses() {
    let again = |again| {
        let up = Load { again, ..HEALTHY };
        Check { up, ..CHECK }.judged().1.clearance.unwrap()
    };
    // Windows of 30 segments: 1.5 / 900, twice.
    assert_eq!(again(0.003), Clearance::Cleared);
    assert_eq!(again(0.006), Clearance::Unexplained);
}

#[test]
fn one_lost_probe_is_no_all_clear_and_no_alarm() {
    let (clearance, finding) = Check {
        idle: [250, 249],
        ..CHECK
    }
    .only_finding();
    assert_eq!(clearance, Clearance::Unexplained);
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(
        finding.summary,
        "Unexplained: 1 of 250 probes are lost while idle."
    );
}

#[test]
fn loss_while_idle_is_found_and_explains_what_is_sent_again() {
    let up = Load {
        again: 0.04,
        queue_s: 0.0,
        ..HEALTHY
    };
    let lossy = Check {
        idle: [250, 243],
        up,
        ..CHECK
    };
    let (findings, verdict) = lossy.judged();
    assert_eq!(findings[0].cause, Cause::PathLoss);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(verdict.clearance, Some(Clearance::Found));
    assert!(verdict.headline.contains("7 of 250 probes"));
    // Far more than that loss is not explained by it.
    let up = Load { again: 0.4, ..up };
    let (findings, verdict) = Check { up, ..lossy }.judged();
    assert_eq!(findings.last().unwrap().cause, Cause::Unexplained);
    assert_eq!(verdict.latency_grade, None);
}

#[test]
fn probes_lost_beside_a_load_need_a_queue_that_overflows() {
    let lossy = |queue_s| {
        let up = Load {
            loss: 0.01,
            again: if queue_s > 0.0 { 0.003 } else { 0.0 },
            queue_s,
            ..HEALTHY
        };
        Check { up, ..CHECK }.judged().1.clearance.unwrap()
    };
    assert_eq!(lossy(0.008), Clearance::Cleared);
    assert_eq!(lossy(0.0), Clearance::Unexplained);
}

#[test]
fn probes_lost_beside_a_load_too_short_to_show_its_queue_are_no_sign() {
    let short = Load {
        loss: 0.1,
        seconds: 3.0,
        ..HEALTHY
    };
    let (findings, verdict) = Check { up: short, ..CHECK }.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    // Of both directions at once it is not known what fills.
    let both = Load {
        seconds: 15.0,
        ..short
    };
    let (findings, _) = Check {
        up: short,
        both,
        ..CHECK
    }
    .judged();
    assert_eq!(findings, []);
}

#[test]
fn a_budget_too_small_for_the_path_is_named_with_what_it_takes() {
    // 2 GB on 10 Gbit/s, with a send buffer that is full meanwhile.
    let short = |bps, seconds| Load {
        bps,
        seconds,
        sndbuf_ratio: 0.9,
        network_ratio: 0.1,
        ..HEALTHY
    };
    let check = Check {
        up: short(3e9, 1.3),
        down: short(3e9, 1.3),
        both: short(3e9, 1.3),
        ..CHECK
    };
    let (findings, verdict) = check.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    assert_eq!(verdict.latency_grade, None);
    assert_eq!(
        verdict.headline,
        "Not measured: rates and latency under load, because the budget ended the load after 1.30 s of 15.00 s. --budget 32.0GB would measure it."
    );
}

#[test]
fn a_phase_that_was_to_be_short_is_named_too() {
    let short = Load {
        seconds: 10.0,
        ..HEALTHY
    };
    let check = Check {
        up: short,
        down: short,
        both: short,
        asked_s: 10.0,
        ..CHECK
    };
    let verdict = check.judged().1;
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    assert_eq!(
        verdict.headline,
        "Not measured: latency under load, because 10.00 s are too short for it. --duration 14s would measure it."
    );
}

#[test]
fn whatever_an_all_clear_needs_is_missed() {
    let missing = |verdict: Verdict| {
        assert_eq!(
            verdict.clearance,
            Some(Clearance::NotMeasured),
            "{verdict:?}"
        );
        assert_eq!(verdict.latency_grade, None);
        let what = verdict.not_measured.into_iter().map(|n| n.what);
        what.collect::<Vec<_>>().join(", ")
    };
    let bbr = Load {
        cc: "bbr",
        ..HEALTHY
    };
    let busy = Load {
        network_ratio: 0.4,
        queue_s: 0.0,
        ..HEALTHY
    };
    assert_eq!(
        missing(Check { up: bbr, ..CHECK }.judged().1),
        "latency under upload"
    );
    assert_eq!(
        missing(
            Check {
                down: busy,
                ..CHECK
            }
            .judged()
            .1
        ),
        "the download rate"
    );
    assert_eq!(
        missing(
            Check {
                idle: [50, 50],
                ..CHECK
            }
            .judged()
            .1
        ),
        "loss while idle"
    );
    assert_eq!(
        missing(
            Check {
                idle: [250, 0],
                ..CHECK
            }
            .judged()
            .1
        ),
        "idle latency and loss"
    );
    // Without a measurement at all.
    assert!(
        missing(judged(&[], Scope::Path).1)
            .starts_with("idle latency and loss, rates and latency under load")
    );
    for gone in 0..CHECK.measurements().len() {
        let mut rest = CHECK.measurements();
        rest.remove(gone);
        let verdict = judged(&rest, Scope::Path).1;
        // Of both at once either direction says what there is to know.
        if !matches!(gone, 3 | 4) {
            assert_ne!(missing(verdict), "", "{gone}");
        }
    }
    // The sender's record is missing.
    let mute = Load { cc: "", ..HEALTHY };
    assert_eq!(
        missing(
            Check {
                down: mute,
                ..CHECK
            }
            .judged()
            .1
        ),
        "retransmissions and stalls of the download"
    );
}

#[test]
fn stalls_unsteady_rates_and_a_collapse_are_signs() {
    let with_rate = |bps: fn(f64) -> f64| {
        let mut all = CHECK.measurements();
        all[2]
            .series
            .insert("bps".to_owned(), constant(Unit::BitsPerSecond, 15.0, bps));
        let (findings, verdict) = judged(&all, Scope::Path);
        assert_eq!(verdict.clearance, Some(Clearance::Unexplained));
        (findings[0].severity, findings[0].summary.clone())
    };
    let stalled = with_rate(|t| if (6.0..8.4).contains(&t) { 0.0 } else { 5e7 });
    assert_eq!(stalled.0, Severity::Warning);
    assert!(
        stalled.1.contains("downloads stall for 2.5"),
        "{}",
        stalled.1
    );
    let restless = with_rate(|t| {
        if (t as u64).is_multiple_of(2) {
            1e8
        } else {
            2e7
        }
    });
    assert_eq!(restless.0, Severity::Info);
    assert!(
        restless
            .1
            .contains("downloads vary between 20.0 Mbit/s and 100 Mbit/s"),
        "{}",
        restless.1
    );
    let both = Load {
        bps: 5e6,
        ..HEALTHY
    };
    let (_, collapsed) = Check { both, ..CHECK }.only_finding();
    assert_eq!(
        collapsed.summary,
        "Unexplained: both directions at once carry 10.0 Mbit/s together, and downloads alone 50.0 Mbit/s."
    );
}

#[test]
fn a_boost_and_steps_of_the_rate_are_named() {
    let found = |bps: fn(f64) -> f64| {
        let mut all = CHECK.measurements();
        all[2]
            .series
            .insert("bps".to_owned(), constant(Unit::BitsPerSecond, 15.0, bps));
        let (findings, verdict) = judged(&all, Scope::Path);
        assert_eq!(verdict.clearance, Some(Clearance::Found), "{verdict:?}");
        findings.iter().map(|f| f.cause).collect::<Vec<_>>()
    };
    assert_eq!(
        found(|t| if t < 5.0 { 1e8 } else { 2e7 }),
        [Cause::TokenBucket]
    );
    let steps = |t: f64| {
        if ((t / 4.0) as u64).is_multiple_of(2) {
            2e7
        } else {
            6e7
        }
    };
    assert_eq!(found(steps), [Cause::RateVaries]);
}

/// Rates that vary by half are only worth knowing, and 3 % of the segments sent again are worse.
#[test]
fn what_is_worth_knowing_clears_no_path_of_what_is_wrong() {
    let down = Load {
        again: 0.03,
        ..HEALTHY
    };
    let mut all = Check { down, ..CHECK }.measurements();
    let steps = |t: f64| match ((t / 4.0) as u64).is_multiple_of(2) {
        true => 4e7,
        false => 6e7,
    };
    let steps = constant(Unit::BitsPerSecond, 15.0, steps);
    all[2].series.insert("bps".to_owned(), steps);
    let (findings, verdict) = judged(&all, Scope::Path);
    let causes: Vec<_> = findings.iter().map(|f| (f.cause, f.severity)).collect();
    assert!(
        causes.contains(&(Cause::RateVaries, Severity::Info))
            && causes.contains(&(Cause::Unexplained, Severity::Warning)),
        "{causes:?}"
    );
    assert_eq!(verdict.clearance, Some(Clearance::Unexplained));
}

#[test]
fn nothing_is_worse_than_f() {
    let mut all = CHECK.measurements();
    all.retain(|m| m.id != "latency-down");
    let grade = |grade| {
        let mut all = all.clone();
        for m in &mut all {
            if let Outcome::LoadedLatency(loaded) = &mut m.outcome {
                loaded.grade = Some(grade);
            }
        }
        judged(&all, Scope::Path).1.latency_grade
    };
    assert_eq!(grade(Grade::D), None);
    assert_eq!(grade(Grade::F), Some(Grade::F));
}

fn load() -> impl Strategy<Value = Load> {
    let rare =
        |ordinary: f64, other: std::ops::Range<f64>| prop_oneof![4 => Just(ordinary), 1 => other];
    (
        prop_oneof![6 => 1e4..1e10f64, 1 => Just(0.0)],
        prop_oneof![3 => Just(0.0005), 1 => 0.0..0.9f64],
        prop_oneof![3 => Just(0.008), 1 => 0.0..0.05f64],
        rare(0.0, 0.0..1.0),
        rare(15.0, 0.1..30.0),
        rare(0.95, 0.0..1.0),
    )
        .prop_map(|(bps, again, queue_s, loss, seconds, network_ratio)| Load {
            bps,
            again,
            queue_s,
            loss,
            seconds,
            network_ratio,
            ..HEALTHY
        })
}

proptest! {
    /// Whatever was measured: what is cleared was measured and is healthy, by rules written down once more.
    #[test]
    fn only_health_that_was_measured_is_cleared(
        idle in prop_oneof![4 => Just([250, 250]), 1 => (1u64..300).prop_map(|n| [n, n]), 1 => Just([250, 248])],
        up in load(), down in load(), both in load(), gone in prop_oneof![3 => Just(8usize), 1 => 0usize..8],
    ) {
        let check = Check { idle, up, down, both, ..CHECK };
        let mut all = check.measurements();
        if gone < all.len() {
            all.remove(gone);
        }
        let (findings, verdict) = judged(&all, Scope::Path);
        let cleared = verdict.clearance == Some(Clearance::Cleared);
        let unexplained = |load: Load| load.bps > 0.0 && load.seconds >= 4.0 && load.again > 0.0011 && load.queue_s < 0.001;
        let graded = verdict.latency_grade.is_some_and(|grade| grade != Grade::F);
        if (unexplained(up) && gone != 1) || (unexplained(down) && gone != 2) {
            prop_assert!(!cleared);
        }
        if findings.iter().any(|f| f.cause == Cause::Unexplained) {
            prop_assert!(!cleared && !graded);
        }
        if cleared {
            prop_assert!(idle[0] >= 188 && idle[0] == idle[1] && gone != 0);
            for load in [up, down] {
                prop_assert!(load.bps > 0.0 && load.seconds >= 14.0 && load.loss < 0.06, "{load:?}");
                prop_assert!(load.again <= 0.0011 || load.queue_s >= 0.001, "{load:?}");
            }
            prop_assert!(both.seconds >= 14.0 && both.bps > 0.0);
            prop_assert!(![1, 2, 5, 6, 7].contains(&gone));
            prop_assert!(findings.iter().all(|f| f.severity == Severity::Info));
        }
        prop_assert_eq!(verdict.clearance == Some(Clearance::NotMeasured), !verdict.headline.is_empty() && verdict.headline.starts_with("Not measured"));
    }
}

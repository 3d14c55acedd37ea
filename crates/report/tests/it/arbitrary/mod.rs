//! Runs that say anything at all, as a hostile file would.

mod outcome;

use std::collections::BTreeMap;

use plumb_model::context::{Context, Phase};
use plumb_model::distribution::Distribution;
use plumb_model::finding::*;
use plumb_model::grade::Grade;
use plumb_model::run::Ended;
use plumb_model::run::*;
use plumb_model::series::{Series, Unit};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use outcome::outcome;

/// Text that would like to be markup, an address or a command.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("<script>alert(1)</script>".to_owned()),
        Just("\"><img src=x onerror=alert(1)>".to_owned()),
        Just("' onmouseover='alert(1)".to_owned()),
        Just("</style></title><svg onload=alert(1)>".to_owned()),
        Just("https://evil.example/a.js".to_owned()),
        Just("{{ 7 * 7 }}{% raw %}".to_owned()),
        Just("\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m".to_owned()),
        Just("a\u{202e}b\u{2066}c\u{200b}d\u{2028}e\u{7f}f\u{feff}".to_owned()),
        Just(String::new()),
        "\\PC{0,40}",
        any::<String>(),
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..2.0f64,
        2 => 0.0..1e9f64,
        1 => Just(0.0),
        1 => Just(-1.0),
        1 => Just(1e300),
        1 => Just(-1e300),
        1 => Just(f64::MIN_POSITIVE),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(f64::NAN),
    ]
}

prop_compose! {
    fn distribution()(v in vec(number(), 10), count in any::<u64>()) -> Distribution {
        Distribution { count, min: v[0], p5: v[1], p25: v[2], p50: v[3], mean: v[4], p75: v[5], p95: v[6], p99: v[7], max: v[8], stddev: v[9] }
    }
}

prop_compose! {
    fn series()(points in vec((number(), option::of(number())), 0..60), seconds in any::<bool>()) -> Series {
        let unit = if seconds { Unit::Seconds } else { Unit::BitsPerSecond };
        // Past `push`, as a hostile file would come.
        Series { unit, t_s: points.iter().map(|p| p.0).collect(), values: points.iter().map(|p| p.1).collect() }
    }
}

fn grade() -> impl Strategy<Value = Option<Grade>> {
    option::of(prop_oneof![
        Just(Grade::APlus),
        Just(Grade::A),
        Just(Grade::C),
        Just(Grade::F)
    ])
}

prop_compose! {
    fn measurement()(
        id in words(),
        outcome in outcome(),
        at_s in number(),
        duration_s in number(),
        phase in proptest::option::of(prop_oneof![Just(Phase::Idle), Just(Phase::Up), Just(Phase::Both), Just(Phase::After), Just(Phase::Silence)]),
        series in btree_map(prop_oneof![Just("rtt".to_owned()), Just("rtt_icmp".to_owned()), Just("bps".to_owned()), Just("pdv_s".to_owned()), Just("loss_ratio".to_owned()), words()], series(), 0..3),
    ) -> Measurement {
        Measurement { id, outcome, at_s, duration_s, context: Context { phase, ..Context::default() }, ended: Ended::Complete, settings: serde_json::Map::new(), series }
    }
}

prop_compose! {
    fn finding()(text in vec(words(), 8), v in vec(number(), 3), critical in any::<bool>()) -> Finding {
        let evidence = Evidence { measurement: text[0].clone(), field: text[1].clone(), value: Observed::Word(text[3].clone()), rule: text[2].clone(), threshold: v[1].into() };
        let fix = Fix {
            on: Actor::Router,
            summary: text[3].clone(),
            action: None,
            commands: vec![text[4].clone(), text[5].clone()],
            expect: text[6].clone(),
        };
        Finding {
            cause: Cause::BufferbloatUp,
            place: Place::Uplink,
            severity: if critical { Severity::Critical } else { Severity::Info },
            confidence: v[2],
            matters_for: Vec::new(),
            summary: text[7].clone(),
            evidence: vec![evidence],
            fixes: vec![fix],
            kb: "bufferbloat".into(),
        }
    }
}

prop_compose! {
    pub fn run()(
        text in vec(words(), 12),
        measurements in vec(measurement(), 0..6),
        findings in vec(finding(), 0..3),
        grade in grade(),
        lateness_s in option::of(distribution()),
        overrun in any::<bool>(),
    ) -> Run {
        let host = HostFacts {
            plumb: text[0].clone(),
            kernel: text[1].clone(),
            congestion_controls: vec![text[2].clone()],
            clock_source: Some(text[3].clone()),
            tcp_rmem_bytes: Some([u64::MAX; 3]),
            ..HostFacts::default()
        };
        Run {
            schema: SCHEMA.into(),
            id: text[4].clone(),
            started: text[5].clone(),
            plumb: text[6].clone(),
            command: vec![text[7].clone()],
            local: Local { host: host.clone(), lab: Some(LabMark { scenario: text[8].clone(), seed: 1, drawn: BTreeMap::from([(text[2].clone(), text[3].clone())]), changes: vec![LabChange { at: text[4].clone(), setting: text[5].clone(), before: Some(text[6].clone()), after: text[7].clone() }], backend: LabBackend::Kernel, clock: LabClock::Real, lateness_s, piece_error_s: 240e-6, starved_ratio: 0.25, stolen_ratio: 0.0625, behind_ratio: 0.5, device_drops: 3, write_errors: 2, link_stopped: false, overrun, notes: vec![text[10].clone()] }) },
            target: Some(Target { name: text[9].clone(), address: Some(text[10].clone()), host: Some(host) }),
            asked: None,
            measurements,
            findings,
            verdict: Some(Verdict { headline: text[11].clone(), clearance: grade.map(|_| Clearance::Found), latency_grade: grade, not_measured: vec![NotMeasured { what: text[0].clone(), why: text[1].clone(), option: Some(text[2].clone()) }], looked_for: None }),
            notes: text,
        }
    }
}

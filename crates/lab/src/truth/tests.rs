//! Runs and statistics made up, so that what deviates is known.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use plumb_link::chain::build_link;
use plumb_link::record::ProbeRecord;
use plumb_link::spec::ChainSpec;
use plumb_link::time::Time;
use plumb_model::distribution::Distribution;
use plumb_model::run::Run;
use plumb_model::series::{Series, Unit};
use plumb_wire::probe_key::ProbeKey;
use serde_json::{Value, json};

use super::{Deviation, truth};
use crate::scenario::Scenario;
use crate::stats::{DriverStats, LabStats, WayStats};
use plumb_model::direction::OneDirection;

/// The laboratory's clock begins 3 s before the Run.
const BEGUN_S: f64 = 3.0;

const STARTED: &str = "2026-01-01T00:00:03Z";
const STARTED_UNIX_NS: u64 = 1_767_225_600_000_000_000;

/// Probes of a Run, 10 ms apart.
const PROBES: u64 = 100;

/// What each of the two links of one direction takes.
const TRANSIT_S: f64 = 0.005;

fn run(measurement: &Value) -> Run {
    let host = json!({ "plumb": "0", "kernel": "Linux", "congestion_controls": [] });
    let run = json!({
        "schema": "plumb.run/2", "id": "0", "started": STARTED, "plumb": "0", "command": [],
        "local": { "host": host }, "measurements": [measurement], "findings": [], "notes": [],
    });
    Run::from_json(&run.to_string()).unwrap()
}

/// A Run of [`PROBES`] with these round trips.
fn pinged(rtt_s: impl Fn(u64) -> Option<f64>) -> Run {
    let t_s: Vec<f64> = (0..PROBES).map(|i| i as f64 / 100.0).collect();
    let values: Vec<Option<f64>> = (0..PROBES).map(rtt_s).collect();
    run(&json!({
        "id": "m1", "kind": "ping", "at_s": 0.0, "duration_s": 1.0,
        "context": { "probes": [{ "protocol": "udp", "id": 7, "first_seq": 0 }] },
        "series": { "rtt": { "t_s": t_s, "value_s": values } },
        "result": {
            "protocol": "udp", "address": "10.0.0.2", "sent": PROBES, "received": 0, "loss_ratio": 0.0,
            "duplicates": 0, "reordered": 0, "send_errors": 0, "dropped_here": 0, "timestamps": "kernel",
        },
    }))
}

/// A direction that took [`TRANSIT_S`] for every probe that it did not lose, and was late by this.
fn way(late_s: f64, loses: impl Fn(u64) -> bool) -> WayStats {
    let nothing = ChainSpec::default();
    let [mut chain, _] = build_link(&nothing, &nothing, [0, 1]).unwrap();
    let probe = |seq: u64| {
        let entered = BEGUN_S + seq as f64 / 100.0;
        let at = |s: f64| Time::from_nanos((s * 1e9).round() as u64);
        ProbeRecord {
            key: ProbeKey::Udp {
                session: 7,
                seq: seq as u32,
            },
            entered: at(entered),
            left: (!loses(seq)).then(|| at(entered + TRANSIT_S)),
        }
    };
    WayStats {
        settings: Vec::new(),
        chain: chain.stats(Time::ZERO),
        driver: DriverStats {
            lateness_s: Distribution::of([late_s]),
            behind_ratio: 0.0,
            write_errors: 0,
            device_drops: 0,
            unreadable: 0,
            cpu_s: None,
            realtime: true,
            stopped: false,
            overrun: false,
        },
        probes: (0..PROBES).map(probe).collect(),
    }
}

fn links(ways: [(&str, OneDirection, WayStats); 4]) -> LabStats {
    let mut links: BTreeMap<String, BTreeMap<OneDirection, WayStats>> = BTreeMap::new();
    for (link, way, what) in ways {
        links.entry(link.to_owned()).or_default().insert(way, what);
    }
    LabStats {
        schema: crate::stats::SCHEMA.to_owned(),
        scenario: "x".to_owned(),
        seed: 1,
        drawn: BTreeMap::new(),
        changes: Vec::new(),
        started_unix_ns: STARTED_UNIX_NS,
        duration_s: 20.0,
        links,
        kernel: BTreeMap::new(),
        starved_ratio: 0.0,
        stolen_ratio: 0.0,
        notes: Vec::new(),
    }
}

/// Two links, of which the second loses probes upwards.
fn two_links(late_s: f64, loses: impl Fn(u64) -> bool) -> LabStats {
    let sound = || way(late_s, |_| false);
    links([
        ("first", OneDirection::Up, sound()),
        ("first", OneDirection::Down, sound()),
        ("second", OneDirection::Up, way(late_s, loses)),
        ("second", OneDirection::Down, sound()),
    ])
}

fn deviations(truth_of: &str, run: &Run, stats: &LabStats) -> Vec<String> {
    let text = format!(
        "name = \"x\"\nsummary = \"x\"\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[link]]\nname = \"first\"\nbetween = [\"a\", \"b\"]\nemulated = true\n{truth_of}"
    );
    let scenario = Scenario::parse(&text, "x").unwrap();
    let deviations = truth(&scenario, run, stats);
    deviations.iter().map(Deviation::to_string).collect()
}

#[test]
fn probes_may_be_late_while_the_machine_was_held_up() {
    // Eight of a hundred probes, while it was for 4 % of the time.
    let run = pinged(|seq| Some(4.0 * TRANSIT_S + if seq < 8 { 0.05 } else { 0.0001 }));
    let mut stats = two_links(0.000_01, |_| false);
    let said = deviations("", &run, &stats);
    assert!(said.len() == 1 && said[0].starts_with("p95"), "{said:?}");
    stats.links.values_mut().for_each(|ways| {
        ways.values_mut()
            .for_each(|way| way.driver.behind_ratio = 0.04);
    });
    assert_eq!(deviations("", &run, &stats), [] as [&str; 0]);
    // More of them were late by something else.
    let run = pinged(|seq| Some(4.0 * TRANSIT_S + if seq < 30 { 0.05 } else { 0.0001 }));
    assert_eq!(deviations("", &run, &stats).len(), 1);
}

#[test]
fn a_probe_may_be_as_late_as_the_links_were() {
    // Over four directions, and 0.36 ms beyond: more than the stacks may add.
    let run = pinged(|_| Some(4.0 * TRANSIT_S + 0.00036));
    let said = deviations("", &run, &two_links(0.000_01, |_| false));
    assert!(
        said.len() == 1 && said[0].starts_with("median") && said[0].contains("at most 340 µs"),
        "{said:?}"
    );
    // 4 x 20 µs of it were the links'.
    assert!(deviations("", &run, &two_links(0.000_02, |_| false)).is_empty());
    // As is too little, which no lateness explains.
    let early = pinged(|_| Some(4.0 * TRANSIT_S - 0.0005));
    assert_eq!(
        deviations("", &early, &two_links(0.000_02, |_| false)).len(),
        1
    );
}

#[test]
fn a_probe_is_lost_where_a_link_lost_or_corrupted_it() {
    let rtt = Some(4.0 * TRANSIT_S);
    let run = pinged(|seq| rtt.filter(|_| seq % 10 != 3));
    assert!(deviations("", &run, &two_links(0.0, |seq| seq % 10 == 3)).is_empty());

    let kept = deviations("", &run, &two_links(0.0, |seq| seq % 10 < 5));
    let kept = kept.last().unwrap();
    assert!(
        kept.contains("40 probes differ") && kept.contains("udp number 0"),
        "{kept}"
    );

    let mut stats = two_links(0.0, |_| false);
    let vanished = deviations("", &run, &stats);
    assert!(vanished[0].contains("10 probes differ"), "{vanished:?}");

    let cells: ChainSpec = toml::from_str::<BTreeMap<String, ChainSpec>>(
        "cells = [{ type = \"corrupt\", name = \"bits\", ratio = \"10%\" }]",
    )
    .unwrap()
    .remove("cells")
    .unwrap();
    let [mut chain, _] = build_link(&cells, &ChainSpec::default(), [0, 1]).unwrap();
    let mut corrupting = |changed: u64| {
        let way = stats.links.get_mut("first").unwrap();
        let way = way.get_mut(&OneDirection::Down).unwrap();
        way.chain = chain.stats(Time::ZERO);
        way.chain.cells.get_mut("bits").unwrap().changed = changed;
        deviations("", &run, &stats)
    };
    assert!(corrupting(10).is_empty());
    assert!(corrupting(9)[0].contains("10 probes differ"));
}

#[test]
fn what_is_about_the_machine_is_no_finding_of_the_network() {
    let mut run = pinged(|_| Some(4.0 * TRANSIT_S));
    let mut said = |cause: &str, place: &str, truth: &str| {
        let finding = json!({
            "cause": cause, "where": place, "severity": "warning", "confidence": 0.9,
            "summary": "s", "evidence": [], "fixes": [], "kb": "host",
        });
        run.findings = vec![serde_json::from_value(finding).unwrap()];
        let truth = format!("[truth]\nmax_severity = \"info\"\n{truth}");
        deviations(&truth, &run, &two_links(0.0, |_| false))
    };
    for cause in [
        "clock-source-slow",
        "cpu-quota",
        "power-saving",
        "processor-busy",
        "vm-steal",
    ] {
        assert!(said(cause, "this-host", "").is_empty(), "{cause}");
    }
    assert!(said("processor-busy", "far-host", "").is_empty());
    // The path, and what of this host is the node's own.
    assert_eq!(said("path-loss", "uplink", "").len(), 1);
    assert_eq!(said("queue-drops", "this-host", "").len(), 1);
    // A link saves power, too.
    assert_eq!(said("power-saving", "local-segment", "").len(), 1);
    // A scenario that expects it gets what it expects.
    let expects = "first_finding = \"cpu-quota\"\n";
    assert_eq!(
        said("cpu-quota", "this-host", expects).len(),
        1,
        "worse than info"
    );
    assert_eq!(said("vm-steal", "this-host", expects).len(), 1);
}

#[test]
fn a_payload_rate_counts_the_time_of_the_measurement_and_no_other() {
    let expects = "[[truth.value]]\nwhat = \"w\"\nmeasurement = { kind = \"ping\" }\nfield = \"settings.rate_bps\"\npayload_rate = \"first.up\"\ntolerance_ratio = 0.001\n";
    // From 3.05 s to 4.05 s of the laboratory's time: half of the interval in which it begins, and of
    // the one in which it ends.
    let measured = |bps: f64| {
        let mut run = pinged(|_| Some(4.0 * TRANSIT_S));
        run.measurements[0].at_s = 0.05;
        run.measurements[0]
            .settings
            .insert("rate_bps".into(), json!(bps));
        run
    };
    let mut stats = two_links(0.0, |_| false);
    let way = stats.links.get_mut("first").unwrap();
    let mut payload = Series::new(Unit::Bytes);
    for i in 0..42 {
        // 1000 bytes in each, and then for a while more.
        payload.push(
            f64::from(i) / 10.0,
            Some(if i == 30 { 3000.0 } else { 1000.0 }),
        );
    }
    way.get_mut(&OneDirection::Up).unwrap().chain.payload = payload;
    let expected = (0.5 * 3000.0 + 9.0 * 1000.0 + 0.5 * 1000.0) * 8.0;
    assert!(deviations(expects, &measured(expected), &stats).is_empty());
    let said = deviations(expects, &measured(10.0 * 1000.0 * 8.0), &stats);
    assert!(said[0].contains("recorded 88000"), "{said:?}");

    // The last interval ends when the statistics were taken.
    stats.duration_s = 4.15;
    assert!(deviations(expects, &measured(expected), &stats).is_empty());
}

//! Runs that measured too little, that claim what cannot be, and that are fit for a twin. What corpus Runs come to is tried in the
//! program's tests, which read them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use plumb_model::vocabulary::Vocabulary as _;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A Run of a cable line with a long queue up and none to speak of down.
fn run() -> Value {
    let spread = |least: f64, middle: f64, most: f64| {
        json!({"count": 200, "min": least, "p5": least, "p25": middle, "p50": middle, "mean": middle,
               "p75": middle, "p95": most, "p99": most, "max": most, "stddev": 0.0})
    };
    let host = json!({"plumb": "0", "kernel": "Linux", "congestion_control": "cubic", "congestion_controls": [],
        "tcp_rmem_bytes": [4096, 131_072, 6_291_456], "tcp_wmem_bytes": [4096, 16_384, 4_194_304],
        "window_scaling": true, "sack": true, "timestamps": true});
    let ping = json!({"protocol": "udp", "address": "192.0.2.1", "sent": 200, "received": 200, "loss_ratio": 0.0,
        "duplicates": 0, "reordered": 0, "send_errors": 0, "dropped_here": 0,
        "rtt_s": spread(0.0201, 0.0203, 0.0205), "timestamps": "kernel"});
    let load = |direction: &str, bps: f64, again: u64| {
        json!({"direction": direction, "protocol": "tcp", "bps": bps, "steady_bps": bps, "bytes": (bps * 15.0 / 8.0) as u64, "cc": "cubic",
            "streams": [], "tcp": {"retransmits": again, "min_rtt_s": 0.0202, "max_srtt_s": 0.32, "mss_bytes": 1448,
            "send_buffer_bytes": 1, "max_in_flight_bytes": 1, "limited": {"rwnd_ratio": 0.0, "sndbuf_ratio": 0.0,
            "app_ratio": 0.0, "network_ratio": 1.0}}, "tcp_receiver": {}, "cpu": {}})
    };
    let beside = |direction: &str, most: f64| {
        json!({"direction": direction, "protocol": "udp", "idle_rtt_s": spread(0.0201, 0.0203, 0.0205),
            "rtt_s": spread(0.0201, 0.02 + most, 0.02 + most), "increase_s": spread(0.0, most, most), "loss_ratio": 0.0})
    };
    let one = |id: &str, kind: &str, phase: &str, result: Value| json!({"id": id, "kind": kind, "at_s": 0.0, "duration_s": 15.0, "context": {"phase": phase}, "result": result});
    json!({
        "schema": "plumb.run/2", "id": "1", "started": "2026-01-01T00:00:00Z", "plumb": "0", "command": ["check", "far.example"],
        "local": {"host": host, "lab": null},
        "target": {"name": "far.example", "address": "192.0.2.1", "host": host},
        "measurements": [
            one("m1", "ping", "idle", ping),
            one("m2", "throughput", "up", load("up", 19.0e6, 400)),
            one("m3", "loaded_latency", "up", beside("up", 0.3)),
            one("m4", "throughput", "down", load("down", 95.0e6, 0)),
            one("m5", "loaded_latency", "down", beside("down", 0.02)),
        ],
        "findings": [], "verdict": null, "notes": [],
    })
}

fn read(run: &Value) -> Run {
    Run::from_json(&run.to_string()).unwrap()
}

/// The cell of that name or type in a direction of the line.
fn cell(text: &str, direction: &str, name: &str) -> Option<toml::Value> {
    let scenario: toml::Value = toml::from_str(text).unwrap();
    let links = scenario["link"].as_array().unwrap();
    let line = links
        .iter()
        .find(|link| link["name"].as_str() == Some("line"));
    let mut cells = line.unwrap().get(direction)?.as_array().unwrap().iter();
    let is_it = |cell: &&toml::Value| {
        let field = |key: &str| cell.get(key).and_then(toml::Value::as_str);
        field("name").or(field("type")) == Some(name)
    };
    cells.find(is_it).cloned()
}

fn finding(cause: &str, place: &str, evidence: &[(f64, f64)]) -> Value {
    let evidence = evidence.iter().map(|(value, threshold)| {
        json!({"measurement": "m1", "field": "x", "value": value, "rule": "", "threshold": threshold})
    });
    json!({"cause": cause, "where": place, "severity": "warning", "confidence": 0.9, "summary": "",
        "evidence": evidence.collect::<Vec<_>>(), "fixes": [], "kb": ""})
}

/// The same where no queue stood before the upload.
fn unfilled() -> Value {
    let mut run = run();
    for quantile in ["p25", "p50", "p75", "p95", "p99", "max"] {
        run["measurements"][2]["result"]["increase_s"][quantile] = 0.001.into();
    }
    run
}

fn with(findings: &[Value]) -> String {
    let mut run = unfilled();
    run["findings"] = findings.into();
    twin(&read(&run)).unwrap().text
}

#[test]
fn a_line_has_the_rates_the_delay_and_the_queues_that_were_measured() {
    let made = twin(&read(&run())).unwrap();
    let (up, down) = (
        cell(&made.text, "up", "shaper").unwrap(),
        cell(&made.text, "down", "shaper").unwrap(),
    );
    // 19 Mbit/s of payload in segments of 1448 bytes are 1500 bytes of IP each.
    assert_eq!(up["rate"].as_str(), Some("19.68mbit"));
    assert_eq!(down["rate"].as_str(), Some("98.41mbit"));
    assert_eq!(up["queue"]["limit"].as_str(), Some("300ms"));
    // TCP's own packets waited 300 ms, and probes 20: each flow has a queue.
    assert_eq!(down["queue"].as_str(), Some("fq_codel"));
    let delay = cell(&made.text, "up", "delay").unwrap();
    let one_way = plumb_model::units::parse_duration(delay["delay"].as_str().unwrap()).unwrap();
    assert!((0.0098..0.0101).contains(&one_way.as_secs_f64()), "{delay}");
    assert!(made.text.contains("Not known: how the delay is divided"));
    assert!(cell(&made.text, "up", "loss").is_none());
}

#[test]
fn a_queue_that_did_not_overflow_may_be_deeper() {
    let mut run = run();
    run["measurements"][1]["result"]["tcp"]["retransmits"] = 0.into();
    let made = twin(&read(&run)).unwrap();
    let up = cell(&made.text, "up", "shaper").unwrap();
    assert_eq!(up["queue"]["limit"].as_str(), Some("600ms"));
    assert!(
        made.unknown
            .iter()
            .any(|what| what.contains("did not overflow"))
    );
}

#[test]
fn a_line_whose_queue_stood_was_full_whatever_it_lost() {
    for (mut run, bps) in [(run(), "19.68mbit"), (unfilled(), "78.73mbit")] {
        run["findings"] = vec![finding("path-loss", "uplink", &[(0.05, 0.001)])].into();
        let text = twin(&read(&run)).unwrap().text;
        let line = cell(&text, "up", "shaper").unwrap();
        assert_eq!(line["rate"].as_str(), Some(bps));
    }
}

#[test]
fn findings_become_cells() {
    let text = with(&[
        finding("window-scaling-stripped", "path", &[]),
        finding("outage", "path", &[(2.0, 0.5), (0.1, 0.0)]),
        finding(
            "per-flow-limit",
            "uplink",
            &[(4.0e6, 9.0e6), (5.0e6, 9.0e6)],
        ),
        finding("ecn-cleared", "path", &[]),
    ]);
    for direction in ["up", "down"] {
        let wscale = cell(&text, direction, "no-wscale").unwrap();
        assert_eq!(wscale["type"].as_str(), Some("strip_tcp_options"));
        let outage = cell(&text, direction, "outage").unwrap();
        assert_eq!(outage["lasts"].as_str(), Some("2s"));
        assert_eq!(outage["every"].as_str(), Some("20s"));
        assert!(cell(&text, direction, "ecn_bleach").is_some());
    }
    let flow = cell(&text, "up", "flow-limit").unwrap();
    assert_eq!(flow["per"].as_str(), Some("flow"));
    assert_eq!(flow["rate"].as_str(), Some("5.18mbit"));
    assert!(cell(&text, "down", "flow-limit").is_none());
    // The line's own rate is not what the limit let pass.
    let line = cell(&text, "up", "shaper").unwrap();
    assert_eq!(line["rate"].as_str(), Some("78.73mbit"));
}

#[test]
fn loss_that_probes_found_is_divided_as_tcp_sent_again() {
    let mut run = run();
    run["measurements"][0]["result"]["received"] = 190.into();
    run["findings"] = vec![finding("path-loss", "path", &[(0.05, 0.001)])].into();
    let text = twin(&read(&run)).unwrap().text;
    let lost = cell(&text, "up", "loss").unwrap();
    assert_eq!(lost["ratio"].as_str(), Some("5%"));
    assert!(cell(&text, "down", "loss").is_none());
}

#[test]
fn what_a_run_lacks_is_said_with_the_command_that_measures_it() {
    let mut run = run();
    let all = run["measurements"].as_array_mut().unwrap();
    all.truncate(1);
    let error = twin(&read(&run)).unwrap_err().to_string();
    assert!(
        error.contains("what uploads carry, what downloads carry"),
        "{error}"
    );
    assert!(
        error.contains("plumb check far.example -o run.json"),
        "{error}"
    );
    for version in [
        include_str!("../../../model/fixtures/run-1.json"),
        include_str!("../../../model/fixtures/run-2.json"),
    ] {
        // Both directions at once say nothing of each.
        let error = twin(&Run::from_json(version).unwrap()).unwrap_err();
        assert!(matches!(error, TwinError::TooLittle { .. }), "{error}");
    }
}

#[test]
fn what_no_lab_has_is_refused() {
    for bps in [1e12, 1e-300] {
        let mut run = run();
        run["measurements"][1]["result"]["steady_bps"] = bps.into();
        let error = twin(&read(&run)).unwrap_err();
        assert!(matches!(error, TwinError::Beyond(_)), "{error}");
    }
    let mut run = run();
    run["measurements"][0]["result"]["rtt_s"]["p95"] = 1e9.into();
    run["measurements"][0]["result"]["rtt_s"]["p99"] = 1e9.into();
    run["measurements"][0]["result"]["rtt_s"]["max"] = 1e9.into();
    assert!(matches!(
        twin(&read(&run)).unwrap_err(),
        TwinError::Beyond(_)
    ));
}

#[test]
fn a_path_that_carries_small_segments_alone_has_a_twin() {
    let mut run = unfilled();
    let mut small = run["measurements"][1].clone();
    small["id"] = "m9".into();
    small["context"]["experiment"] = "small-segments".into();
    small["result"]["bps"] = 5.0e6.into();
    for field in ["bps", "steady_bps"] {
        run["measurements"][1]["result"][field] = 0.0.into();
    }
    run["findings"] = vec![finding("pmtud-black-hole", "uplink", &[])].into();
    let error = twin(&read(&run)).unwrap_err().to_string();
    assert!(error.contains("nothing arrived"), "{error}");
    run["measurements"].as_array_mut().unwrap().push(small);
    let made = twin(&read(&run)).unwrap();
    assert!(
        made.unknown
            .iter()
            .any(|what| what.contains("pmtud-black-hole held TCP back"))
    );
}

fn fix(on: &str, action: Value) -> Value {
    json!({"on": on, "summary": "do it", "action": action, "commands": [], "expect": ""})
}

/// What is tried of a Run with these findings.
fn tried(findings: &[Value]) -> Vec<Trial> {
    let mut run = run();
    run["findings"] = findings.into();
    let run = read(&run);
    trials(&run, &twin(&run).unwrap())
}

fn scenario(trial: &Trial) -> toml::Table {
    let Ok(Change::Scenario(text)) = &trial.change else {
        panic!("{trial:?}");
    };
    text.parse().unwrap()
}

#[test]
fn fixes_change_the_twin_as_their_actions_say() {
    let shaper = |direction: &str| json!({"shaper": {"direction": direction, "rate_bps": 18_000_000, "overhead_bytes": 18, "mpu_bytes": 64, "qdisc": "fq_codel"}});
    let mut up = finding("bufferbloat-up", "uplink", &[]);
    up["fixes"] = json!([fix("router", shaper("up")), fix("provider", Value::Null)]);
    let mut down = finding("bufferbloat-down", "downlink", &[]);
    down["fixes"] = json!([fix("router", shaper("down"))]);
    let mut host = finding("receive-buffer-small", "this-host", &[]);
    let set = |key: &str, value: &str| json!({"sysctl": {"key": key, "value": value}});
    let mtu = json!({"interface": {"interface": "eth0", "change": {"mtu_bytes": 1400}}});
    host["fixes"] = json!([
        fix(
            "this-host",
            set("net.ipv4.tcp_rmem", "4096 131072 33554432")
        ),
        fix("far-host", set("net.ipv4.tcp_wmem", "4096 16384 33554432")),
        fix("this-host", set("net.ipv4.tcp_congestion_control", "bbr")),
        fix("this-host", set("net.core.default_qdisc", "fq")),
        fix("this-host", mtu),
        fix("provider", Value::Null),
    ]);
    let all = tried(&[up, down, host]);
    assert_eq!(all.len(), 10);
    assert!(matches!(&all[0].change, Ok(Change::Shape(shapers)) if shapers.len() == 1));
    let queue = &scenario(&all[1])["link"][3]["up"][0]["queue"];
    assert_eq!(queue.as_str(), Some("fq_codel"));
    let node = |trial: &Trial, number: usize, key: &str| {
        scenario(trial)["node"][number]["sysctl"][key]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        node(&all[3], 0, "net.ipv4.tcp_rmem"),
        "4096 131072 33554432"
    );
    assert_eq!(node(&all[4], 4, "net.ipv4.tcp_wmem"), "4096 16384 33554432");
    assert_eq!(
        all[5].change,
        Ok(Change::CongestionControl("bbr".to_owned()))
    );
    assert!(
        all[6]
            .change
            .as_ref()
            .unwrap_err()
            .contains("net.core.default_qdisc")
    );
    assert_eq!(scenario(&all[7])["link"][0]["mtu"].as_integer(), Some(1400));
    assert!(all[8].change.is_err());
    // All that the router can do, together.
    assert!(matches!(&all[9].change, Ok(Change::Shape(shapers)) if shapers.len() == 2));
    assert_eq!(all[9].fixes.len(), 2);
}

#[test]
fn advice_without_an_action_changes_the_box_that_it_is_about() {
    let mut stripped = finding("window-scaling-stripped", "path", &[]);
    stripped["fixes"] = json!([fix("provider", Value::Null)]);
    let all = tried(&[stripped]);
    let text = scenario(&all[0]).to_string();
    assert!(cell(&text, "up", "no-wscale").is_none() && cell(&text, "down", "no-wscale").is_none());

    let mut policer = finding("policer", "uplink", &[(0.2, 0.1)]);
    policer["fixes"] = json!([fix("provider", Value::Null)]);
    let all = tried(&[policer]);
    let text = scenario(&all[0]).to_string();
    assert!(cell(&text, "up", "policer").is_none());
    let shaped = cell(&text, "up", "shaper").unwrap();
    assert_eq!(shaped["queue"].as_str(), Some("fq_codel"));
}

/// Replaces the number at that place, counted through the document, and says how many there are.
fn replace(value: &mut Value, at: &mut i64, with: &Value) {
    match value {
        Value::Number(_) => {
            if *at == 0 {
                *value = with.clone();
            }
            *at -= 1;
        }
        Value::Array(all) => all.iter_mut().for_each(|value| replace(value, at, with)),
        Value::Object(all) => all.values_mut().for_each(|value| replace(value, at, with)),
        _ => {}
    }
}

/// Numbers that a file may have, sound or not.
fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(0)),
        Just(json!(u64::MAX)),
        Just(json!(1e-300)),
        Just(json!(1e300)),
        Just(json!(-1.0)),
        any::<f64>().prop_map(|number| json!(number)),
        any::<u32>().prop_map(|number| json!(number)),
        (0.0..1.0f64).prop_map(|number| json!(number)),
    ]
}

/// Causes and places as a Run may combine them, with evidence of whatever numbers.
fn any_finding() -> impl Strategy<Value = Value> {
    let cause = prop::sample::select(Cause::WORDS);
    let place = prop::sample::select(vec!["uplink", "downlink", "path", "local-segment"]);
    let number = prop_oneof![any::<f64>(), 0.0..1.0f64, 1e3..1e9f64, Just(0.0)];
    let evidence = prop::collection::vec((number.clone(), number), 0..4);
    (cause, place, evidence).prop_map(|((_, cause), place, evidence)| {
        let evidence: Vec<(f64, f64)> = evidence
            .into_iter()
            .map(|(a, b)| (finite(a), finite(b)))
            .collect();
        finding(cause, place, &evidence)
    })
}

fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Whatever numbers and findings a Run has, its twin is a scenario that the lab reads, or the refusal says why.
    #[test]
    fn every_run_gives_a_scenario_or_a_refusal(
        changes in prop::collection::vec((0i64..200, any_number()), 0..4),
        findings in prop::collection::vec(any_finding(), 0..5),
        name in "\\PC{0,20}",
    ) {
        let mut run = run();
        run["findings"] = findings.into();
        run["target"]["name"] = name.into();
        for (mut at, with) in changes {
            replace(&mut run, &mut at, &with);
        }
        if let Ok(run) = Run::from_json(&run.to_string()) {
            match twin(&run) {
                Ok(_) | Err(TwinError::TooLittle { .. } | TwinError::Beyond(_)) => {}
                Err(refused @ TwinError::Refused(_)) => prop_assert!(false, "{refused}"),
            }
        }
    }
}

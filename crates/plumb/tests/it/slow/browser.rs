//! The page of `plumb serve` in real browsers, at the end of a line whose faults are known.

use std::fs;

use plumb_model::run::Run;
use serde_json::Value;

use crate::common::network::Network;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/slow/browser.py");

const UP: &str = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "600ms" } }, { type = "delay", delay = "10ms" }"#;
const DOWN: &str = r#"{ type = "shaper", rate = "100mbit", queue = { type = "fifo", limit = "40ms" } }, { type = "delay", delay = "10ms" }"#;

/// What a browser showed at a phone's width, and the Run that the server kept.
fn visited(browser: &str, url: &str) -> (Value, Run) {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().display().to_string();
    let mut network = Network::line(UP, DOWN);
    network.service(
        "server",
        &["plumb", "serve", "--quiet", "--runs", &runs],
        7586,
    );
    // The drivers speak with their browsers by the loopback.
    let script = format!("ip link set lo up; /usr/bin/python3 {DRIVER} {browser} {url} 390 90");
    let (printed, _) = network.script(&script);
    let shown = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let mut files = fs::read_dir(folder.path()).unwrap();
    let file = files
        .next()
        .unwrap_or_else(|| panic!("no Run: {shown}"))
        .unwrap();
    let run = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    (shown, run)
}

fn names_the_queue(browser: &str, url: &str) {
    let (shown, run) = visited(browser, url);
    assert_eq!(shown["state"], "done", "{shown}");
    assert_eq!(shown["wide"], false, "wider than a phone: {shown}");
    let first = run.findings.first().unwrap();
    assert_eq!(first.cause.name(), "bufferbloat-up", "{}", first.summary);
    assert_eq!(shown["headline"], first.summary.as_str());
    for (direction, line_bps) in [("down", 100e6), ("up", 20e6)] {
        let mut carried = run
            .measurements
            .iter()
            .filter_map(|m| m.outcome.throughput());
        let result = carried.find(|r| r.direction.name() == direction).unwrap();
        // TCP carries 1448 of 1500 bytes, and framing and encryption are 0.5 % of that at most.
        let share = result.bps / (line_bps * 1448.0 / 1500.0);
        assert!(
            (0.93..1.01).contains(&share),
            "{browser} {direction}: {share}"
        );
    }
}

#[test]
#[ignore = "slow"]
fn chromium_names_the_queue_over_https() {
    names_the_queue("chromium", "'https://server:4043/#start'");
}

#[test]
#[ignore = "slow"]
fn firefox_names_the_queue() {
    names_the_queue("firefox", "'http://server:4043/#start'");
}

//! The page of `plumb serve` in real browsers, at the end of a line whose faults are known.

use std::fs;
use std::process::Command;

use plumb_model::run::Run;
use serde_json::Value;

use crate::common::PLUMB;
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
    names_the_queue("chromium", "https://server:4043/");
}

#[test]
#[ignore = "slow"]
fn firefox_names_the_queue() {
    names_the_queue("firefox", "http://server:4043/");
}

/// In a network where this host has an address of the Internet: what Chromium shows without the key, with another and with the
/// right one, and whether iperf3 is served before and after.
const PROVES: &str = r##"
ip link set lo up; ip address add 9.9.9.9/32 dev lo
"$PLUMB" serve --quiet --key 'the right one' & serve=$!
until (exec 3<> /dev/tcp/9.9.9.9/4043) 2> /dev/null; do sleep 0.1; done
shown() {
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$(mktemp -d -p "$HOME")" --virtual-time-budget=6000 \
        --dump-dom "http://9.9.9.9:4043/$1" 2> /dev/null | grep -oE '<h1>[^<]*|role="status">[^<]*'
}
served() { iperf3 -c 9.9.9.9 -n 100K > /dev/null 2>&1 && echo served || echo refused; }
shown ''; served
shown '#the%20wrong%20one'; sleep 1.1
shown '#the%20right%20one'; served
kill $serve
"##;

#[test]
#[ignore = "slow"]
fn chromium_proves_that_it_has_the_key() {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--net", "bash", "-c", PROVES])
        .env("PLUMB", PLUMB)
        .env("HOME", home.path())
        .output()
        .unwrap();
    let asks = "<h1>This server asks for its key\nrole=\"status\">";
    let expected = format!(
        "{asks}\nrefused\n{asks}it is another key\n<h1>Test this line\nrole=\"status\">\nserved\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

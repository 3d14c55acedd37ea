//! `plumb capture --both` of what a laboratory recorded at both ends of a line, beside what the line did, with one of the clocks set
//! wrong.

use std::path::Path;
use std::process::Command;

use plumb_lab::stats::LabStats;
use plumb_model::direction::OneDirection;
use plumb_model::results::Outcome;
use plumb_model::results::capture::sides::{CaptureSidesResult, Changed};
use plumb_model::run::Run;
use serde_json::Value;

use crate::common::network::Network;
use crate::common::{PLUMB, need_root, output_of, plumb, slots, stderr, stdout};

/// What one clock is set wrong by, and how much faster it runs.
const OFFSET_NS: u64 = 7_000_000_000;
const DRIFT_PPM: u64 = 50;

struct Captured {
    folder: tempfile::TempDir,
    result: CaptureSidesResult,
    log: Vec<Value>,
    stats: LabStats,
}

/// Captures at both ends of the link `line` while the client loads the server.
fn captured(network: &Network, near: &str, load: &[&str]) -> Captured {
    need_root();
    let _slot = slots::take(slots::Weight::Medium);
    let (file, folder) = (network.file(), tempfile::tempdir().unwrap());
    let near = format!("line@{near}=client.pcapng");
    let mut command = Command::new(PLUMB);
    command
        .current_dir(&folder)
        .args(["lab", "run", "--virtual"])
        .arg(file.path());
    command.args(["--capture", &near, "--capture", "line@server=server.pcapng"]);
    command.args(["--log", "log.jsonl", "--stats", "stats.json", "--"]);
    command.args(load);
    let output = output_of(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let server = folder.path().join("server.pcapng");
    let shifted = shifted(std::fs::read(&server).unwrap());
    std::fs::write(&server, shifted).unwrap();
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let log = lines.filter(|line| line["link"] == "line").collect();
    let stats = std::fs::read_to_string(folder.path().join("stats.json")).unwrap();
    let run = Run::from_json(&both(&folder, &["--json"])).unwrap();
    let outcome = run.measurements.into_iter().next().unwrap().outcome;
    let Outcome::CaptureSides(result) = outcome else {
        panic!("{outcome:?}");
    };
    Captured {
        folder,
        result: *result,
        log,
        stats: serde_json::from_str(&stats).unwrap(),
    }
}

fn both(folder: &tempfile::TempDir, options: &[&str]) -> String {
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (client, server) = (file("client.pcapng"), file("server.pcapng"));
    let files = ["capture", "--both", client.as_str(), server.as_str()];
    let output = plumb(&[&files[..], options].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// The capture of a host whose clock is wrong.
fn shifted(mut file: Vec<u8>) -> Vec<u8> {
    // Nanoseconds: the option if_tsresol (9) of one byte.
    assert!(file.windows(5).any(|bytes| bytes == [9, 0, 1, 0, 9]));
    let word = |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut first) = (0, None);
    while at + 12 <= file.len() {
        let (kind, length) = (word(&file, at), word(&file, at + 4) as usize);
        if kind == 6 {
            let high = u64::from(word(&file, at + 12)) << 32;
            let ns = high | u64::from(word(&file, at + 16));
            let since = ns.saturating_sub(*first.get_or_insert(ns));
            let wrong = ns + OFFSET_NS + since * DRIFT_PPM / 1_000_000;
            file[at + 12..at + 16].copy_from_slice(&((wrong >> 32) as u32).to_le_bytes());
            file[at + 16..at + 20].copy_from_slice(&(wrong as u32).to_le_bytes());
        }
        at += length;
    }
    file
}

/// Losses and delays of a direction are those of the link.
fn is_true(captured: &Captured, direction: OneDirection) {
    let (name, way) = match direction {
        OneDirection::Up => ("up", &captured.result.up),
        OneDirection::Down => ("down", &captured.result.down),
    };
    let own = || captured.log.iter().filter(|line| line["way"] == name);
    let entered = |line: &Value| line["entered_s"].as_f64().unwrap();
    let crossed = |line: &Value| Some(line["left_s"].as_f64()? - entered(line));
    let delays: Vec<f64> = own().filter_map(crossed).collect();
    let (least, most) = delays
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), delay| {
            (least.min(*delay), most.max(*delay))
        });
    let lost = own().filter(|line| crossed(line).is_none());
    let driver = &captured.stats.links["line"][&direction].driver;
    let latest_s = driver.lateness_s.map_or(0.0, |late| late.max);
    // What was lost while the last packets were on their way may have been after the capture.
    let last = own().map(entered).fold(0.0, f64::max) - most - latest_s;
    // What the laboratory could not read in time is in the capture at its end and not in its log.
    let (mut all, mut sure) = (driver.device_drops, driver.device_drops);
    for line in lost {
        all += 1;
        sure += u64::from(entered(line) < last);
    }
    assert!(
        (sure..=all).contains(&way.lost),
        "{name}: {sure} to {all}, {:#?}",
        captured.result
    );
    assert_eq!(way.both, delays.len() as u64, "{name}");
    assert_eq!((way.far_only, way.duplicated, way.reordered), (0, 0, 0));
    let delay = way.delay.unwrap();
    let off = (delay.delay_s.min - least).abs();
    assert!(off <= delay.uncertainty_s, "{name}: {least}, {delay:?}");
    // Both ways are as long, so that half of the round trip is the truth here.
    assert!(off < 1e-3, "{name}: {least}, {delay:?}");
    assert!((0.0148..0.0165).contains(&delay.uncertainty_s), "{delay:?}");
    let mut sorted = delays;
    sorted.sort_by(f64::total_cmp);
    let truth = |ratio: f64| sorted[((sorted.len() - 1) as f64 * ratio) as usize] - least;
    // What the laboratory was late by is in the captures and not in its log. No more than one of a hundred packets is later than
    // that percentile, so that a quantile of the sum is at most that of the log a hundredth on and that lateness.
    let late_s = driver.lateness_s.map_or(0.0, |late| late.p99);
    let queueing = way.queueing_s.unwrap();
    for (seen, ratio) in [(queueing.p50, 0.5), (queueing.p95, 0.95)] {
        let range = truth(ratio) - 1e-3..truth(ratio + 0.01) + late_s + 1e-3;
        assert!(range.contains(&seen), "{name}: {seen} of {range:?}");
    }
    assert!(queueing.max > truth(1.0) - 1e-3, "{name}: {queueing:?}");
}

#[test]
fn losses_and_delays_are_those_of_the_line_by_clocks_that_differ() {
    const DELAY: &str = r#"{ type = "delay", delay = "15ms" }"#;
    let up = format!(
        r#"{{ type = "loss", ratio = "1%" }}, {{ type = "shaper", rate = "20mbit", queue = {{ type = "fifo", limit = "60p" }} }}, {DELAY}"#
    );
    let down = format!(r#"{{ type = "loss", ratio = "0.5%" }}, {DELAY}"#);
    let mut line = Network::served_line(&up, &down);
    line.without_ipv6();
    let load = ["plumb", "rate", "--up", "--duration", "3s", "server"];
    let captured = captured(&line, "client", &load);
    let result = &captured.result;
    assert!(result.up.lost > 10 && result.up.both > 1000, "{result:#?}");
    is_true(&captured, OneDirection::Up);
    is_true(&captured, OneDirection::Down);
    // Seven seconds, and what drifted until the middle: at most 1 ms in 20 s.
    let offset = result.clocks.offset_s.unwrap();
    assert!((6.999..7.002).contains(&offset), "{:?}", result.clocks);
    assert_eq!(result.changes, []);
    let text = both(&captured.folder, &[]);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let words = text.replace('\n', " ");
    let lost = format!("Up: {} of ", result.up.lost);
    for part in [&lost, "lost between the two captures", "is queueing"] {
        assert!(words.contains(part), "{text}");
    }
}

#[test]
fn translated_addresses_are_followed() {
    const CELLS: &str =
        r#"{ type = "nat" }, { type = "loss", ratio = "1%" }, { type = "delay", delay = "15ms" }"#;
    let mut network = Network::default();
    network.without_ipv6();
    network.node("client", "").node("router", "forward = true");
    network.node("server", "");
    network.link("lan", ["client", "router"], "");
    let cells = format!("up = [{CELLS}]\ndown = [{CELLS}]");
    network.link("line", ["router", "server"], &cells);
    network.serves("server");
    let load = ["plumb", "rate", "--down", "--duration", "2s", "server"];
    let captured = captured(&network, "router", &load);
    let result = &captured.result;
    assert!(result.down.lost > 5, "{result:#?}");
    is_true(&captured, OneDirection::Up);
    is_true(&captured, OneDirection::Down);
    let translated = result.changes.iter().any(|change| {
        let begins = |end: &Option<String>, with: &str| {
            end.as_ref().is_some_and(|end| end.starts_with(with))
        };
        change.what == Changed::Source
            && begins(&change.before, "10.0.0.1:")
            && begins(&change.after, "10.0.1.1:")
    });
    assert!(translated, "{:#?}", result.changes);
}

#[test]
fn both_takes_two_files() {
    let none = Path::new("none.pcap").to_str().unwrap();
    let output = plumb(&["capture", "--both", none]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--both takes two files"),
        "{}",
        stderr(&output)
    );
}

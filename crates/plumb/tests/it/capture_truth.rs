//! Segments by class at the receiver, beside what the line did to each packet: which were sent before, which were
//! overtaken, and which came after one that was lost. A class must be right in 99 of 100, and be found in as many.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::capture::captured;
use crate::common::{plumb, slots, stderr};

const SHAPER: &str =
    r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "60p" } }"#;
const DELAY: &str = r#"{ type = "delay", delay = "15ms" }"#;
const LOSS: &str = r#"{ type = "loss", ratio = "1%" }"#;

/// How often a class was right, wrong, and missed.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) right: u64,
    wrong: u64,
    missed: u64,
}

impl Tally {
    fn add(&mut self, truth: bool, seen: bool) {
        self.right += u64::from(truth && seen);
        self.wrong += u64::from(!truth && seen);
        self.missed += u64::from(truth && !seen);
    }

    /// The smaller one of precision and recall.
    pub(crate) fn least(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong.max(self.missed)) as f64
    }
}

/// By class; what the classes are of a line is added.
pub(crate) type Tallies = BTreeMap<&'static str, Tally>;

#[test]
fn what_was_lost_on_the_path_is_told_from_what_it_only_overtook() {
    let tallies = of_lines(&[
        (&format!("{LOSS}, {SHAPER}, {DELAY}"), SHAPER),
        (&format!("{SHAPER}, {DELAY}"), SHAPER),
        (
            &format!(r#"{{ type = "gilbert_elliott", p = "1%", r = "20%" }}, {SHAPER}, {DELAY}"#),
            SHAPER,
        ),
        (
            &format!(
                r#"{{ type = "strip_tcp_options", options = ["sack"] }}, {LOSS}, {SHAPER}, {DELAY}"#
            ),
            SHAPER,
        ),
        (
            &format!(
                r#"{{ type = "strip_tcp_options", options = ["timestamps"] }}, {LOSS}, {SHAPER}, {DELAY}"#
            ),
            SHAPER,
        ),
        (
            &format!(r#"{LOSS}, {SHAPER}, {{ type = "delay", delay = "100ms" }}"#),
            SHAPER,
        ),
        (
            &format!("{SHAPER}, {DELAY}"),
            r#"{ type = "loss", ratio = "10%" }, { type = "delay", delay = "15ms" }"#,
        ),
    ]);
    let repeated = tallies["repeated"];
    assert!(
        repeated.right > 50 && repeated.least() >= 0.99,
        "{tallies:?}"
    );
    assert!(
        tallies["gap"].right > 40 && tallies["gap"].least() >= 0.99,
        "{tallies:?}"
    );
    // Nothing was overtaken on any of them.
    let overtaken = tallies["overtaken"];
    assert!(overtaken.right == 0 && overtaken.wrong <= 1, "{tallies:?}");
}

#[test]
fn what_was_overtaken_is_no_retransmission() {
    let overtaken = r#"{ type = "reorder", ratio = "3%", extent = 3 }"#;
    let tallies = of_lines(&[
        (&format!("{overtaken}, {SHAPER}, {DELAY}"), SHAPER),
        (&format!("{overtaken}, {LOSS}, {SHAPER}, {DELAY}"), SHAPER),
    ]);
    let tally = tallies["overtaken"];
    assert!(tally.right > 100 && tally.least() >= 0.99, "{tallies:?}");
    assert!(tallies["repeated"].least() >= 0.99, "{tallies:?}");
    assert!(tallies["gap"].least() >= 0.99, "{tallies:?}");
}

pub(crate) fn of_lines(lines: &[(&str, &str)]) -> Tallies {
    let mut tallies = Tallies::new();
    for (up, down) in lines {
        let (folder, _) = captured(up, down);
        compare(folder.path(), &mut tallies);
    }
    tallies
}

/// The segments that the client sent, as a capture has them.
fn rows(folder: &Path, end: &str) -> Vec<Value> {
    let (file, rows) = (format!("{end}.pcapng"), format!("{end}.jsonl"));
    let [file, rows] = [file, rows].map(|name| folder.join(name).display().to_string());
    let output = plumb(&["capture", &file, "--export", &rows]);
    assert!(output.status.success(), "{}", stderr(&output));
    lines(Path::new(&rows))
        .filter(|row| row["direction"] == "up")
        .collect()
}

fn lines(file: &Path) -> impl Iterator<Item = Value> {
    let _slot = slots::take(slots::Weight::Processor);
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    lines.into_iter()
}

fn compare(folder: &Path, tallies: &mut Tallies) {
    let [sent, came] = ["client", "server"].map(|end| rows(folder, end));
    let log: Vec<Value> = lines(&folder.join("log.jsonl"))
        .filter(|line| line["way"] == "up" && line["protocol"] == 6)
        .collect();
    let clients: BTreeSet<&str> = sent
        .iter()
        .map(|row| row["client"].as_str().unwrap())
        .collect();
    for client in clients {
        let of_client = |rows: &[Value]| -> Vec<Value> {
            let own = rows.iter().filter(|row| row["client"] == client);
            own.cloned().collect()
        };
        let (_, port) = client.rsplit_once(':').unwrap();
        let port: u64 = port.parse().unwrap();
        let own: Vec<&Value> = log
            .iter()
            .filter(|line| line["source_port"] == port)
            .collect();
        of_connection(&of_client(&sent), &of_client(&came), &own, tallies);
    }
}

/// Nanoseconds, by which moments are the same.
fn ns(seconds: &Value) -> Option<u64> {
    seconds
        .as_f64()
        .map(|seconds| (seconds * 1e9).round() as u64)
}

fn of_connection(sent: &[Value], came: &[Value], log: &[&Value], tallies: &mut Tallies) {
    // The client's capture and the log are of the same packets, in order of time.
    let mut entered: Vec<u64> = log
        .iter()
        .map(|line| ns(&line["entered_s"]).unwrap())
        .collect();
    entered.sort_unstable();
    // What was on its way when the laboratory ended has no line in the log.
    let unfinished = sent.len().checked_sub(entered.len()).unwrap();
    assert!(unfinished <= 8 + sent.len() / 10, "{unfinished}");
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let mut before = BTreeSet::new();
    let mut repeats = BTreeMap::new();
    for (row, at) in sent.iter().zip(entered) {
        let seq = number(row, "seq");
        let has_payload = number(row, "payload_bytes") > 0;
        repeats.insert((at, seq), has_payload && !before.insert(seq));
    }
    // So are the server's and what came through, each of which the log knows by when it had entered.
    let mut passed: Vec<(u64, u64)> = log
        .iter()
        .filter_map(|line| Some((ns(&line["left_s"])?, ns(&line["entered_s"])?)))
        .collect();
    passed.sort_by_key(|(left, _)| *left);
    assert_eq!(passed.len(), came.len());
    let mut highest = 0;
    for ((_, at), row) in passed.iter().zip(came) {
        let (seq, payload) = (number(row, "seq"), number(row, "payload_bytes"));
        let ends = row["flags"].as_array().unwrap().iter();
        let ends = ends.filter(|flag| ["SYN", "FIN"].contains(&flag.as_str().unwrap()));
        let end = seq + payload + ends.count() as u64;
        if payload > 0 {
            // One that fills no gap may have been sent before and lost: here nobody can know.
            let repeated = repeats[&(*at, seq)] && seq < highest;
            let truths = [
                ("repeated", repeated),
                ("overtaken", seq < highest && !repeated),
                ("gap", seq > highest),
            ];
            let classes: Vec<&str> = row["classes"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_str)
                .collect();
            for (class, truth) in truths {
                let seen = classes.iter().any(|word| match class {
                    "repeated" => word.ends_with("retransmission"),
                    "overtaken" => *word == "out_of_order",
                    _ => *word == "lost_segment",
                });
                tallies.entry(class).or_default().add(truth, seen);
            }
        }
        highest = highest.max(end);
    }
}

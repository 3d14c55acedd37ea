//! Whatever ends a measurement before its time: the outcome is clear, and what was measured until then is kept.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::live::alone;
use crate::common::machine::signal;
use crate::common::responder::{Responder, serving};
use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, stderr, stdout};
use plumb_model::results::Outcome;
use plumb_model::results::available_bandwidth::{RateLimit, SearchEnd};
use plumb_model::run::Run;
use serde_json::Value;

/// Longest that a measurement goes on after its responder is gone or stalls.
const AT_LAST: Duration = Duration::from_secs(60);

/// When something happens to a responder: so many events after the step of a measurement begins whose name begins so. While
/// something is carried, an event comes every 100 ms.
type Moment = (&'static str, usize);

/// Whether an event of `--json-lines` is the beginning of such a step.
fn begins(event: &str, step: &str) -> bool {
    let event: Value = serde_json::from_str(event).unwrap();
    let name = event["name"].as_str();
    event["event"] == "step" && name.is_some_and(|name| name.starts_with(step))
}

/// What becomes of a measurement whose responder gets a signal at that moment.
fn harmed(command: &str, name: &str, (step, events): Moment) -> Output {
    let responder = Responder::start();
    let port = responder.port.to_string();
    let mut arguments: Vec<&str> = command.split(' ').collect();
    arguments.insert(1, "127.0.0.1");
    arguments.extend(["--port", &port, "--json-lines"]);
    let mut client = Command::new(PLUMB)
        .args(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let begun = lines.by_ref().any(|event| begins(&event, step));
    if !begun || lines.by_ref().take(events).count() < events {
        let said = client.wait_with_output().unwrap();
        panic!("{command}: it ended before: {}", stderr(&said));
    }
    signal(responder.child.id() as i32, name);
    let harmed_at = Instant::now();
    // The Run is the last line.
    let run = lines.last().unwrap_or_default();
    let output = client.wait_with_output().unwrap();
    let went_on = harmed_at.elapsed();
    println!("{command}: {name}: went on for {went_on:?}");
    assert!(
        went_on < AT_LAST,
        "{command}: {went_on:?} after its responder"
    );
    // Before it can be waited for, what is stopped must be able to end.
    signal(responder.child.id() as i32, "KILL");
    Output {
        stdout: run.into_bytes(),
        ..output
    }
}

/// The Run of a measurement that was cut short: it says so on standard error, and in itself.
fn cut_short(command: &str, output: &Output) -> Run {
    let text = stderr(output);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{command}: {text}{}",
        stdout(output)
    );
    assert!(
        text.contains("measured in part only") && !text.contains("panicked"),
        "{command}: {text}"
    );
    let run = Run::from_json(&stdout(output));
    let run = run.unwrap_or_else(|error| panic!("{command}: {error}: {text}"));
    assert!(!run.notes.is_empty(), "{command}");
    run
}

fn kinds(run: &Run) -> Vec<String> {
    let kind = |outcome: &Outcome| serde_json::to_value(outcome).unwrap()["kind"].clone();
    let kinds = run.measurements.iter().map(|m| kind(&m.outcome));
    kinds
        .map(|kind| kind.as_str().unwrap().to_owned())
        .collect()
}

/// What is measured, what happens to the responder and when, and which kinds of measurement the Run
/// must hold at least.
const CASES: &[(&str, &str, Moment, &[&str])] = &[
    // Down, and a part of up.
    (
        "rate --duration 2s --pacing 20mbit",
        "KILL",
        ("uploading", 8),
        &["throughput", "throughput"],
    ),
    (
        "rate --duration 2s --pacing 20mbit",
        "STOP",
        ("uploading", 8),
        &["throughput", "throughput"],
    ),
    (
        "rate --duration 2s --udp --rate 2mbit",
        "KILL",
        ("uploading", 8),
        &["udp", "udp"],
    ),
    (
        "rate --duration 4s --quic --down",
        "KILL",
        ("downloading", 20),
        &["quic"],
    ),
    (
        "load --duration 4s --down --budget 1TB",
        "KILL",
        ("downloading", 20),
        &["ping", "throughput"],
    ),
    (
        "load --rpm --down --budget 1TB",
        "KILL",
        ("downloading", 28),
        &["ping", "throughput", "responsiveness"],
    ),
    // TCP for five seconds, and then the search: in its second step.
    (
        "rate --available --up --pacing 5mbit",
        "KILL",
        ("UDP at", 1),
        &["throughput", "available_bandwidth"],
    ),
    (
        "rate --profile voice --duration 4s",
        "KILL",
        ("the applications alone", 18),
        &["app"],
    ),
    // The applications alone, and then beside the load.
    (
        "rate --with game --duration 2s --pacing 20mbit",
        "KILL",
        ("downloading", 8),
        &["app", "throughput"],
    ),
    (
        "rate --flows reno=1,background=1 --duration 4s --down --budget 1TB",
        "KILL",
        ("downloading", 20),
        &["throughput"],
    ),
    (
        "load --shape rrul-be --duration 4s --budget 1TB",
        "KILL",
        ("both at once", 20),
        &["ping", "throughput", "throughput"],
    ),
    (
        "transactions --duration 4s --per-second 50",
        "KILL",
        ("asking and answering", 18),
        &["transactions"],
    ),
];

#[test]
fn a_responder_that_vanishes_or_stalls_leaves_what_was_measured() {
    let whole = slots::take(Weight::Heavy);
    let whole = &whole;
    std::thread::scope(|scope| {
        for (command, name, moment, expected) in CASES {
            scope.spawn(move || {
                whole.covers_this_thread();
                let output = harmed(command, name, *moment);
                let run = cut_short(command, &output);
                let found = kinds(&run);
                for kind in *expected {
                    let wanted = expected.iter().filter(|k| *k == kind).count();
                    let got = found.iter().filter(|k| k == kind).count();
                    assert!(got >= wanted, "{command}: {found:?}, {:?}", run.notes);
                }
                for measurement in &run.measurements {
                    match &measurement.outcome {
                        Outcome::Throughput(result) => {
                            assert!(result.bytes > 0, "{command}: {result:?}");
                        }
                        // Nothing failed: what passed is no more than what the path carries at least.
                        Outcome::AvailableBandwidth(result) => {
                            assert_eq!(result.ended, SearchEnd::FarEndLost, "{result:?}");
                            assert_eq!((result.bps, result.above_bps), (None, None));
                            assert_eq!(result.limit, RateLimit::Unknown, "{result:?}");
                        }
                        _ => {}
                    }
                }
            });
        }
    });
}

/// Runs `plumb` with a responder on the loopback, to its end.
fn against_a_responder(command: &[&str]) -> Output {
    let responder = Responder::start();
    let port = responder.port.to_string();
    let arguments = [command, &["--port", &port, "--json"]].concat();
    Command::new(PLUMB).args(arguments).output().unwrap()
}

#[test]
fn a_file_that_ends_early_and_a_full_disk_are_said() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 200_000]).unwrap();
    let from = ["rate", "127.0.0.1", "--from", file.path().to_str().unwrap()];
    let output = against_a_responder(&from);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    let Outcome::Throughput(result) = &run.measurements[0].outcome else {
        panic!("{:?}", kinds(&run))
    };
    assert_eq!(result.bytes, 200_000);
    let notes = run.notes.join(" ");
    assert!(notes.contains("all of which has arrived"), "{notes}");

    let to = ["rate", "127.0.0.1", "--to", "/dev/full", "--duration", "2s"];
    let output = against_a_responder(&to);
    let text = stderr(&output);
    assert!(!text.contains("panicked"), "{text}");
    let run = Run::from_json(&stdout(&output)).unwrap();
    let Outcome::Throughput(result) = &run.measurements[0].outcome else {
        panic!("{:?}", kinds(&run))
    };
    let error = result.streams[0].error.as_ref().unwrap();
    assert!(error.contains("/dev/full: No space left"), "{error}");
}

#[test]
fn a_host_without_a_free_port_says_so() {
    alone(|| {
        let _slot = slots::take(Weight::Heavy);
        let up = Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(up.unwrap().success());
        // Four ports: one for the control connection, and too few for the streams.
        let range = "/proc/sys/net/ipv4/ip_local_port_range";
        std::fs::write(range, "40000 40003").unwrap();
        let (mut responder, ..) = serving(&[]);
        let command = [
            "rate",
            "127.0.0.1",
            "--streams",
            "16",
            "--down",
            "--duration",
            "1s",
        ];
        let output = Command::new(PLUMB).args(command).output().unwrap();
        let _ = responder.kill();
        let _ = responder.wait();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("no free port") && text.contains("ip_local_port_range"),
            "{text}"
        );
    });
}

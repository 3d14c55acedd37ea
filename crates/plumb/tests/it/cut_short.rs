//! What Ctrl-C and SIGTERM make of every verb that measures: what was measured is kept, and the status tells whether
//! something is missing.

use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::machine::signal;
use crate::common::responder::Responder;
use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, side_by_side, stderr, stdout, words};
use plumb_model::run::Run;

/// Longest from a signal to the end: what is under way is waited for, and the last round trips.
const SOON: Duration = Duration::from_secs(40);

/// Runs plumb and sends it a signal after a while.
fn signalled(line: &str, name: &str, after: Duration) -> Output {
    let child = Command::new(PLUMB)
        .args(words(line))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    sleep(after);
    signal(child.id() as i32, name);
    let sent = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(sent.elapsed() < SOON, "{line}: {:?}", sent.elapsed());
    output
}

/// A measurement that was cut short, with what it had until then.
fn is_cut_short(line: &str, name: &str, after_ms: u64) {
    let output = signalled(line, name, Duration::from_millis(after_ms));
    let (status, by) = match name {
        "INT" => (130, "Ctrl-C"),
        _ => (143, "SIGTERM"),
    };
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{line}: {text}");
    assert!(
        text.contains(&format!("cut short by {by}")),
        "{line}: {text}"
    );
    let run = Run::from_json(&stdout(&output));
    let run = run.unwrap_or_else(|error| panic!("{line}: {error}: {text}"));
    assert!(!run.measurements.is_empty(), "{line}: {:?}", run.notes);
}

/// One that is meant to end so.
fn is_whole(line: &str) {
    for name in ["INT", "TERM"] {
        let output = signalled(line, name, Duration::from_millis(1500));
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line} {name}: {text}");
        assert!(!text.contains("cut short"), "{line}: {text}");
    }
}

#[test]
fn what_was_measured_is_kept_and_the_status_says_that_something_is_missing() {
    let _slot = slots::take(Weight::Slow);
    for (line, name) in [
        ("ping 127.0.0.1 -c 1000 -i 20ms --json", "INT"),
        ("ping 127.0.0.1 -c 1000 -i 20ms --json", "TERM"),
        ("ping 127.0.0.1 127.0.0.2 -c 1000 -i 1 --json", "INT"),
        ("ping 127.0.0.1 -t 60 --json", "INT"),
        ("path 127.0.0.1 -c 1000 -i 100ms --one-way --json", "INT"),
        ("host --live 200ms -c 100 --json", "TERM"),
    ] {
        is_cut_short(line, name, 1500);
    }
}

#[test]
fn loads_are_cut_short_too() {
    let responder = Responder::start_for(Weight::Slow, &[]);
    let port = responder.port;
    for (line, name) in [
        (
            format!("rate 127.0.0.1 -p {port} -R --pacing 10mbit -t 60 --json"),
            "INT",
        ),
        (
            format!("rate 127.0.0.1 -p {port} -u -b 2M -t 60 --json"),
            "TERM",
        ),
        (
            format!("transactions 127.0.0.1 -p {port} -t 60 --per-second 50 --json"),
            "INT",
        ),
        (format!("owd 127.0.0.1:{port} -c 10000 --json"), "INT"),
    ] {
        is_cut_short(&line, name, 2500);
    }
}

#[test]
fn what_has_no_end_of_its_own_ends_well() {
    let _slot = slots::take(Weight::Light);
    side_by_side(&[
        &|| is_whole("ping 127.0.0.1 -c 0 -i 100ms --json"),
        &|| is_whole("path 127.0.0.1 --continuous -i 100ms --one-way --json"),
        &|| is_whole("host --live 200ms --json"),
        &|| is_whole("serve --listen 127.0.0.1 --port 48765 --without stamp"),
    ]);
}

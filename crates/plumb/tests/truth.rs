//! The main job against networks whose truth is known, and the truth against Runs of others.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::network::scenario;
use common::{Checked, check_in, repository, side_by_side};
use plumb_lab::scenario::Scenario;
use plumb_lab::truth::{Deviation, truth};
use plumb_model::run::Run;

/// The Run of a scenario agrees with its truth, conforms to the schema, and is not taken for
/// the Run of any of `others`.
fn holds(name: &str, others: &[&str]) {
    let checked = check_in(name, &[]);
    let deviations = deviations(&checked, &checked.scenario);
    assert!(
        deviations.is_empty(),
        "{name} deviates from its truth:\n{}",
        deviations.join("\n")
    );
    assert!(
        !checked
            .run
            .local
            .lab
            .as_ref()
            .expect("the lab's mark")
            .overrun,
        "the machine did not keep up"
    );

    let schema: serde_json::Value = serde_json::from_str(
        &std::fs::read_to_string(repository().join("schemas/run.schema.json")).unwrap(),
    )
    .unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&checked.json)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{name} does not conform: {errors:?}");

    for other in others {
        let scenario = Scenario::load(other).unwrap();
        assert!(
            !self::deviations(&checked, &scenario).is_empty(),
            "a Run of {name} passes for one of {other}"
        );
    }
}

fn deviations(checked: &Checked, scenario: &Scenario) -> Vec<String> {
    truth(scenario, &checked.run, &checked.stats)
        .iter()
        .map(Deviation::to_string)
        .collect()
}

/// Lines this slow leave the machine idle most of the time, and a check takes a minute; one beside them fills a fast one
/// in one direction.
#[test]
fn slow_lines_and_a_small_receive_buffer() {
    side_by_side::<3>(&[
        &|| {
            let others = ["home-cable-managed", "fibre", "long-fat-sndbuf"];
            holds("home-cable", &others);
        },
        &|| {
            let others = ["home-cable", "fibre", "long-fat-rcvbuf"];
            holds("home-cable-managed", &others);
        },
        &|| holds("home-lossy", &["home-cable-managed", "fibre"]),
        &|| {
            let others = ["long-fat-sndbuf", "fibre", "home-cable"];
            holds("long-fat-rcvbuf", &others);
        },
        &a_smaller_modem_queue_is_seen,
        &a_slower_line_is_seen,
    ]);
}

#[test]
fn long_fat_sndbuf() {
    holds(
        "long-fat-sndbuf",
        &["long-fat-rcvbuf", "fibre", "home-cable"],
    );
}

#[test]
fn fibre() {
    holds(
        "fibre",
        &[
            "home-cable",
            "home-cable-managed",
            "long-fat-sndbuf",
            "long-fat-rcvbuf",
        ],
    );
}

/// Runs a scenario with one parameter changed and returns what then deviates from its truth.
fn changed(name: &str, from: &str, to: &str, options: &[&str]) -> (Run, Vec<String>) {
    let text = Scenario::text(name).unwrap();
    assert!(text.contains(from), "{name} has no '{from}'");
    let file = scenario(&text.replace(from, to));
    let checked = check_in(file.path().to_str().unwrap(), options);
    let deviations = deviations(&checked, &Scenario::load(name).unwrap());
    (checked.run, deviations)
}

fn a_smaller_modem_queue_is_seen() {
    let (run, deviations) = changed(
        "home-cable",
        "limit = \"700ms\"",
        "limit = \"20ms\"",
        &["--duration", "5s"],
    );
    assert!(
        deviations
            .iter()
            .any(|d| d.contains("an upload makes everything wait")),
        "{deviations:?}"
    );
    assert!(
        run.findings
            .iter()
            .all(|f| f.cause.name() != "bufferbloat-up"),
        "{:?}",
        run.findings
    );
}

fn a_slower_line_is_seen() {
    let (_, deviations) = changed(
        "home-cable-managed",
        "rate = \"19mbit\"",
        "rate = \"15mbit\"",
        &["--duration", "5s"],
    );
    assert!(
        deviations
            .iter()
            .any(|d| d.contains("upload fills the shaped rate")),
        "{deviations:?}"
    );
}

#[test]
fn a_larger_send_buffer_is_seen() {
    let (run, deviations) = changed(
        "long-fat-sndbuf",
        "4096 16384 524288",
        "4096 16384 268435456",
        &["--duration", "5s"],
    );
    assert!(
        deviations
            .iter()
            .any(|d| d.contains("the first finding is send-buffer-small")),
        "{deviations:?}"
    );
    assert!(
        run.findings
            .iter()
            .all(|f| f.cause.name() != "send-buffer-small"),
        "{:?}",
        run.findings
    );
}

#[test]
fn a_slower_fibre_is_seen() {
    let (_, deviations) = changed(
        "fibre",
        "rate = \"1gbit\"",
        "rate = \"600mbit\"",
        &["--duration", "5s"],
    );
    for what in ["upload fills the line", "download fills the line"] {
        assert!(
            deviations.iter().any(|d| d.contains(what)),
            "{what}: {deviations:?}"
        );
    }
}

#[test]
fn a_larger_receive_buffer_is_seen() {
    let (run, deviations) = changed(
        "long-fat-rcvbuf",
        "4096 131072 1048576",
        "4096 131072 268435456",
        &["--duration", "5s"],
    );
    assert!(
        deviations
            .iter()
            .any(|d| d.contains("the first finding is receive-buffer-small")),
        "{deviations:?}"
    );
    assert!(
        run.findings
            .iter()
            .all(|f| f.cause.name() != "receive-buffer-small"),
        "{:?}",
        run.findings
    );
}

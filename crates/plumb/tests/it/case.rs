//! What is handed over: a case that is read again, redacted Runs that agree, and a bad Run beside a good one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use plumb_model::run::Run;
use serde_json::Value;

use crate::common::network::Network;
use crate::common::{refused, repository, stderr, stdout};

/// A recorded check, saved as its user would have it.
fn recorded(name: &str, folder: &Path) -> PathBuf {
    let packed = File::open(repository().join(format!("corpus/{name}.json.gz"))).unwrap();
    let record: Value = serde_json::from_reader(GzDecoder::new(packed)).unwrap();
    let file = folder.join(format!("{name}.json"));
    fs::write(&file, record["run"].to_string()).unwrap();
    file
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[test]
fn a_case_is_one_file_that_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = recorded("home-cable", folder.path());
    let page = folder.path().join("case.html");
    let made = refused(&[
        "report",
        "--problem",
        path(&run),
        "--who",
        "noc@example.net",
        "-o",
        path(&page),
    ]);
    assert!(made.status.success(), "{}", stderr(&made));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("noc@example.net") && html.contains("From where to where"));
    let again = refused(&["diagnose", path(&page)]);
    assert!(
        stdout(&again).contains("bufferbloat-up"),
        "{}",
        stdout(&again)
    );
    let text = refused(&["report", "--problem", path(&page), "--since", "Monday"]);
    assert!(
        stdout(&text).contains("Since        Monday"),
        "{}",
        stdout(&text)
    );
    let plain = folder.path().join("plain.html");
    assert!(
        refused(&["report", path(&run), "-o", path(&plain)])
            .status
            .success()
    );
    let answer = refused(&["diagnose", path(&plain)]);
    assert!(
        stderr(&answer).contains("a page without a Run"),
        "{}",
        stderr(&answer)
    );
}

#[test]
fn redacted_runs_agree_by_their_key_and_hide_their_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, [7; 32]).unwrap();
    let names = ["home-cable", "home-cable-managed"];
    let targets = names.map(|name| {
        let run = recorded(name, folder.path());
        let redacted = folder.path().join(format!("{name}.redacted.json"));
        let made = refused(&[
            "report",
            path(&run),
            "--redact",
            "--key",
            path(&key),
            "-o",
            path(&redacted),
        ]);
        assert!(made.status.success(), "{}", stderr(&made));
        assert!(stderr(&made).contains("Left are"), "{}", stderr(&made));
        let text = fs::read_to_string(&redacted).unwrap();
        assert!(!text.contains("10.0.2.2") && !text.contains("10.0.1.2"));
        let run = Run::from_json(&text).unwrap();
        assert!(run.notes.last().unwrap().starts_with("Redacted"));
        run.target.unwrap()
    });
    assert_eq!(targets[0].address, targets[1].address);
    assert_eq!(targets[0].name, targets[1].name);
    let run = folder.path().join("home-cable.json");
    let out = folder.path().join("out.json");
    let answer = refused(&["report", path(&run), "-o", path(&out)]);
    assert!(!answer.status.success() && !out.exists());
    fs::write(&key, "short").unwrap();
    let answer = refused(&["report", path(&run), "--redact", "--key", path(&key)]);
    assert!(
        stderr(&answer).contains("can be guessed"),
        "{}",
        stderr(&answer)
    );
}

#[test]
fn a_cause_is_asked_why_it_was_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let [managed, bloated] =
        ["home-cable-managed", "home-cable"].map(|name| recorded(name, folder.path()));
    let why = refused(&["diagnose", path(&managed), "--explain", "bufferbloat-up"]);
    let text = stdout(&why);
    assert!(
        text.starts_with("Why bufferbloat-up, or why not\n"),
        "{text}{}",
        stderr(&why)
    );
    assert!(text.contains("no   up: increase of the"), "{text}");
    assert!(text.contains("a finding needs at least 60.0 ms"), "{text}");
    assert!(text.trim_end().lines().count() <= 10, "{text}");
    // What is asked of one cause is answered alone, and the option by itself has no value.
    assert!(!text.contains("Next:"), "{text}");
    let found = refused(&["diagnose", path(&bloated), "--explain=bufferbloat-up"]);
    assert!(
        stdout(&found).contains("was found: uplink"),
        "{}",
        stdout(&found)
    );
    let sums = refused(&["diagnose", "--explain", path(&bloated)]);
    assert!(
        stdout(&sums).contains("How sure, and why"),
        "{}",
        stdout(&sums)
    );
    let slip = refused(&["diagnose", path(&managed), "--explain", "bufferbloat"]);
    assert_eq!(slip.status.code(), Some(2));
    let answer = stderr(&slip);
    assert!(
        answer.contains("did you mean bufferbloat-down or bufferbloat-up?"),
        "{answer}"
    );
}

#[test]
fn a_good_run_shows_what_a_bad_one_changed() {
    let folder = tempfile::tempdir().unwrap();
    let [good, bad, other] = ["home-cable-managed", "home-cable", "ipv6-broken"]
        .map(|name| recorded(name, folder.path()));
    let said = refused(&["diagnose", "--good", path(&good), path(&bad)]);
    let text = stdout(&said);
    assert!(
        text.starts_with("What changed speaks for bufferbloat-up (uplink)"),
        "{text}\n{}",
        stderr(&said)
    );
    assert!(text.contains("It was looked for in the good Run"), "{text}");
    let same = refused(&["diagnose", "--good", path(&good), path(&good)]);
    assert!(
        stderr(&same).contains("are the same one"),
        "{}",
        stderr(&same)
    );
    let mut far: Value = serde_json::from_str(&fs::read_to_string(&other).unwrap()).unwrap();
    far["target"]["name"] = "elsewhere".into();
    far["target"]["address"] = "203.0.113.7".into();
    fs::write(&other, far.to_string()).unwrap();
    let answer = refused(&["diagnose", "--good", path(&other), path(&bad)]);
    assert!(
        stderr(&answer).contains("different paths"),
        "{}",
        stderr(&answer)
    );
    let repeats = refused(&["diagnose", "--repeats", path(&bad), path(&bad), path(&bad)]);
    assert!(stdout(&repeats).contains("Stable"), "{}", stdout(&repeats));
}

#[test]
fn a_host_like_this_one_shows_what_this_host_alone_has() {
    let folder = tempfile::tempdir().unwrap();
    let [other, own] =
        ["home-cable-managed", "home-cable"].map(|name| recorded(name, folder.path()));
    let diagnosed =
        |other: &Path, own: &Path| refused(&["diagnose", "--similar", path(other), path(own)]);
    let differs = stdout(&diagnosed(&other, &own));
    let head = "What differs between the two hosts speaks for bufferbloat-up (uplink)";
    assert!(differs.starts_with(head), "{differs}");
    assert!(differs.contains("What this host alone has"), "{differs}");
    // The same line from a neighbour: another Run, with another congestion control.
    let mut neighbour: Value = serde_json::from_str(&fs::read_to_string(&own).unwrap()).unwrap();
    neighbour["id"] = "neighbour".into();
    neighbour["local"]["host"]["congestion_control"] = "bbr".into();
    neighbour["started"] = "2026-11-01T00:00:00Z".into();
    let file = folder.path().join("neighbour.json");
    fs::write(&file, neighbour.to_string()).unwrap();
    let both = stdout(&diagnosed(&file, &own))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        both.contains("The other host has it too: it is of what both share."),
        "{both}"
    );
    assert!(both.contains("bbr on the other host"), "{both}");
    assert!(both.contains("was made at another time"), "{both}");
    // Before anything is sent.
    let missing = refused(&["check", "127.0.0.1", "--similar", "/nonexistent.json"]);
    assert_eq!(missing.status.code(), Some(1), "{}", stderr(&missing));
    assert!(
        stderr(&missing).contains("/nonexistent.json"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn a_cable_is_compared_with_its_port() {
    let line = |rate: &str| {
        let cell = format!(
            r#"{{ type = "shaper", rate = "{rate}", queue = {{ type = "fifo", limit = "30ms" }} }}"#
        );
        let delay = r#"{ type = "delay", delay = "200us" }"#;
        Network::served_line(&format!("{cell}, {delay}"), &format!("{cell}, {delay}"))
    };
    let checked = |network: Network, options: &[&str]| {
        let command = [&["plumb", "check", "server", "--quick"], options].concat();
        let output = network.run(&command);
        stdout(&output)
    };
    let slow = checked(line("60mbit"), &["--back-to-back=100mbit", "--details"]);
    assert!(slow.contains("that the ports of the cable carry"), "{slow}");
    let full = checked(line("100mbit"), &["--back-to-back=100mbit"]);
    assert!(
        full.contains("100 Mbit/s are expected of both ports"),
        "{full}"
    );
    assert!(full.contains("of 100 Mbit/s of the port"), "{full}");
    assert!(
        !full.contains("that the ports of the cable carry"),
        "{full}"
    );
    let unknown = checked(line("100mbit"), &["--back-to-back"]);
    assert!(unknown.contains("does not report the speed"), "{unknown}");
}

#[test]
fn a_router_without_a_managed_queue_needs_another_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = recorded("home-cable", folder.path());
    let said = |router: &str| {
        let output = refused(&["diagnose", path(&run), "--router", router]);
        let text = stdout(&output);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let fritzbox = said("fritzbox");
    assert!(
        fritzbox.contains("A FRITZ!Box has no managed queue: put a router"),
        "{fritzbox}"
    );
    assert!(!fritzbox.contains("switch on SQM"), "{fritzbox}");
    assert!(said("generic").contains("switch on SQM"));
}

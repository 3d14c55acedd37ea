//! What is handed over: a case that is read again, redacted Runs that agree, and a bad Run beside a good one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use plumb_model::run::Run;
use serde_json::Value;

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

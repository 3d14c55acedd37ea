//! `-o FILE`: what the file held stays until the new content is whole.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{PLUMB, plumb, stderr, stdout};
use plumb_model::run::Run;

/// Runs a script in a directory with a saved Run, `run.json`; `$plumb` is the program.
fn script(folder: &Path, script: &str) -> Output {
    let run = folder.join("run.json");
    if !run.exists() {
        let output = plumb(&["ping", "127.0.0.1", "-c", "1", "-o", run.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let mut sh = Command::new("sh");
    sh.args(["-c", script])
        .current_dir(folder)
        .env("plumb", PLUMB);
    sh.output().unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn a_kill_or_a_full_disk_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("page.html"), "the good one").unwrap();
    // SIGXFSZ kills whoever writes a byte to a file.
    let killed = script(
        folder,
        "ulimit -c 0; ulimit -f 0; exec $plumb report run.json -o page.html",
    );
    assert!(!killed.status.success());
    assert_eq!(read(folder, "page.html"), "the good one");
    // Ignored, it is an error of write(2), as a full disk is.
    let full = script(
        folder,
        "trap '' XFSZ; ulimit -f 0; exec $plumb report run.json -o page.html",
    );
    assert_eq!(full.status.code(), Some(1));
    assert!(
        stderr(&full).contains("cannot write page.html: "),
        "{}",
        stderr(&full)
    );
    assert_eq!(read(folder, "page.html"), "the good one");
    // The Run itself: it is shown, though it cannot be saved.
    let before = read(folder, "run.json");
    let run = script(
        folder,
        "trap '' XFSZ; ulimit -f 0; exec $plumb ping 127.0.0.1 -c 1 -o run.json",
    );
    assert_eq!(run.status.code(), Some(1));
    assert!(stdout(&run).contains("127.0.0.1"));
    assert_eq!(read(folder, "run.json"), before);
    assert!(Run::from_json(&before).is_ok());
    // And once there is room, it is replaced.
    assert!(
        script(folder, "exec $plumb report run.json -o page.html")
            .status
            .success()
    );
    assert!(read(folder, "page.html").contains("<title>"));
}

#[test]
fn what_is_no_file_gets_what_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Behind what is printed, wherever that goes.
    let piped = script(
        folder,
        "$plumb ping 127.0.0.1 -c 1 -o /dev/stdout | tail -n 1",
    );
    assert!(Run::from_json(&stdout(&piped)).is_ok(), "{piped:?}");
    let script_ = "echo first > all; $plumb ping 127.0.0.1 -c 1 -o /dev/stdout >> all";
    assert!(script(folder, script_).status.success());
    let all = read(folder, "all");
    assert!(all.starts_with("first\n"), "{all}");
    assert!(Run::from_json(all.lines().last().unwrap()).is_ok(), "{all}");
    let fifo = "mkfifo pipe; cat pipe > copy & $plumb ping 127.0.0.1 -c 1 -o pipe; wait";
    assert!(script(folder, fifo).status.success());
    assert!(Run::from_json(&read(folder, "copy")).is_ok());
    assert!(script(folder, "test -p pipe").status.success());
    // A link leads to the file that is replaced.
    symlink("run.json", folder.join("latest")).unwrap();
    let before = read(folder, "run.json");
    assert!(
        script(folder, "$plumb ping 127.0.0.1 -c 1 -o latest")
            .status
            .success()
    );
    assert_ne!(read(folder, "run.json"), before);
    assert!(script(folder, "test -L latest").status.success());
}

#[test]
fn permissions_are_kept_and_respected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let save = "umask 027; $plumb ping 127.0.0.1 -c 1 -o new.json";
    assert!(script(folder, save).status.success());
    let mode = |name: &str| {
        fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(mode("new.json"), 0o640);
    fs::set_permissions(folder.join("new.json"), fs::Permissions::from_mode(0o604)).unwrap();
    assert!(script(folder, save).status.success());
    assert_eq!(mode("new.json"), 0o604);
    // As another user: a directory that takes no new file, with one in it that everybody may write; and a file
    // that nobody may.
    let user = "setpriv --reuid 65534 --regid 65534 --clear-groups $plumb";
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.join("new.json"), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(folder.join("run.json"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(folder.join("new.json"), "x".repeat(100_000)).unwrap();
    let report = script(folder, &format!("{user} report run.json -o new.json"));
    assert!(report.status.success(), "{}", stderr(&report));
    assert!(
        read(folder, "new.json").trim_end().ends_with("</html>"),
        "shortened too"
    );
    let report = script(folder, &format!("{user} report run.json -o run.json"));
    assert!(
        stderr(&report).contains("cannot write run.json"),
        "{}",
        stderr(&report)
    );
    let report = script(folder, &format!("{user} report run.json -o another"));
    assert!(
        stderr(&report).contains("cannot write another"),
        "{}",
        stderr(&report)
    );
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["new.json", "run.json"]);
}

/// Runs of a part each are judged as one, and those of another path are refused.
#[test]
fn saved_runs_are_diagnosed_together() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fixture = |name: &str| {
        let path = crate::common::repository().join("crates/diagnose/fixtures");
        fs::read_to_string(path.join(name)).unwrap()
    };
    let whole = Run::from_json(&fixture("policer.json")).unwrap();
    let is_idle = |m: &plumb_model::run::Measurement| m.at_s < 5.0;
    for (name, idle) in [("idle.json", true), ("loaded.json", false)] {
        let mut part = whole.clone();
        part.measurements.retain(|m| is_idle(m) == idle);
        assert!(!part.measurements.is_empty());
        fs::write(folder.join(name), serde_json::to_string(&part).unwrap()).unwrap();
    }
    let output = script(folder, "$plumb diagnose loaded.json idle.json --json");
    assert!(output.status.success(), "{}", stderr(&output));
    let together = Run::from_json(&stdout(&output)).unwrap();
    assert_eq!(together.measurements.len(), whole.measurements.len());
    let verdict = together.verdict.unwrap();
    assert!(
        verdict
            .not_measured
            .iter()
            .all(|missing| !missing.what.contains("idle")),
        "{verdict:?}"
    );
    let alone = script(folder, "$plumb diagnose loaded.json --json");
    let alone = Run::from_json(&stdout(&alone)).unwrap().verdict.unwrap();
    assert!(
        alone.not_measured.len() > verdict.not_measured.len(),
        "{alone:?}"
    );
    let refused = script(folder, "$plumb diagnose run.json loaded.json");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("different paths"),
        "{}",
        stderr(&refused)
    );
    let cut = script(
        folder,
        "head -c 200 loaded.json > cut.json; $plumb diagnose cut.json",
    );
    assert_eq!(cut.status.code(), Some(1));
    assert!(stderr(&cut).contains("cut.json"), "{}", stderr(&cut));
}

//! `-o FILE`, and what else writes a file that the user names: what the file held stays until the new content is whole.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use crate::common::live::{Lab, alone, until};
use crate::common::machine::{all_end, descendants, says_ready, signal};
use crate::common::network::Network;
use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, need_root, output_of, plumb, stderr, stdout};
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
    let save = "umask 027; $plumb ping 127.0.0.1 -c 1 -o new";
    assert!(script(folder, save).status.success());
    let mode = |name: &str| {
        fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(mode("new"), 0o640);
    fs::set_permissions(folder.join("new"), fs::Permissions::from_mode(0o604)).unwrap();
    assert!(script(folder, save).status.success());
    assert_eq!(mode("new"), 0o604);
    // As another user: a directory that takes no new file, with one in it that everybody may write; and a file
    // that nobody may.
    let user = "setpriv --reuid 65534 --regid 65534 --clear-groups $plumb";
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.join("new"), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(folder.join("run.json"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(folder.join("new"), "x".repeat(100_000)).unwrap();
    let report = script(folder, &format!("{user} report run.json -o new"));
    assert!(report.status.success(), "{}", stderr(&report));
    assert!(
        read(folder, "new").trim_end().ends_with("</html>"),
        "shortened too"
    );
    fs::copy(folder.join("run.json"), folder.join("fixed")).unwrap();
    let report = script(folder, &format!("{user} report run.json -o fixed"));
    assert!(
        stderr(&report).contains("cannot write fixed"),
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
    assert_eq!(names, ["fixed", "new", "run.json"]);
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
        part.id = format!("{}-{name}", whole.id);
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

const GOOD: &str = "the good one";

/// What `plumb lab run` writes, of the link of [`Network::line`].
const RECORDS: [&str; 6] = [
    "--stats",
    "stats.json",
    "--log",
    "log",
    "--capture",
    "line@client=up.pcapng",
];

const RECORDED: [&str; 3] = ["stats.json", "log", "up.pcapng"];

/// A directory in which each of these files has something good.
fn folder_with(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::write(folder.path().join(name), GOOD).unwrap();
    }
    folder
}

#[test]
fn a_lab_replaces_its_records_when_they_are_whole() {
    need_root();
    let delay = r#"{ type = "delay", delay = "1ms" }"#;
    let (scenario, folder) = (Network::line(delay, "").file(), folder_with(&RECORDED));
    let folder = folder.path();
    let mut lab = Command::new(PLUMB);
    lab.current_dir(folder).args(["lab", "run"]);
    lab.arg(scenario.path()).args(RECORDS);
    let output = output_of(lab.args([
        "--",
        "sh",
        "-c",
        "ping -c 1 server > ping; cat stats.json log up.pcapng",
    ]));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), GOOD.repeat(3), "while it runs");
    let bytes = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(bytes("stats.json").starts_with(b"{"));
    assert!(read(folder, "log").lines().count() > 1);
    // The block that begins a pcapng file.
    assert!(bytes("up.pcapng").starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert_eq!(
        fs::read_dir(folder).unwrap().count(),
        4,
        "nothing is left beside them"
    );
}

#[test]
fn a_lab_that_is_killed_leaves_its_records_as_they_were() {
    need_root();
    let (scenario, folder) = (Network::line("", "").file(), folder_with(&RECORDED));
    let _slot = slots::take(Weight::Light);
    let mut lab = Command::new(PLUMB);
    lab.current_dir(folder.path()).args(["lab", "run"]);
    lab.arg(scenario.path()).args(RECORDS);
    lab.args(["--", "sh", "-c", "echo ready; sleep 1000"]);
    let mut lab = lab.stdout(std::process::Stdio::piped()).spawn().unwrap();
    says_ready(&mut lab);
    let processes = descendants(lab.id());
    lab.kill().unwrap();
    lab.wait().unwrap();
    all_end(&processes);
    for name in RECORDED {
        assert_eq!(read(folder.path(), name), GOOD, "{name}");
    }
}

#[test]
fn a_full_disk_leaves_the_records_of_a_lab_as_they_were() {
    need_root();
    let (scenario, folder) = (Network::line("", "").file(), folder_with(&[]));
    // A page for each of the old files, and none for what is new.
    let script = "\
        mount -t tmpfs -o size=12k none \"$PWD\" && cd \"$PWD\" || exit 1; \
        for file in stats.json log up.pcapng; do printf 'the good one' > $file; done; \
        \"$@\"; echo \" $?\"; cat stats.json log up.pcapng";
    let mut lab = Command::new("unshare");
    lab.current_dir(folder.path());
    lab.args(["-m", "sh", "-c", script, "sh", PLUMB, "lab", "run"]);
    let output = output_of(lab.arg(scenario.path()).args(RECORDS).args(["--", "true"]));
    assert_eq!(
        stdout(&output),
        format!(" 125\n{}", GOOD.repeat(3)),
        "{output:?}"
    );
    let said = stderr(&output);
    assert!(said.contains("cannot write stats.json: "), "{said}");
}

#[test]
fn a_log_that_is_mounted_by_itself_is_overwritten() {
    need_root();
    let (scenario, folder) = (
        Network::line("", "").file(),
        folder_with(&["log", "mounted"]),
    );
    let script = "mount --bind mounted log || exit 1; \"$@\"; echo $?";
    let mut lab = Command::new("unshare");
    lab.current_dir(folder.path());
    lab.args(["-m", "sh", "-c", script, "sh", PLUMB, "lab", "run"]);
    lab.arg(scenario.path());
    let output = output_of(lab.args(["--log", "log", "--", "true"]));
    assert_eq!(stdout(&output), "0\n", "{output:?}");
    assert!(read(folder.path(), "mounted").contains("plumb.lab-log/1"));
    assert_eq!(read(folder.path(), "log"), GOOD);
}

#[test]
fn an_interrupted_look_at_a_lab_is_kept() {
    alone(|| {
        let lab = Lab::up(&["fibre"]);
        for look in [&["log", "line.up"][..], &["capture", "line", "router"]] {
            let folder = folder_with(&["seen"]);
            let folder = folder.path();
            let mut looking = Command::new(PLUMB)
                .current_dir(folder)
                .arg("lab")
                .args(look)
                .args(["-o", "seen"])
                .spawn()
                .unwrap();
            let is_written = || {
                let mut files = fs::read_dir(folder).unwrap().map(Result::unwrap);
                files.any(|file| file.file_name() != "seen" && file.metadata().unwrap().len() > 0)
            };
            until("it has begun", is_written);
            assert_eq!(read(folder, "seen"), GOOD);
            signal(looking.id() as i32, "INT");
            assert!(looking.wait().unwrap().success());
            assert_ne!(fs::read(folder.join("seen")).unwrap(), GOOD.as_bytes());
            assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
        }
        lab.down(&[]);
    });
}

//! plumb is killed at moments of applying and undoing: a watchdog restores the old state within two seconds, and where that
//! is killed too, the next undo does.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plumb_model::shape::ShapeStatus;

use super::{BOTH, Home, LINE, command};
use crate::common::{PLUMB, stderr};

/// The process whose command line has these words, but for `not`.
fn process(words: &str, not: u32) -> Option<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|e| e.unwrap().file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != not).find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line)
            .replace('\0', " ")
            .contains(words)
    })
}

fn kill(pid: u32) {
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
}

/// Kills plumb after a while; whether it had come to its end before.
fn kill_after(home: &Home, arguments: &[&str], after: Duration, with_watchdog: bool) -> bool {
    let mut child = command(&home.router, PLUMB, arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let due = Instant::now() + after;
    while Instant::now() < due {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return true;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    if with_watchdog && let Some(pid) = process("shape watchdog", 0) {
        kill(pid);
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Whether it was killed when all was done already.
fn is_whole(home: &Home) -> bool {
    let status = home.plumb(&["shape", "status", LINE, "--json"]);
    let status: ShapeStatus = serde_json::from_slice(&status.stdout).unwrap();
    status.applied && status.complete
}

/// So many moments are tried.
const MOMENTS: u32 = 20;

/// Moments from the start to the end of what plumb does with these words.
fn moments(home: &Home, arguments: &[&str]) -> impl Iterator<Item = Duration> {
    let began = Instant::now();
    let output = home.plumb(arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let whole = began.elapsed();
    (0..MOMENTS).map(move |moment| whole * moment / MOMENTS)
}

#[test]
#[ignore = "runs in the virtual machine"]
fn the_old_state_is_back_after_a_kill_at_any_moment() {
    let home = Home::new();
    let before = home.state();
    let apply = [
        "shape", "apply", LINE, "--yes", "--for", "1h", "--scheme", "htb",
    ];
    let apply = [&apply[..], &BOTH].concat();
    let (mut restored, mut longest) = (0, Duration::ZERO);
    let moments = moments(&home, &apply);
    home.undo();
    for after in moments {
        if kill_after(&home, &apply, after, false) || is_whole(&home) {
            break;
        }
        let killed = Instant::now();
        while home.state() != before {
            assert!(
                killed.elapsed() < Duration::from_secs(2),
                "killed after {after:?}: {:?}",
                home.state()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        longest = longest.max(killed.elapsed());
        restored += 1;
    }
    assert!(restored >= MOMENTS / 2, "only {restored} moments");
    println!("\nshape: {restored} moments of applying, restored within {longest:?}");
    home.undo();
    assert_eq!(home.state(), before);
    if let Some(pid) = process("shape watchdog", 0) {
        kill(pid);
    }
}

#[test]
#[ignore = "runs in the virtual machine"]
fn without_the_watchdog_the_next_undo_restores_it() {
    let home = Home::new();
    let before = home.state();
    let apply = [
        "shape", "apply", LINE, "--yes", "--for", "1h", "--scheme", "htb",
    ];
    let apply = [&apply[..], &BOTH].concat();
    let undo = ["shape", "undo", LINE];
    let shape = || home.shape(&["--scheme", "htb", "--up", "20mbit", "--down", "20mbit"]);
    for arguments in [&apply[..], &undo] {
        let applying = arguments == &apply[..];
        if !applying {
            shape();
        }
        let moments = moments(&home, arguments);
        home.undo();
        for after in moments {
            if !applying {
                shape();
            }
            let ended = kill_after(&home, arguments, after, true);
            let output = home.plumb(&undo);
            assert!(output.status.success(), "{after:?}: {}", stderr(&output));
            assert_eq!(home.state(), before, "killed after {after:?}");
            if ended {
                break;
            }
        }
    }
    if let Some(pid) = process("shape watchdog", 0) {
        kill(pid);
    }
}

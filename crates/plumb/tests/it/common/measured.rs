//! What a lab measured that the machine did not keep up with is no measurement: it is void before its figures are looked
//! at, and made again.

use std::cell::Cell;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use plumb_lab::disturbance::Disturbance;
use plumb_lab::stats::LabStats;
use plumb_model::run::Run;

use super::slots::{self, Weight};
use super::{stderr, stdout};

/// How often something is measured at most: a machine that others use as well is busy for minutes, and a fourth lab would see
/// what three have seen.
const ATTEMPTS: usize = 3;

/// Begins the message of a test that could not measure. `tests/count.sh` counts these by it, apart from those that failed.
const NOT_MEASURED: &str = "NOT MEASURED:";

thread_local! {
    static EVEN_DISTURBED: Cell<bool> = const { Cell::new(false) };
}

/// What follows a measurement. It depends on what the machine did meanwhile, and on nothing that was measured.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Judge,
    Again,
    GiveUp,
}

fn next(attempt: usize, disturbances: &[String]) -> Next {
    match disturbances {
        [] => Next::Judge,
        _ if attempt < ATTEMPTS => Next::Again,
        _ => Next::GiveUp,
    }
}

/// Measures until the machine kept up: the second and the third time with nothing beside it.
pub(crate) fn undisturbed<T>(weight: Weight, mut measure: impl FnMut() -> (T, Vec<String>)) -> T {
    let mut attempt = 1;
    loop {
        let slot = slots::take(if attempt == 1 { weight } else { Weight::Heavy });
        let (measured, disturbances) = measure();
        drop(slot);
        if EVEN_DISTURBED.get() {
            return measured;
        }
        let why = disturbances.join("; ");
        match next(attempt, &disturbances) {
            Next::Judge => return measured,
            Next::Again => is_void(&why),
            Next::GiveUp => panic!("{NOT_MEASURED} {ATTEMPTS} labs in a row were disturbed: {why}"),
        }
        attempt += 1;
    }
}

/// For tests of what plumb says of a lab that was disturbed: what is measured in it counts as it is.
pub(crate) fn even_disturbed<T>(measure: impl FnOnce() -> T) -> T {
    EVEN_DISTURBED.set(true);
    let measured = measure();
    EVEN_DISTURBED.set(false);
    measured
}

/// Shown with a test that fails, and counted by `tests/run.sh`.
fn is_void(why: &str) {
    eprintln!("void, and measured again: {why}");
    if slots::test().starts_with("common::measured::") {
        return; // A test of this file, which measures nothing.
    }
    if let Some(file) = std::env::var_os("PLUMB_TEST_VOID") {
        let mut options = std::fs::OpenOptions::new();
        let file = options.append(true).create(true).open(file);
        let line = format!("{}: {why}\n", slots::test());
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// How the machine disturbed what a command measured in a lab: by the mark of the Run that it printed; where it printed
/// none, by the lab's statistics, if they were asked for.
pub(crate) fn disturbances(command: &Command, output: &Output) -> Vec<String> {
    let arguments: Vec<_> = command.get_args().filter_map(|a| a.to_str()).collect();
    let in_words = |all: Vec<Disturbance>| all.iter().map(Disturbance::to_string).collect();
    match arguments[..] {
        // The machine has no part in it.
        ["lab", _, "--virtual", ..] => Vec::new(),
        ["lab", "run", ..] => {
            let run = Run::from_json(&stdout(output)).ok();
            if let Some(mark) = run.and_then(|run| run.local.lab) {
                return in_words(Disturbance::of_run(&mark));
            }
            let folder = command.get_current_dir().unwrap_or(Path::new(""));
            let mut options = arguments
                .split(|a| *a == "--")
                .next()
                .unwrap_or_default()
                .iter();
            let stats = options.find(|a| **a == "--stats").and(options.next());
            let stats = stats.map(|file| folder.join(file));
            // A device, as tests of what cannot be written name, may have no end.
            let stats = stats.filter(|file| file.is_file());
            let stats = stats.and_then(|file| std::fs::read_to_string(file).ok());
            let stats = stats.and_then(|text| serde_json::from_str::<LabStats>(&text).ok());
            stats.map_or_else(Vec::new, |stats| in_words(Disturbance::of_lab(&stats)))
        }
        // It keeps both for itself, and says what they say.
        ["lab", "verify", ..] => {
            let said = stderr(output);
            let late = said.lines().filter(|line| line.contains("did not keep up"));
            late.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn only_what_was_disturbed_is_measured_again_and_no_more_than_twice() {
    // How often it is measured where the machine disturbs so many of the first attempts.
    let attempts = |disturbed: usize| {
        let mut made = 0;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            undisturbed(Weight::Brief, || {
                made += 1;
                let why = (made <= disturbed).then(|| "late".to_owned());
                ((), why.into_iter().collect())
            });
        }));
        let said = result.err().map(|said| said.downcast::<String>().unwrap());
        (made, said.map_or_else(String::new, |said| *said))
    };
    assert_eq!(attempts(0), (1, String::new()));
    assert_eq!(attempts(1), (2, String::new()));
    assert_eq!(attempts(2), (3, String::new()));
    let (made, said) = attempts(100);
    assert_eq!(made, 3);
    assert!(
        said.starts_with(NOT_MEASURED) && said.ends_with("late"),
        "{said}"
    );
}

/// A command in a lab that counts in a file how often it ran, and prints a Run in which the machine was as late as that.
#[test]
fn the_mark_decides_and_not_what_was_measured() {
    let run = |behind_ratio: f64| {
        let host =
            serde_json::json!({ "plumb": "0", "kernel": "Linux", "congestion_controls": [] });
        let lab = serde_json::json!({
            "scenario": "x", "seed": 1, "lateness_s": null, "behind_ratio": behind_ratio, "overrun": false,
        });
        let run = serde_json::json!({
            "schema": "plumb.run/2", "id": "0", "started": "2026-01-01T00:00:03Z", "plumb": "0", "command": [],
            "local": { "host": host, "lab": lab }, "measurements": [], "findings": [], "notes": [],
        });
        run.to_string()
    };
    let seen = |arguments: &[&str], printed: String, said: &str, status: i32| {
        use std::os::unix::process::ExitStatusExt as _;
        let output = Output {
            status: std::process::ExitStatus::from_raw(status << 8),
            stdout: printed.into_bytes(),
            stderr: said.as_bytes().to_vec(),
        };
        disturbances(Command::new("plumb").args(arguments), &output).len()
    };
    let in_lab = [
        "lab", "run", "fibre", "--", "plumb", "rate", "server", "--json",
    ];
    assert_eq!(seen(&in_lab, run(0.02), "", 0), 1);
    // A fault where the machine kept up is a fault, whatever the program says and does.
    assert_eq!(seen(&in_lab, run(0.0), "", 1), 0);
    assert_eq!(
        seen(&in_lab, run(0.0), "this machine did not keep up", 101),
        0
    );
    assert_eq!(seen(&in_lab, "no Run".to_owned(), "panicked", 101), 0);
    // Without a lab there is no mark.
    assert_eq!(seen(&["rate", "127.0.0.1", "--json"], run(0.02), "", 0), 0);
    let verify = ["lab", "verify", "fibre"];
    assert_eq!(
        seen(
            &verify,
            String::new(),
            "plumb: line.up: this machine did not keep up: …",
            1
        ),
        1
    );
    assert_eq!(seen(&verify, String::new(), "plumb: it deviates", 1), 0);
}

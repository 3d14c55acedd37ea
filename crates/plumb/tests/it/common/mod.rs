//! What the whole-program tests share: running plumb, alone or in a laboratory.

pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod measured;
pub(crate) mod network;
pub(crate) mod pcap;
pub(crate) mod responder;
pub(crate) mod slots;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plumb_lab::scenario::Scenario;
use plumb_lab::stats::LabStats;
use plumb_model::run::{LabClock, Run};
use serde_json::Value;

/// The program under test.
pub(crate) const PLUMB: &str = env!("CARGO_BIN_EXE_plumb");

/// Runs plumb to its end, when there is a place for what it does.
pub(crate) fn plumb(arguments: &[&str]) -> Output {
    output_of(Command::new(PLUMB).args(arguments))
}

/// The same where it is refused, or finds nobody, before anything is loaded: it needs no machine to itself.
pub(crate) fn refused(arguments: &[&str]) -> Output {
    let _slot = slots::take(slots::Weight::Brief);
    plumb(arguments)
}

/// Runs another's program that computes, when a processor is free for it: it must not make measurements late.
pub(crate) fn computed(command: &mut Command) -> Output {
    let _slot = slots::take(slots::Weight::Processor);
    let output = command.output();
    output.unwrap_or_else(|e| panic!("{command:?}: {e}: tests/tools.sh"))
}

/// The same as [`plumb`], for a command that is more than arguments.
pub(crate) fn output_of(command: &mut Command) -> Output {
    let arguments: Vec<String> = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    measured::undisturbed(slots::Weight::of(&arguments), || {
        let output = command.output().expect("plumb starts");
        // Shown if the test fails: what the machine did.
        let said = stderr(&output);
        let late = said.lines().filter(|line| line.contains("did not keep up"));
        late.for_each(|line| eprintln!("{line}"));
        let disturbances = measured::disturbances(command, &output);
        (output, disturbances)
    })
}

/// Fails with a reason where the laboratory cannot be run, so that nothing passes by skipping.
pub(crate) fn need_root() {
    let id = Command::new("id").arg("-u").output().expect("id runs");
    assert_eq!(
        String::from_utf8_lossy(&id.stdout).trim(),
        "0",
        "this test makes network namespaces and TUN devices: run it as root (sudo make test)"
    );
}

/// Runs the cases of a test beside each other, as the machine has places; a panic of one fails the test when all have
/// run.
pub(crate) fn side_by_side(cases: &[&(dyn Fn() + Sync)]) {
    let test = slots::test();
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| {
                slots::works_for(test.clone());
                case();
            });
        }
    });
}

/// The words of a command line in which no word has a blank.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A Run made in a laboratory, and what the laboratory recorded.
pub(crate) struct Checked {
    pub(crate) scenario: Scenario,
    pub(crate) run: Run,
    pub(crate) stats: LabStats,
    pub(crate) json: Value,
}

/// By how many seconds the laboratory delivered a packet too late while a Run was made, at most: a machine that stands still
/// makes what is measured meanwhile as much later.
pub(crate) fn late_s(run: &Run) -> f64 {
    let mark = run.local.lab.as_ref();
    mark.and_then(|mark| mark.lateness_s)
        .map_or(0.0, |late| late.max)
}

/// Runs `plumb check server` in a scenario, by name or file.
pub(crate) fn check_in(scenario: &str, options: &[&str]) -> Checked {
    measured_in(scenario, &[&["check", "server"], options].concat())
}

/// Runs a verb of plumb that prints a Run in a scenario, by name or file, in virtual time.
pub(crate) fn measured_in(scenario: &str, command: &[&str]) -> Checked {
    measured_by(LabClock::Virtual, scenario, command)
}

/// The same by either clock.
pub(crate) fn measured_by(clock: LabClock, scenario: &str, command: &[&str]) -> Checked {
    let folder = tempfile::tempdir().expect("a folder");
    let stats = folder.path().join("stats.json");
    let options = ["--stats", stats.to_str().expect("UTF-8")];
    let text = printed_run(clock, scenario, &options, command);
    if let Some(kept) = std::env::var_os("PLUMB_KEEP_RUNS") {
        // For whoever wants to look at what a test saw.
        let name = Path::new(scenario).file_stem().expect("a name").to_owned();
        let file = |suffix: &str| PathBuf::from(&kept).join(format!("{}{suffix}", name.display()));
        std::fs::write(file(".json"), &text).expect("the Run is kept");
        std::fs::copy(&stats, file(".stats.json")).expect("the statistics are kept");
    }
    Checked {
        scenario: Scenario::load(scenario).expect("the scenario loads"),
        run: Run::from_json(&text).expect("a Run"),
        stats: serde_json::from_str(&std::fs::read_to_string(&stats).expect("statistics"))
            .expect("LabStats"),
        json: serde_json::from_str(&text).expect("JSON"),
    }
}

/// Runs a verb of plumb that prints a Run in a scenario, by name or file; the Run, and the lines of
/// the links' log.
pub(crate) fn logged_by(clock: LabClock, scenario: &str, command: &[&str]) -> (Run, Vec<Value>) {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let options = ["--log", log.path().to_str().expect("UTF-8")];
    let text = printed_run(clock, scenario, &options, command);
    let log = std::fs::read_to_string(log.path()).expect("the log");
    let lines = log.lines();
    (
        Run::from_json(&text).expect("a Run"),
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
    )
}

fn printed_run(clock: LabClock, scenario: &str, options: &[&str], command: &[&str]) -> String {
    let command = [&["plumb"], command, &["--json"]].concat();
    let output = run_in(clock, scenario, options, &command);
    assert!(output.status.success(), "{scenario}: {}", stderr(&output));
    stdout(&output)
}

/// Runs a command in the first node of a scenario, by name or file, in virtual time: the machine has no part in its figures.
pub(crate) fn in_lab(scenario: &str, options: &[&str], command: &[&str]) -> Output {
    run_in(LabClock::Virtual, scenario, options, command)
}

/// The same by either clock: real time is for what a real clock or the machine's own kernel shows alone.
pub(crate) fn run_in(
    clock: LabClock,
    scenario: &str,
    options: &[&str],
    command: &[&str],
) -> Output {
    let lab: &[&str] = match clock {
        LabClock::Virtual => &["lab", "run", "--virtual", scenario],
        LabClock::Real => {
            need_root();
            &["lab", "run", scenario]
        }
    };
    plumb(&[lab, options, &["--"], command].concat())
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

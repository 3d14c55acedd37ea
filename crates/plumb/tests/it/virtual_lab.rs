//! Labs in virtual time: a command has there what it has in real time, figures are the links' alone, and nothing is left
//! behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_model::results::Outcome;
use plumb_model::run::{LabClock, Run};
use serde_json::Value;

use crate::common::machine::descendants;
use crate::common::network::Network;
use crate::common::slots::{self, Weight};
use crate::common::{
    Checked, PLUMB, in_lab, measured_in, need_root, output_of, stderr, stdout, words,
};

/// Ten times what the end of a lab takes.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

#[test]
fn a_command_has_its_files_environment_input_and_status() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"cat; echo "$WORD" >&2; pwd; umask; echo written > file; exit 7"#;
    let _slot = slots::take(Weight::Virtual);
    let mut child = Command::new(PLUMB)
        .args(["lab", "run", "--virtual", "fibre", "--", "sh", "-c"])
        .arg(format!("umask 027; {script}"))
        .env("WORD", "of the environment")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"typed\nto its end\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let place = folder.path().display();
    assert_eq!(
        stdout(&output),
        format!("typed\nto its end\n{place}\n0027\n")
    );
    assert_eq!(stderr(&output), "of the environment\n");
    assert_eq!(output.status.code(), Some(7));
    let file = folder.path().join("file");
    assert_eq!(fs::read_to_string(&file).unwrap(), "written\n");
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn bytes_pass_as_they_are_and_all_of_them() {
    // More than the console holds, and every byte there is.
    let script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 8192); sys.exit(3)";
    let output = in_lab("fibre", &[], &["python3", "-c", script]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let all: Vec<u8> = (0..=255).collect();
    assert!(
        output.stdout == all.repeat(8192),
        "{} bytes",
        output.stdout.len()
    );
}

#[test]
fn a_terminal_is_a_terminal() {
    let program = "tty; stty size; test -t 2 && echo all three";
    let line =
        format!("stty rows 31 cols 97; '{PLUMB}' lab run --virtual fibre -- sh -c '{program}'");
    let mut command = Command::new("script");
    let output = output_of(command.args(["-qec", &line, "/dev/null"]));
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    for words in ["/dev/pts/", "31 97", "all three"] {
        assert!(text.contains(words), "{words}: {text:?}");
    }
}

/// Figures that differ by no more, as a share of the larger. A program that draws ports and hashes does not read the clock
/// equally often each time, and each reading takes a little virtual time: microseconds in what lasts for seconds.
const SAME: f64 = 0.01;

/// Times that differ by no more are the same, in seconds: so much late a link may be above.
const READINGS_S: f64 = 20e-6;

/// Fails where two results differ. How busy a processor was belongs to the machine, and single points of a series to the
/// moment of the look.
fn same(first: &Value, second: &Value) {
    match (first, second) {
        (Value::Array(first), Value::Array(second)) => {
            assert_eq!(first.len(), second.len());
            first.iter().zip(second).for_each(|(a, b)| same(a, b));
        }
        (Value::Object(first), Value::Object(second)) => {
            assert!(first.keys().eq(second.keys()));
            let judged = first
                .iter()
                .filter(|(key, _)| *key != "cpu" && *key != "series");
            judged.for_each(|(key, value)| same(value, &second[key]));
        }
        (Value::Number(first), Value::Number(second)) => {
            let [first, second] = [first, second].map(|number| number.as_f64().unwrap());
            let differs = (first - second).abs();
            assert!(
                differs <= (SAME * first.abs().max(second.abs())).max(READINGS_S),
                "{first} {second}"
            );
        }
        _ => assert_eq!(first, second),
    }
}

/// What a command measured, twice.
fn twice(command: &str) -> [Checked; 2] {
    [(); 2].map(|()| measured_in("home-cable", &words(command)))
}

#[test]
fn figures_are_those_of_the_links_and_the_same_each_time() {
    let [first, second] = twice("ping server -c 50 -i 20ms");
    let mark = first.run.local.lab.as_ref().unwrap();
    assert_eq!((mark.clock, mark.overrun), (LabClock::Virtual, false));
    let late = mark.lateness_s.unwrap();
    assert!(late.p99 < 20e-6, "{late:?}");
    let Outcome::Ping(ping) = &first.run.measurements[0].outcome else {
        panic!("{:?}", first.run.measurements)
    };
    // 9 ms in each direction, and two packets of 84 bytes at 20 and 100 Mbit/s.
    let rtt_s = ping.rtt_s.unwrap().p50;
    assert!((0.018..0.0182).contains(&rtt_s), "{rtt_s}");
    same(&first.json["measurements"], &second.json["measurements"]);
    let [first, second] = twice("rate server --streams 4 --duration 2s");
    same(&first.json["measurements"], &second.json["measurements"]);
}

#[test]
fn a_lab_is_changed_and_asked_from_inside() {
    let delay = r#"{ type = "delay", delay = "10ms" }"#;
    let script = "plumb lab set line.up.delay delay=40ms >&2 && plumb ping server -c 5 --json -o run.json --quiet \
        && plumb lab stats --json > stats.json";
    let folder = tempfile::tempdir().unwrap();
    let script = format!("cd {} && {script}", folder.path().display());
    let output = Network::line(delay, delay).run(&["sh", "-c", &script]);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = fs::read_to_string(folder.path().join("run.json")).unwrap();
    let run = Run::from_json(&run).unwrap();
    let Outcome::Ping(ping) = &run.measurements[0].outcome else {
        panic!("{run:?}")
    };
    let rtt_s = ping.rtt_s.unwrap().p50;
    assert!((0.05..0.0502).contains(&rtt_s), "{rtt_s}");
    assert!(
        fs::read_to_string(folder.path().join("stats.json"))
            .unwrap()
            .contains("\"line\"")
    );
}

#[test]
fn it_needs_no_root() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Where anybody may read it: the cache is its owner's.
    let kernel = folder.path().join("kernel");
    fs::copy(kernel_of_tests(), &kernel).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", PLUMB]);
    command
        .args(["lab", "run", "--virtual", "--kernel"])
        .arg(kernel);
    command
        .args(["home-cable", "--", "plumb", "ping", "server", "-c", "3"])
        .current_dir("/");
    let output = output_of(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("3 answered"),
        "{}",
        stdout(&output)
    );
}

/// The one that the other tests run in.
fn kernel_of_tests() -> std::path::PathBuf {
    let near = Path::new(PLUMB)
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("plumb-lab-kernel"));
    let cached =
        std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache/plumb/plumb-lab-kernel"));
    let mut places = near.chain(cached).filter(|path| path.exists());
    places.next().expect("lab-kernel/build.sh has built it")
}

#[test]
fn why_there_is_no_lab_is_said() {
    let refused = |kernel: &str| {
        let mut command = Command::new(PLUMB);
        command.args([
            "lab",
            "run",
            "--virtual",
            "--kernel",
            kernel,
            "fibre",
            "--",
            "true",
        ]);
        let output = output_of(&mut command);
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        stderr(&output)
    };
    let absent = refused("/nowhere/kernel");
    assert!(
        absent.contains("/nowhere/kernel") && absent.contains("lab-kernel/build.sh"),
        "{absent}"
    );
    assert!(refused("/bin").contains("is no program"));
    let ends = refused("/bin/true");
    assert!(
        ends.contains("the lab's kernel /") && ends.contains("exit status 0"),
        "{ends}"
    );
    // What is wrong inside is said as it is outside.
    let output = in_lab("no-such-scenario", &[], &["true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr(&output).contains("no-such-scenario"),
        "{}",
        stderr(&output)
    );
}

/// A shell script around `plumb lab run --virtual`, with file systems of its own: root's.
fn among_other_file_systems(script: &str) -> Output {
    need_root();
    let mut command = Command::new("unshare");
    // Where nothing is mounted over it: the program may lie in /tmp.
    let folder = Path::new(PLUMB).parent().unwrap().display();
    let script = format!("set -e; cd /; mount --bind {folder} /media; P=/media/plumb; {script}");
    output_of(
        command
            .args(["--mount", "sh", "-c", &script])
            .env_remove("TMPDIR"),
    )
}

#[test]
fn where_its_memory_cannot_lie_is_said_and_another_folder_serves() {
    let lab = "$P lab run --virtual fibre -- echo inside";
    for (options, why) in [
        ("size=1m", "has 1 MiB free"),
        ("noexec", "allows no programs"),
    ] {
        let mounts = "for at in /dev/shm /tmp; do mount -t tmpfs -o OPTIONS none $at; done"
            .replace("OPTIONS", options);
        let output = among_other_file_systems(&format!("{mounts}; {lab}"));
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        for words in [why, "/dev/shm", "/tmp", "set TMPDIR"] {
            assert!(
                stderr(&output).contains(words),
                "{words}: {}",
                stderr(&output)
            );
        }
        let room = "mount -t tmpfs none /mnt; export TMPDIR=/mnt";
        let output = among_other_file_systems(&format!("{mounts}; {room}; {lab}; ls /mnt"));
        assert_eq!(stdout(&output), "inside\n", "{}", stderr(&output));
    }
}

#[test]
fn a_full_disk_ends_what_fills_it_and_says_so() {
    // The guest's memory itself.
    let output = among_other_file_systems(
        "mount -t tmpfs -o size=300m none /dev/shm;
         status=0; $P lab run --virtual fibre -- python3 -c 'print(len(bytes([1]) * (800 << 20)))' || status=$?;
         ls /dev/shm; exit $status",
    );
    let said = stderr(&output);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(125), ""),
        "{said}"
    );
    assert!(
        said.contains("memory lies is full") && !said.contains("Call Trace"),
        "{said}"
    );
    // A file of the user's: the program in the lab hears of it.
    let output = among_other_file_systems(
        "mount -t tmpfs -o size=64k none /mnt; $P lab run --virtual fibre -- dd if=/dev/zero of=/mnt/file bs=1k count=100",
    );
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

/// A filter of system calls (`seccomp(2)`) that refuses ptrace (101) and seccomp (317), as containers do.
const CONFINED: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
load, equal, answer = 0x20, 0x15, 0x06
program = [(load, 0, 0, 0)]
for number in (101, 317):
    program += [(equal, 0, 1, number), (answer, 0, 0, 0x00050001)]
program.append((answer, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(program), ctypes.addressof(code))), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_machine_that_forbids_it_is_named() {
    let mut command = Command::new("python3");
    command.args(["-c", CONFINED, PLUMB]);
    let output = output_of(command.args(["lab", "run", "--virtual", "fibre", "--", "true"]));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(
        said.contains("ptrace") && said.contains("seccomp"),
        "{said}"
    );
}

#[test]
fn a_program_that_waits_awake_ends_the_lab_after_a_bound() {
    let _slot = slots::take(Weight::Virtual);
    let mut child = Command::new(PLUMB)
        .args(["lab", "run", "--virtual", "--patience", "2s", "fibre", "--"])
        .args(["python3", "-c", "while True: pass"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = ended(&mut child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(
        said.contains("no time passed in the lab for 2 s") && said.contains("waits awake"),
        "{said}"
    );
}

#[test]
fn more_labs_than_processors_are_exact_too() {
    let all: Vec<f64> = std::thread::scope(|scope| {
        let labs: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut command = Command::new("taskset");
                    command.args(["--cpu-list", "0", PLUMB]).args([
                        "lab",
                        "run",
                        "--virtual",
                        "home-cable",
                        "--",
                    ]);
                    let output = command
                        .args([
                            "plumb", "ping", "server", "-c", "20", "-i", "20ms", "--json",
                        ])
                        .output();
                    let run = Run::from_json(&stdout(&output.unwrap())).unwrap();
                    let Outcome::Ping(ping) = &run.measurements[0].outcome else {
                        panic!("{run:?}")
                    };
                    ping.rtt_s.unwrap().p50
                })
            })
            .collect();
        labs.into_iter().map(|lab| lab.join().unwrap()).collect()
    });
    assert!(
        all.iter().all(|rtt_s| (0.018..0.0182).contains(rtt_s)),
        "{all:?}"
    );
}

/// A lab whose command has said that it runs, and then waits for input.
fn waiting() -> Child {
    let mut child = Command::new(PLUMB)
        .args([
            "lab",
            "run",
            "--virtual",
            "fibre",
            "--",
            "sh",
            "-c",
            "echo ready; exec cat",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
    lines.read_line(&mut first).unwrap();
    assert_eq!(first, "ready\n");
    child
}

#[test]
fn a_signal_reaches_the_command_and_a_kill_leaves_nothing() {
    let _slot = slots::take(Weight::Virtual);
    for (signal, status) in [("TERM", Some(143)), ("INT", Some(130)), ("KILL", None)] {
        let mut child = waiting();
        let all: BTreeSet<u32> = descendants(child.id()).into_iter().collect();
        assert!(all.len() > 2, "a kernel and its programs: {all:?}");
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        let output = ended(&mut child);
        assert_eq!(
            output.status.code(),
            status,
            "{signal}: {}",
            stderr(&output)
        );
        let until = Instant::now() + ENDS_WITHIN;
        let left = || {
            all.iter()
                .filter(|pid| is_plumbs(**pid))
                .collect::<Vec<_>>()
        };
        while !left().is_empty() {
            assert!(Instant::now() < until, "{signal} leaves {:?}", left());
            sleep(Duration::from_millis(20));
        }
    }
}

/// Whether a process of that number still runs a kernel or a program of one: another may have the number by now.
fn is_plumbs(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_over = state
        .rsplit(") ")
        .next()
        .is_some_and(|rest| rest.starts_with('Z'));
    (name.starts_with("plumb-lab-kern") || name.starts_with("uml-userspace")) && !is_over
}

fn ended(child: &mut Child) -> Output {
    let until = Instant::now() + ENDS_WITHIN;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it goes on");
        sleep(Duration::from_millis(20));
    }
    let mut output = Output {
        status: child.wait().unwrap(),
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    let errors = child.stderr.as_mut().unwrap();
    std::io::Read::read_to_end(errors, &mut output.stderr).unwrap();
    output
}

//! The congestion window that a capture shows, at the sender and at the receiver, beside what the sender's kernel says of
//! it (TCP_INFO) all the while.

use std::fs;
use std::path::Path;
use std::process::Command;

use plumb_model::results::Outcome;
use plumb_model::results::capture::{
    CongestionPhase, CongestionResult, ConnectionGraph, ConnectionResult,
};
use plumb_model::run::Run;
use serde_json::Value;

use crate::common::network::{Network, links_late_s};
use crate::common::{PLUMB, need_root, output_of, plumb, stderr, stdout};

const SHAPER: &str =
    r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "60p" } }"#;
const DELAY: &str = r#"{ type = "delay", delay = "15ms" }"#;
/// Its round trip, and with 60 packets of 1518 bytes in the queue.
const RTT_S: f64 = 0.030;
const LOADED_RTT_S: f64 = RTT_S + 60.0 * 1518.0 * 8.0 / 20e6;
/// Where it is captured: at the sender, and at the receiver.
const ENDS: [&str; 2] = ["client", "server"];
/// A window of 40 segments, the smallest that fills the line, is known to a segment, and changes by another one meanwhile.
const TOLERANCE: f64 = 2.0 / 40.0;

/// Reads and forgets what a connection brings.
const SINK: &str = "
import socket
listener = socket.create_server(('', 9000))
while True:
    connection, _ = listener.accept()
    while connection.recv(1 << 20): pass
";

/// Sends for two seconds by an algorithm, so many bytes at a time with a pause after them, and writes down every 2 ms the
/// time, the state of congestion avoidance, the size of segments, how many segments are not acknowledged, the threshold of slow
/// start, and the window in segments.
const SEND: &str = r#"
import json, socket, struct, sys, threading, time
algorithm, size, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
s.connect(("server", 9000))
ends = time.monotonic() + 2
def sample():
    with open("truth.jsonl", "w") as out:
        while time.monotonic() < ends:
            info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            words = struct.unpack("24I", info[8:])
            print(json.dumps([time.time(), info[1], words[2], words[4], words[17], words[18]]), file=out)
            time.sleep(0.002)
thread = threading.Thread(target=sample)
thread.start()
while time.monotonic() < ends:
    s.sendall(bytes(size))
    time.sleep(pause)
thread.join()
"#;

/// What the sender's kernel said at a time.
#[derive(Debug, Clone, Copy)]
struct Truth {
    unix_s: f64,
    phase: CongestionPhase,
    window_bytes: f64,
    /// Whether the window held the sender back: a program that waits for a processor leaves it empty, and nothing shows it.
    fills_window: bool,
}

/// Segments of the window that a sender which it holds back may leave: one that is put together, and one sent late.
const SPARE: u64 = 2;

/// States of Linux in which losses are repaired (TCP_CA_Recovery and TCP_CA_Loss of tcp.h).
const RECOVERY: [u64; 2] = [3, 4];

fn truths(file: &Path) -> Vec<Truth> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let number = |place: usize| line[place].as_u64().unwrap();
        let (state, mss, unacknowledged) = (number(1), number(2), number(3));
        let (threshold, window) = (number(4), number(5));
        let phase = match window < threshold {
            _ if RECOVERY.contains(&state) => CongestionPhase::Recovery,
            true => CongestionPhase::SlowStart,
            false => CongestionPhase::Avoidance,
        };
        Truth {
            unix_s: line[0].as_f64().unwrap(),
            phase,
            window_bytes: (mss * window) as f64,
            fills_window: unacknowledged + SPARE >= window,
        }
    });
    lines.collect()
}

/// Captures at both ends of the line while the client sends, so many bytes at a time with a pause after them; and by how many
/// seconds the line was late at most.
fn sent(
    up: &str,
    settings: Option<(&str, &str)>,
    arguments: [&str; 3],
) -> (tempfile::TempDir, f64) {
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let mut line = Network::line(up, DELAY);
    line.service("server", &["python3", "-c", SINK], 9000);
    if let Some((variable, value)) = settings {
        line.sysctl("server", variable, value);
    }
    let file = line.file();
    fs::write(folder.path().join("send.py"), SEND).unwrap();
    let mut command = Command::new(PLUMB);
    command
        .current_dir(&folder)
        .args(["lab", "run", "--virtual", "--stats", "stats.json"])
        .arg(file.path());
    for end in ENDS {
        command.args(["--capture", &format!("line@{end}={end}.pcapng")]);
    }
    command.args(["--", "python3", "send.py"]).args(arguments);
    let output = output_of(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let stats = fs::read(folder.path().join("stats.json")).unwrap();
    (
        folder,
        links_late_s(&serde_json::from_slice(&stats).unwrap()),
    )
}

/// A capture, its connection, and the graph of it.
struct Read {
    began_unix_s: f64,
    connection: ConnectionResult,
    graph: ConnectionGraph,
}

impl Read {
    fn of(folder: &Path, end: &str) -> Self {
        let file = folder.join(format!("{end}.pcapng"));
        let output = plumb(&["capture", "--json", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        let run = Run::from_json(&stdout(&output)).unwrap();
        let Outcome::Capture(result) = run.measurements.into_iter().next().unwrap().outcome else {
            panic!("not of a capture");
        };
        Self {
            began_unix_s: result.began_unix_s.unwrap(),
            connection: result.connections[0].clone(),
            graph: result.graphs.unwrap().connections[0].clone(),
        }
    }

    fn congestion(&self) -> CongestionResult {
        self.connection.up.congestion.unwrap()
    }

    fn window_bytes(&self, unix_s: f64) -> Option<f64> {
        let since_s = unix_s - self.began_unix_s - self.graph.at_s;
        let values = &self.graph.up.as_ref().unwrap().congestion_window_bytes;
        let value = values.get((since_s / self.graph.bin_s) as usize)?;
        value.map(|bytes| bytes as f64)
    }

    fn phase(&self, unix_s: f64) -> Option<CongestionPhase> {
        let mut changes = self.graph.up.as_ref().unwrap().phases.iter().rev();
        let latest = changes.find(|change| self.began_unix_s + change.at_s <= unix_s);
        latest.map(|change| change.phase)
    }
}

/// How often the capture shows a window that held the sender back where the kernel repaired no loss shortly before, how often the
/// window that it shows is the kernel's, and how often the phase is, as shares of the times at which the kernel was asked.
#[derive(Debug)]
struct Agreement {
    shown: f64,
    right: f64,
    in_phase: f64,
}

/// What the capture of an end shows is right where the kernel had it within so many seconds, or within the bin.
fn compare(read: &Read, truths: &[Truth], within_s: f64) -> Agreement {
    let within_s = within_s + read.graph.bin_s;
    let around = |truth: &Truth, within_s: f64| {
        let unix_s = truth.unix_s;
        let near = move |other: &&Truth| (other.unix_s - unix_s).abs() <= within_s;
        truths.iter().filter(near)
    };
    let share = |of: &[bool]| of.iter().filter(|is| **is).count() as f64 / of.len() as f64;
    let [mut shown, mut right, mut in_phase] = [const { Vec::new() }; 3];
    for truth in truths {
        let phase = read.phase(truth.unix_s);
        in_phase.push(around(truth, within_s).any(|truth| Some(truth.phase) == phase));
        let bytes = read.window_bytes(truth.unix_s);
        // The round after a repair shows it.
        let mut close = around(truth, LOADED_RTT_S);
        if close.all(|truth| truth.phase != CongestionPhase::Recovery && truth.fills_window) {
            shown.push(bytes.is_some());
        }
        if let Some(bytes) = bytes {
            let windows = around(truth, within_s).map(|truth| truth.window_bytes);
            let least = windows.clone().fold(f64::INFINITY, f64::min) * (1.0 - TOLERANCE);
            let most = windows.fold(0.0, f64::max) * (1.0 + TOLERANCE);
            let is_right = (least..=most).contains(&bytes);
            if !is_right {
                println!("at {}: {bytes}, not {least} to {most}", truth.unix_s);
            }
            right.push(is_right);
        }
    }
    Agreement {
        shown: share(&shown),
        right: share(&right),
        in_phase: share(&in_phase),
    }
}

/// Of a sender that always has more to send.
fn follows(algorithm: &str, up: &str) {
    let (folder, late_s) = sent(up, None, [algorithm, "65536", "0"]);
    let truths = truths(&folder.path().join("truth.jsonl"));
    let of_windows = truths.iter().filter(|truth| truth.fills_window).count();
    assert!(of_windows > 100, "{of_windows} of {}", truths.len());
    for (end, within_s) in ENDS.into_iter().zip([RTT_S, LOADED_RTT_S]) {
        let read = Read::of(folder.path(), end);
        // The sender's kernel knows as much later of what a line that stood still did.
        let agreement = compare(&read, &truths, within_s + late_s);
        println!("{algorithm} {end}: {agreement:?} {:?}", read.congestion());
        assert!(agreement.shown >= 0.8, "{end}: {agreement:?}");
        assert!(agreement.right >= 0.98, "{end}: {agreement:?}");
        assert!(agreement.in_phase >= 0.95, "{end}: {agreement:?}");
        if end == "client" {
            let later = |truth: &&Truth| truth.phase != CongestionPhase::SlowStart;
            let truth_s = truths.iter().find(later).unwrap().unix_s - read.began_unix_s;
            let end_s = read.congestion().slow_start_end_s.unwrap() + read.connection.at_s;
            assert!((end_s - truth_s).abs() <= LOADED_RTT_S, "{end_s} {truth_s}");
        }
    }
}

#[test]
fn the_window_of_cubic_is_the_senders_own() {
    follows("cubic", &format!("{SHAPER}, {DELAY}"));
}

#[test]
fn the_window_of_reno_is_the_senders_own_where_packets_are_lost() {
    let loss = r#"{ type = "loss", ratio = "0.5%" }"#;
    follows("reno", &format!("{loss}, {SHAPER}, {DELAY}"));
}

#[test]
fn a_program_with_little_to_send_and_a_small_window_are_no_congestion() {
    let up = format!("{SHAPER}, {DELAY}");
    let (paced, _) = sent(&up, None, ["cubic", "20000", "0.02"]);
    let small = Some(("net.ipv4.tcp_rmem", "4096 32768 32768"));
    let (small, _) = sent(&up, small, ["cubic", "65536", "0"]);
    for end in ENDS {
        let congestion = Read::of(paced.path(), end).congestion();
        println!("{end}: {congestion:?}");
        assert!(congestion.app_ratio > 0.8, "{end}: {congestion:?}");
        let congestion = Read::of(small.path(), end).congestion();
        println!("{end}: {congestion:?}");
        assert!(congestion.rwnd_ratio > 0.8, "{end}: {congestion:?}");
    }
}

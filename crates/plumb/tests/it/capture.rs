//! `plumb capture` of what a laboratory recorded at both ends of a line, beside tshark and tcptrace, and of bad input.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use plumb_model::results::Outcome;
use plumb_model::results::capture::{CaptureLimit, CaptureResult};
use plumb_model::run::Run;

use crate::common::network::Network;
use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, computed, late_s, need_root, output_of, plumb, stderr, stdout};

/// Captures at both ends of a line, while the client sends to the server for two seconds.
pub(crate) fn captured(up: &str, down: &str) -> (tempfile::TempDir, Run) {
    need_root();
    let (line, folder) = (Network::served_line(up, down), tempfile::tempdir().unwrap());
    let file = line.file();
    let mut command = Command::new(PLUMB);
    command
        .current_dir(&folder)
        .args(["lab", "run", "--virtual"])
        .arg(file.path());
    command.args([
        "--capture",
        "line@client=client.pcapng",
        "--capture",
        "line@server=server.pcapng",
        "--log",
        "log.jsonl",
        "--",
    ]);
    command.args([
        "plumb",
        "rate",
        "--up",
        "--duration",
        "2s",
        "--json",
        "server",
    ]);
    let output = output_of(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    (folder, Run::from_json(&stdout(&output)).unwrap())
}

fn result(file: &Path) -> CaptureResult {
    let output = plumb(&["capture", "--json", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    match run.measurements.into_iter().next().unwrap().outcome {
        Outcome::Capture(result) => *result,
        other => panic!("{other:?}"),
    }
}

/// How many packets of a file a filter of Wireshark takes.
fn tshark(file: &Path, filter: &str) -> u64 {
    let mut command = Command::new("tshark");
    command.args(["-n", "-Y", filter, "-r"]).arg(file);
    stdout(&computed(&mut command)).lines().count() as u64
}

#[test]
fn losses_are_counted_alike_at_both_ends_and_by_others() {
    const DELAY: &str = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "200p" } }, { type = "delay", delay = "15ms" }"#;
    let (folder, run) = captured(
        &format!(r#"{{ type = "loss", ratio = "1%" }}, {DELAY}"#),
        DELAY,
    );
    let sent = run
        .measurements
        .iter()
        .find_map(|m| m.outcome.throughput())
        .unwrap();
    for end in ["client", "server"] {
        let file = folder.path().join(format!("{end}.pcapng"));
        let result = result(&file);
        assert_eq!(tshark(&file, "frame"), result.packets);
        assert_eq!(
            tshark(&file, "tcp.analysis.lost_segment"),
            result.tcp.segments.lost_segments
        );
        let heaviest = &result.connections[0];
        let segments = &heaviest.up.segments;
        // What the sender's TCP counted; the last may be after it was asked, or be dropped behind the capture.
        let repeated = segments.repeated() + segments.out_of_order;
        let told = sent.tcp.retransmits;
        assert!(
            told > 0 && repeated.abs_diff(told) <= 1 + told / 20,
            "{end}: {segments:?}, {told}"
        );
        assert_eq!(segments.out_of_order, 0, "{end}: the line keeps the order");
        assert_eq!(
            heaviest.limit,
            Some(CaptureLimit::Path),
            "{end}: {:?}",
            heaviest.limited
        );
        assert!(heaviest.handshake_seen && heaviest.lacking.is_empty());
        // Round trips of both sides sum up to the line's, and tcptrace has the same payload.
        let rtt = |d: Option<plumb_model::distribution::Distribution>| d.map_or(0.0, |d| d.min);
        let whole = rtt(heaviest.up.rtt_s) + rtt(heaviest.down.rtt_s);
        // The side that hardly sends has few of them, and all may have been made while the line stood still.
        let most = 0.04 + late_s(&run);
        assert!((0.03..most).contains(&whole), "{end}: {whole}");
        assert_eq!(tcptrace(&file), heaviest.up.payload_bytes, "{end}");
    }
}

/// The same capture in the classic format, which alone tcptrace reads.
pub(crate) fn classic(file: &Path) -> std::path::PathBuf {
    let classic = file.with_extension("pcap");
    let mut convert = Command::new("tshark");
    convert
        .args(["-F", "pcap", "-r"])
        .arg(file)
        .arg("-w")
        .arg(&classic);
    assert!(computed(&mut convert).status.success());
    classic
}

/// Most payload of a connection in one direction, repetitions not counted, as tcptrace has it.
fn tcptrace(file: &Path) -> u64 {
    let mut command = Command::new("tcptrace");
    let output = computed(command.arg("-ln").arg(classic(file)));
    let text = stdout(&output);
    let lines = text
        .lines()
        .filter(|line| line.contains("unique bytes sent:"));
    let numbers = lines.flat_map(|line| {
        line.split_whitespace()
            .filter_map(|word| word.parse::<u64>().ok())
    });
    numbers.max().expect(&text)
}

/// At both ends of a line that strips window scaling: 64 kB in 40 ms are 13 Mbit/s.
fn captured_with_a_small_window() -> tempfile::TempDir {
    const DELAY: &str = r#"{ type = "delay", delay = "20ms" }"#;
    let strip = format!(r#"{{ type = "strip_tcp_options", options = ["wscale"] }}, {DELAY}"#);
    let _slot = slots::take(Weight::Slow);
    captured(&strip, DELAY).0
}

#[test]
fn a_small_window_is_named_in_a_sentence_that_fits() {
    let folder = captured_with_a_small_window();
    for end in ["client", "server"] {
        let file = folder.path().join(format!("{end}.pcapng"));
        let output = plumb(&["capture", file.to_str().unwrap()]);
        let text = stdout(&output);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let sentence = text.replace('\n', " ");
        assert!(
            sentence.contains("the receiver's window of 65.5 kB at most limited it for"),
            "{text}"
        );
        assert!(sentence.contains("has no window scaling"), "{text}");
    }
}

#[test]
fn standard_input_and_what_is_no_capture() {
    let ask = |bytes: &[u8]| {
        let mut child = Command::new(PLUMB);
        child
            .args(["capture", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        child.wait_with_output().unwrap()
    };
    let header = [
        &0xa1b2_c3d4_u32.to_le_bytes()[..],
        &[2, 0, 4, 0],
        &[0; 8],
        &[255, 255, 0, 0, 101, 0, 0, 0],
    ]
    .concat();
    let empty = ask(&header);
    assert!(
        empty.status.success() && stdout(&empty).contains("0 packets"),
        "{}",
        stderr(&empty)
    );
    let cut = ask(&[&header[..], &[0; 9]].concat());
    assert!(cut.status.success(), "{}", stderr(&cut));
    assert!(
        stdout(&cut).replace('\n', " ").contains("it is cut short"),
        "{}",
        stdout(&cut)
    );
    let refused = ask(b"#!/bin/sh");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("cannot read -: it is no capture that can be read"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn diagnose_takes_a_run_from_a_pipe_and_a_capture_from_a_file() {
    let saved = stdout(&plumb(&["host", "--json"]));
    let mut child = Command::new(PLUMB);
    child
        .args(["diagnose", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(saved.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Judged"), "{}", stdout(&output));
    let folder = captured_with_a_small_window();
    let file = folder.path().join("client.pcapng");
    let output = plumb(&["diagnose", file.to_str().unwrap()]);
    let text = stdout(&output);
    assert!(text.contains("window-scaling-stripped"), "{text}");
}

//! `plumb capture --follow`: a file that grows, is cut within a record, and is replaced.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plumb_model::results::Outcome;
use plumb_model::results::capture::CaptureResult;
use plumb_model::run::Run;

use crate::common::machine::signal;
use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, pcap, refused, stderr, stdout};

/// Follows a file in a process of its own, and waits until it does.
fn follow(file: &Path, options: &[&str]) -> Child {
    let mut command = Command::new(PLUMB);
    command.args(["capture", "--json", "--follow"]).arg(file);
    command
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("Following"), "{line}");
    child
}

fn result(child: Child) -> (CaptureResult, Vec<String>) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    let notes = run.notes.iter().map(|note| format!("{note:?}")).collect();
    match run.measurements.into_iter().next().unwrap().outcome {
        Outcome::Capture(result) => (*result, notes),
        other => panic!("{other:?}"),
    }
}

/// The records of a connection.
fn records() -> Vec<Vec<u8>> {
    let packets = pcap::connection(80, b"GET /", b"200");
    let records = packets
        .iter()
        .map(|(ms, packet)| pcap::record(1_000_000_000_000 + ms * 1_000_000, packet));
    records.collect()
}

#[test]
fn what_is_written_meanwhile_counts_and_it_ends_within_a_second() {
    let _slot = slots::take(Weight::Processor);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grows.pcap");
    let mut file = File::create(&path).unwrap();
    // Not even the header is whole.
    file.write_all(&pcap::head(1)[..10]).unwrap();
    let child = follow(&path, &[]);
    file.write_all(&pcap::head(1)[10..]).unwrap();
    let records = records();
    for record in &records {
        // Within its head, and within the packet.
        for part in [&record[..9], &record[9..30], &record[30..]] {
            file.write_all(part).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    file.write_all(&records[0][..20]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    signal(child.id() as i32, "INT");
    let (result, notes) = result(child);
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(
        (result.packets, result.files[0].incomplete.as_deref()),
        (9, None),
        "{notes:?}"
    );
    assert_eq!(result.connections[0].up.payload_bytes, 5);
    assert_eq!(result.files[0].format, "pcap");
}

#[test]
fn it_ends_after_its_time_or_when_the_file_is_another_one() {
    let _slot = slots::take(Weight::Processor);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    let whole = [pcap::head(1), records().concat()].concat();
    fs::write(&path, &whole).unwrap();
    let began = Instant::now();
    let (timed, _) = result(follow(&path, &["--for", "700ms"]));
    assert!(
        began.elapsed() >= Duration::from_millis(700),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(timed.packets, 9);
    let child = follow(&path, &[]);
    std::thread::sleep(Duration::from_millis(300));
    let other = folder.path().join("b.pcap");
    fs::write(&other, &whole).unwrap();
    fs::rename(&other, &path).unwrap();
    let (replaced, _) = result(child);
    let why = replaced.files[0].incomplete.clone().unwrap();
    assert!(why.contains("replaced") && replaced.packets == 9, "{why}");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    for (arguments, words) in [
        (
            &["capture", "--follow", "-"][..],
            "standard input is read on by itself",
        ),
        (&["capture", "--follow", "a", "b"], "takes one file"),
        (&["capture", "--for", "1s", "a"], "--follow"),
    ] {
        let output = refused(arguments);
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

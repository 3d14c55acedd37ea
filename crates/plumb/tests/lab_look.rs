//! Looking at the links of a laboratory: the log and captures agree with what the links count.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::process::Command;

use common::network::Network;
use common::words;
use serde_json::Value;

/// Runs a command in a network whose slow line loses; files that the options name are in the folder.
fn lab_run(options: &[&str], command: &[&str]) -> (tempfile::TempDir, String) {
    let mut line = Network::line(
        r#"{ type = "shaper", rate = "5mbit", queue = { type = "fifo", limit = "20p" } }, { type = "loss", ratio = "10%" }"#,
        r#"{ type = "delay", delay = "1ms" }"#,
    );
    line.add("[vary]\n\"line.up.shaper.rate\" = [\"5mbit\", \"50mbit\"]");
    let (file, folder) = (line.file(), tempfile::tempdir().unwrap());
    let output = Command::new(common::PLUMB)
        .current_dir(&folder)
        .args(["lab", "run"])
        .arg(file.path())
        .args(options)
        .arg("--")
        .args(command)
        .output()
        .unwrap();
    let errors = common::stderr(&output);
    assert!(output.status.success(), "{errors}");
    (folder, errors)
}

/// The blocks of a pcapng file: type and body.
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let length = word(&file[4..]) as usize;
        blocks.push((word(file), &file[8..length - 4]));
        file = &file[length..];
    }
    blocks
}

#[test]
fn the_log_and_the_captures_hold_every_packet() {
    let (folder, _) = lab_run(
        &[
            "--stats",
            "stats.json",
            "--log",
            "log",
            "--capture",
            "line@client=a.pcapng",
            "--capture",
            "line@server=b.pcapng",
        ],
        &words("plumb lab flood server --rate 10mbit --duration 500ms"),
    );
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let stats: Value = serde_json::from_slice(&read("stats.json")).unwrap();
    let chain = &stats["links"]["line"]["up"]["chain"];
    let count = |pointer: &str| chain.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    // 500 ms of 10 Mbit/s are 437 packets of 1428 bytes; half of them fit.
    assert!(count("/offered/packets") > 300);
    assert!(count("/dropped/overflow") > 50 && count("/dropped/loss") > 5);

    let text = String::from_utf8(read("log")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines[0]["schema"], "plumb.lab-log/1");
    let up = || lines.iter().filter(|line| line["way"] == "up");
    let dropped = |cause: &str| up().filter(|line| line["dropped"] == cause).count() as u64;
    assert_eq!(
        up().filter(|l| l.get("left_s").is_some()).count() as u64,
        count("/delivered/packets")
    );
    assert_eq!(dropped("overflow"), count("/dropped/overflow"));
    assert_eq!(dropped("loss"), count("/dropped/loss"));
    assert!(up().all(|line| line["destination_port"] == 9 || line["protocol"] != 17));

    // Enhanced packet blocks, by the direction in their flags: 2 is outbound, 1 inbound.
    let packets = |name: &str, direction: u8| {
        let file = read(name);
        let found = blocks(&file);
        assert_eq!((found[0].0, found[1].0), (0x0a0d_0d0a, 1), "{name}");
        let flags = |body: &[u8]| body[body.len() - 8];
        found
            .iter()
            .filter(|(kind, body)| *kind == 6 && flags(body) == direction)
            .count() as u64
    };
    assert_eq!(packets("a.pcapng", 2), count("/offered/packets"));
    assert_eq!(packets("b.pcapng", 1), count("/delivered/packets"));
}

#[test]
fn a_full_disk_stops_the_log_and_not_the_lab() {
    let (_, errors) = lab_run(
        &["--log", "/dev/full"],
        &words("plumb lab flood server --rate 10mbit --duration 300ms"),
    );
    let says = "not all could be written to /dev/full: No space left on device";
    assert!(errors.contains(says), "{errors}");
}

#[test]
fn statistics_that_cannot_be_written_are_known_before_the_command_runs() {
    let marker = tempfile::tempdir().unwrap();
    let ran = marker.path().join("ran");
    let run = |stats: &str| {
        let output = common::plumb(&[
            "lab",
            "run",
            "fibre",
            "--stats",
            stats,
            "--",
            "touch",
            ran.to_str().unwrap(),
        ]);
        (output.status.code(), common::stderr(&output))
    };
    let (status, errors) = run("/nowhere/stats.json");
    assert_eq!(status, Some(125), "{errors}");
    assert!(
        errors.contains("cannot write /nowhere/stats.json"),
        "{errors}"
    );
    assert!(!ran.exists());
    let (status, errors) = run("/dev/full");
    assert_eq!(status, Some(125), "{errors}");
    let says = "plumb lab: cannot write /dev/full: No space left on device";
    assert!(errors.contains(says), "{errors}");
    assert!(ran.exists());
}

#[test]
fn the_seed_that_was_drawn_gives_the_same_network_again() {
    let drawn = |options: &[&str]| -> Vec<String> {
        let (_, errors) = lab_run(options, &["true"]);
        let lines = errors.lines().filter(|line| line.contains("--seed"));
        lines.map(str::to_owned).collect()
    };
    let two = drawn(&["--vary", "--repeat", "2", "--seed", "7"]);
    assert_eq!(two.len(), 2);
    assert!(
        two[0].contains("line.up.shaper.rate=") && two[0] != two[1],
        "{two:?}"
    );
    assert_eq!(drawn(&["--vary", "--seed", "8"]), two[1..]);
    let options = ["--vary", "--seed", "8", "--stats", "stats.json"];
    let (folder, _) = lab_run(&options, &["true"]);
    let stats = std::fs::read(folder.path().join("stats.json")).unwrap();
    let stats: Value = serde_json::from_slice(&stats).unwrap();
    let rate = stats["drawn"]["line.up.shaper.rate"].as_str().unwrap();
    assert!(two[1].ends_with(&format!("line.up.shaper.rate={rate}")));
}

//! `plumb capture --export` beside tshark's fields and tcptrace's graphs, the graphs of the page, and outputs that cannot
//! be written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use plumb_model::results::Outcome;
use plumb_model::run::Run;

use crate::capture::{captured, classic};
use crate::common::{PLUMB, computed, plumb, stderr, stdout};

const DELAY: &str = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "200p" } }, { type = "delay", delay = "15ms" }"#;

/// A capture at the client of a line that loses one packet in a hundred.
fn lossy() -> (tempfile::TempDir, std::path::PathBuf) {
    let up = format!(r#"{{ type = "loss", ratio = "1%" }}, {DELAY}"#);
    let (folder, _) = captured(&up, DELAY);
    let file = folder.path().join("client.pcapng");
    (folder, file)
}

fn export(file: &Path, to: &Path) {
    let [file, to] = [file, to].map(|path| path.to_str().unwrap());
    let output = plumb(&["capture", file, "--export", to]);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Fields of every segment, as tshark has them.
fn tshark(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-Y", "tcp", "-T", "fields", "-r"])
        .arg(file);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = computed(&mut command);
    let text = stdout(&output);
    let lines = text.lines();
    lines
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

#[test]
fn rows_have_what_tshark_has() {
    let (folder, file) = lossy();
    let rows = folder.path().join("rows.csv");
    export(&file, &rows);
    let text = fs::read_to_string(&rows).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let ours: Vec<BTreeMap<&str, &str>> = lines
        .map(|line| head.iter().copied().zip(line).collect())
        .collect();
    let theirs = tshark(
        &file,
        &[
            "frame.number",
            "tcp.stream",
            "tcp.seq",
            "tcp.ack",
            "tcp.len",
            "tcp.window_size",
            "tcp.options.sack_le",
            "tcp.options.sack_re",
            "tcp.analysis.ack_rtt",
            "frame.time_relative",
            "tcp.analysis.bytes_in_flight",
        ],
    );
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() > 1000);
    let (mut sacks, mut samples, mut in_flight) = (0, 0, 0);
    for (our, their) in ours.iter().zip(&theirs) {
        let names = [
            "packet",
            "connection",
            "seq",
            "ack",
            "payload_bytes",
            "window_bytes",
        ];
        for (name, value) in names.iter().zip(their) {
            // tshark has an acknowledgement of 0 where there is none.
            let own = if our[name].is_empty() { "0" } else { our[name] };
            assert_eq!(own, value, "{name}: {our:?}");
        }
        let (left, right) = (their[6].split(','), their[7].split(','));
        let blocks: Vec<String> = left
            .zip(right)
            .filter(|(left, _)| !left.is_empty())
            .map(|(left, right)| format!("{left}-{right}"))
            .collect();
        assert_eq!(our["sack"], blocks.join(" "), "{our:?}");
        sacks += blocks.len();
        let near = |own: &str, other: &str| {
            let [own, other] = [own, other].map(|s| s.parse::<f64>().unwrap());
            (own - other).abs() < 2e-6
        };
        assert!(near(our["at_s"], &their[9]), "{our:?}: {}", their[9]);
        // tshark also has round trips of what was repeated.
        if !our["rtt_s"].is_empty() {
            assert!(near(our["rtt_s"], &their[8]), "{our:?}: {}", their[8]);
            samples += 1;
        }
        // What SACK blocks report is still on its way for tshark.
        if !their[10].is_empty() && our["payload_bytes"] != "0" {
            let [own, other] =
                [our["in_flight_bytes"], &their[10]].map(|s| s.parse::<u64>().unwrap());
            assert!(
                own <= other || our["classes"].contains("retransmission"),
                "{our:?}: {other}"
            );
            in_flight += u64::from(own == other);
        }
    }
    assert!(
        sacks > 10 && samples > 100 && in_flight > 100,
        "{sacks}, {samples}, {in_flight}"
    );
    // The same rows as objects.
    let objects = folder.path().join("rows.jsonl");
    export(&file, &objects);
    let text = fs::read_to_string(&objects).unwrap();
    for (our, line) in ours.iter().zip(text.lines()) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["seq"].to_string(), our["seq"]);
        let words: Vec<&str> = object["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_str().unwrap())
            .collect();
        assert_eq!(words.join(" "), our["classes"]);
    }
    assert_eq!(text.lines().count(), ours.len());
}

/// How often each kind of line is in a graph, by its colour where it is a line.
fn counts(graph: &Path) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(graph).unwrap();
    let (mut counts, mut colour) = (BTreeMap::new(), "");
    for line in text.lines().skip(7) {
        let word = line.split(' ').next().unwrap();
        let key = match word {
            "white" | "red" | "green" | "yellow" | "purple" | "orange" | "magenta" | "blue" => {
                colour = word;
                continue;
            }
            "line" => format!("{colour} line"),
            word => word.to_owned(),
        };
        *counts.entry(key).or_default() += 1;
    }
    counts
}

#[test]
fn graphs_have_what_those_of_tcptrace_have() {
    let (folder, file) = lossy();
    let (own, theirs) = (folder.path().join("own"), folder.path().join("theirs"));
    export(&file, &own);
    fs::create_dir(&theirs).unwrap();
    let mut command = Command::new("tcptrace");
    command
        .args(["-n", "-G"])
        .arg(classic(&file))
        .current_dir(&theirs);
    computed(&mut command);
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        // Sizes of segments and the line of time are not drawn.
        names.retain(|name| !name.ends_with("_ssize.xpl") && !name.ends_with("_tline.xpl"));
        names.sort();
        names
    };
    let all = names(&own);
    assert!(
        names(&theirs).iter().all(|name| all.contains(name)),
        "{all:?}"
    );
    // The connection that carried the load has the largest graph.
    let graphs = all.iter().filter(|name| name.ends_with("_tsg.xpl"));
    let heaviest = graphs
        .max_by_key(|name| fs::metadata(own.join(name)).unwrap().len())
        .unwrap();
    let [our, their] = [&own, &theirs].map(|folder| counts(&folder.join(heaviest)));
    for what in [
        "darrow",
        "htick",
        "green line",
        "yellow line",
        "purple line",
        "SYN",
        "white line",
    ] {
        assert_eq!(our.get(what), their.get(what), "{what}: {our:?}\n{their:?}");
    }
    let repeated = |counts: &BTreeMap<String, usize>| counts.get("R").copied().unwrap_or(0);
    assert!(repeated(&our) > 5);
    assert_eq!(repeated(&our), repeated(&their), "{our:?}\n{their:?}");
    // A directory that has something in it is left alone.
    let output = plumb(&[
        "capture",
        file.to_str().unwrap(),
        "--export",
        own.to_str().unwrap(),
    ]);
    assert!(
        !output.status.success() && stderr(&output).contains("not empty"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_page_has_the_graphs_of_a_saved_run() {
    let (folder, file) = lossy();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (run, page) = (at("run.json"), at("page.html"));
    let output = plumb(&["capture", file.to_str().unwrap(), "-o", &run]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document = Run::from_json(&fs::read_to_string(&run).unwrap()).unwrap();
    let Outcome::Capture(result) = &document.measurements[0].outcome else {
        panic!("{document:?}");
    };
    let graphs = result.graphs.as_ref().unwrap();
    let (up, counted) = (
        graphs.connections[0].up.as_ref().unwrap(),
        &result.connections[0].up,
    );
    assert_eq!(
        up.retransmissions.iter().sum::<u64>(),
        counted.segments.repeated()
    );
    assert_eq!(up.payload_bytes.iter().sum::<u64>(), counted.payload_bytes);
    assert_eq!(up.wire_bytes.iter().sum::<u64>(), counted.wire_bytes);
    assert_eq!(graphs.traffic.packets.iter().sum::<u64>(), result.packets);
    let output = plumb(&["report", &run, "-o", &page]);
    assert!(output.status.success(), "{}", stderr(&output));
    let html = fs::read_to_string(&page).unwrap();
    for part in [
        "Connections over time",
        "sequence numbers",
        "retransmission",
        "bytes in flight",
        "Traffic over time",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.len() < 2_000_000, "{}", html.len());
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.pcap");
    // A file with one packet of IP that ends in its header: the kind of link is raw IP.
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        bytes.extend(word.to_le_bytes());
    }
    // 5000 SYNs of one connection, all alike.
    let mut packet = vec![
        0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    packet.extend([
        0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 2, 0, 0, 0, 0, 0,
    ]);
    for at in 0..5000_u32 {
        for word in [at, 0, 40, 40] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&packet);
    }
    fs::write(&file, bytes).unwrap();
    let file = file.to_str().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let output = plumb(&["capture", file, "--export", &at("rows.txt")]);
    let said = stderr(&output);
    assert!(
        !output.status.success() && said.contains("FILE.csv or FILE.jsonl"),
        "{said}"
    );
    let output = plumb(&["capture", file, "--export", &at("there/is/none.csv")]);
    assert!(!output.status.success() && stderr(&output).contains("none.csv"));
    // A full disk, and a reader that goes away.
    let full = at("full.csv");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    // Not by `plumb`, which reads files among the arguments: this one has no end.
    let output = Command::new(PLUMB)
        .args(["capture", file, "--export", &full])
        .output()
        .unwrap();
    let said = stderr(&output);
    assert!(
        !output.status.success() && said.contains("No space left"),
        "{said}"
    );
    let pipe = at("pipe.jsonl");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut reader = Command::new("head")
        .args(["-n", "1"])
        .arg(&pipe)
        .spawn()
        .unwrap();
    let output = Command::new(PLUMB)
        .args(["capture", file, "--export", &pipe])
        .output()
        .unwrap();
    reader.wait().unwrap();
    let said = stderr(&output);
    assert!(
        !output.status.success() && said.contains("Broken pipe"),
        "{said}"
    );
}

//! Looking at the links of a laboratory: the log and captures agree with what the links count.

use std::process::Command;

use crate::common::network::Network;
use crate::common::{PLUMB, output_of, words};
use serde_json::Value;

/// Runs a command in a network whose slow line loses; files that the options name are in the folder.
fn lab_run(options: &[&str], command: &[&str]) -> (tempfile::TempDir, String) {
    let mut line = Network::line(
        r#"{ type = "shaper", rate = "5mbit", queue = { type = "fifo", limit = "20p" } }, { type = "loss", ratio = "10%" }"#,
        r#"{ type = "delay", delay = "1ms" }"#,
    );
    line.add("[vary]\n\"line.up.shaper.rate\" = [\"5mbit\", \"50mbit\"]");
    let (file, folder) = (line.file(), tempfile::tempdir().unwrap());
    let output = output_of(
        Command::new(PLUMB)
            .current_dir(&folder)
            .args(["lab", "run", "--virtual"])
            .arg(file.path())
            .args(options)
            .arg("--")
            .args(command),
    );
    let errors = crate::common::stderr(&output);
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

/// Lengths of the IP packets of one direction in a capture, which are whole.
fn lengths(file: &[u8], direction: u8) -> Vec<usize> {
    let found = blocks(file).into_iter().filter(|(kind, _)| *kind == 6);
    let found = found.filter(|(_, body)| body[body.len() - 8] == direction);
    found
        .map(|(_, body)| {
            let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
            let (captured, whole) = (word(12) as usize, word(16) as usize);
            assert_eq!(captured, whole);
            let packet = &body[20..20 + whole];
            let told = u16::from_be_bytes([packet[2], packet[3]]);
            assert_eq!((packet[0] >> 4, usize::from(told)), (4, whole));
            assert!(is_whole(packet));
            whole
        })
        .collect()
}

/// Whether the sums of an IPv4 header and of TCP or UDP come out (RFC 1071).
fn is_whole(packet: &[u8]) -> bool {
    let sum = |bytes: &[u8], start: u32| {
        let words = bytes.chunks(2);
        let word = |w: &[u8]| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0));
        let mut sum = words.map(word).sum::<u32>() + start;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum == 0xffff
    };
    let (header, transport) = packet.split_at(20);
    let protocol = header[9];
    let pseudo: u32 = header[12..20]
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let pseudo = pseudo + u32::from(protocol) + transport.len() as u32;
    sum(header, 0) && (![6, 17].contains(&protocol) || sum(transport, pseudo))
}

#[test]
fn cables_and_lans_of_the_kernel_are_captured_too() {
    const BYTES: usize = 3_000_000;
    let mut network = Network::default();
    for node in ["client", "router", "server"] {
        network.node(node, "");
    }
    network.without_ipv6();
    network.set("router", "forward = true");
    network.link("cable", ["router", "server"], "");
    network.add("[[lan]]\nname = \"home\"\nnodes = [\"client\", \"router\"]");
    let folder = tempfile::tempdir().unwrap();
    let file = network.file();
    let send = format!(
        "plumb lab shell server -- python3 -c 'import socket
s = socket.create_server((\"0.0.0.0\", 7000))
c, _ = s.accept()
while c.recv(65536): pass' & sleep 1
python3 -c 'import socket
c = socket.create_connection((\"server\", 7000))
c.sendall(bytes({BYTES}))'
wait"
    );
    let captures = [
        "home@client=a",
        "home@router=b",
        "cable@router=c",
        "cable@server=d",
    ];
    let captures = captures.iter().flat_map(|capture| ["--capture", capture]);
    let output = output_of(
        Command::new(PLUMB)
            .current_dir(&folder)
            .args(["lab", "run"])
            .arg(file.path())
            .args(captures)
            .args(["--", "bash", "-c", &send]),
    );
    assert!(
        output.status.success(),
        "{}",
        crate::common::stderr(&output)
    );
    // Large segments are written as the packets that they are on the wire: 1448 bytes of payload.
    for (name, towards) in [("a", 2), ("b", 1), ("c", 2), ("d", 1)] {
        let file = std::fs::read(folder.path().join(name)).unwrap();
        let lengths = lengths(&file, towards);
        assert_eq!(lengths.iter().copied().max(), Some(1500), "{name}");
        // 52 bytes of headers, of which a SYN has 8 more; a retransmission is more payload.
        let payload: usize = lengths.iter().map(|length| length - 52).sum();
        assert!(
            (BYTES..BYTES + 100_000).contains(&payload),
            "{name} {payload}"
        );
    }
}

/// The kernel passes a train of datagrams as one packet from end to end of a cable.
#[test]
fn datagrams_of_a_train_are_captured_one_by_one() {
    let mut network = Network::default();
    network.without_ipv6().node("client", "").node("server", "");
    network.link("cable", ["client", "server"], "");
    let (folder, file) = (tempfile::tempdir().unwrap(), network.file());
    // SOL_UDP and UDP_SEGMENT of linux/udp.h: ten of 1200 bytes and one of 1.
    let send = "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(17, 103, 1200)
s.connect((\"server\", 9))
s.send(bytes(12001))";
    let output = output_of(
        Command::new(PLUMB)
            .current_dir(&folder)
            .args(["lab", "run", "--capture", "cable@client=a"])
            .args(["--capture", "cable@server=b"])
            .arg(file.path())
            .args(["--", "python3", "-c", send]),
    );
    assert!(
        output.status.success(),
        "{}",
        crate::common::stderr(&output)
    );
    for (name, towards) in [("a", 2), ("b", 1)] {
        let file = std::fs::read(folder.path().join(name)).unwrap();
        let expected = [&[1228; 10][..], &[29]].concat();
        assert_eq!(lengths(&file, towards), expected, "{name}");
    }
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
fn a_log_ends_with_the_command_though_traffic_goes_on() {
    let mut network = Network::line("", r#"{ type = "delay", delay = "1ms" }"#);
    network.add(
        r#"
[[traffic]]
node = "client"
run = ["plumb", "lab", "flood", "server", "--rate", "2mbit", "--duration", "60s"]
"#,
    );
    let (file, folder) = (network.file(), tempfile::tempdir().unwrap());
    let output = Command::new("timeout")
        .arg("20")
        .arg(crate::common::PLUMB)
        .current_dir(&folder)
        .args(["lab", "run", "--log", "log"])
        .arg(file.path())
        .args(["--", "sleep", "1"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        crate::common::stderr(&output)
    );
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.lines().count() > 50, "{log}");
}

/// At twenty packets a second there is always one more to come.
#[test]
fn a_log_is_told_as_it_goes_and_to_its_end() {
    let script = "\
        plumb lab flood server --rate 240kbit --duration 3s > /dev/null & sleep 1; \
        plumb lab log line.up --for 1s; wait";
    let (log, _) = Network::line(r#"{ type = "delay", delay = "1ms" }"#, "").script(script);
    let times: Vec<f64> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|line| line["entered_s"].as_f64())
        .collect();
    let (first, last) = (times[0], times[times.len() - 1]);
    assert!(last - first > 0.8, "{first} to {last}");
}

#[test]
fn statistics_that_cannot_be_written_are_known_before_the_command_runs() {
    let marker = tempfile::tempdir().unwrap();
    let ran = marker.path().join("ran");
    let run = |stats: &str| {
        let output = crate::common::plumb(&[
            "lab",
            "run",
            "fibre",
            "--stats",
            stats,
            "--",
            "touch",
            ran.to_str().unwrap(),
        ]);
        (output.status.code(), crate::common::stderr(&output))
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

//! `plumb capture -i` in laboratories: what it captures beside what the laboratory recorded at the same place, files
//! that others read, and interfaces that are not there, may not be looked at, or vanish.

use std::net::Ipv6Addr;
use std::path::Path;
use std::process::Command;

use plumb_capture::Reader;
use plumb_model::results::Outcome;
use plumb_model::results::capture::CaptureResult;
use plumb_model::run::Run;

use crate::common::network::Network;
use crate::common::{PLUMB, computed, need_root, output_of, plumb, slots, stderr, stdout};

const LINE: &str = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "100p" } }, { type = "delay", delay = "10ms" }"#;

/// Frames of UDP and of ICMP on the interface `va`, five of each kind without a tag, with one, and with two.
const TAGGED: &str = r#"
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("va", 0))
def ip(protocol, payload):
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0)
    return header + bytes([192, 0, 2, 1, 192, 0, 2, 2]) + payload
udp = ip(17, struct.pack("!HHHH", 1000, 2000, 48, 0) + bytes(40))
icmp = ip(1, bytes([8, 0, 0, 0, 0, 1, 0, 1]) + bytes(40))
ends = bytes([2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1])
for tag in [b"", b"\x81\0\0\5", b"\x88\xa8\0\7\x81\0\0\5"]:
    for packet in [udp, icmp]:
        for _ in range(5):
            s.send(ends + tag + b"\x08\0" + packet)
"#;

/// Two interfaces that are the ends of one cable, in the node where this runs.
const CABLE: &str =
    "ip link add name va type veth peer name vb; ip link set va up; ip link set vb up\n";

fn result(run: Run) -> CaptureResult {
    match run.measurements.into_iter().next().unwrap().outcome {
        Outcome::Capture(result) => *result,
        other => panic!("{other:?}"),
    }
}

fn saved(file: &Path) -> CaptureResult {
    result(Run::from_json(&std::fs::read_to_string(file).unwrap()).unwrap())
}

fn of_file(arguments: &[&str], file: &Path) -> CaptureResult {
    let all = [&["capture", "--json"], arguments, &[file.to_str().unwrap()]].concat();
    let output = plumb(&all);
    assert!(output.status.success(), "{}", stderr(&output));
    result(Run::from_json(&stdout(&output)).unwrap())
}

/// What capinfos says of a file: packets, and bytes on the wire.
fn capinfos(file: &Path) -> (u64, u64) {
    let mut command = Command::new("capinfos");
    command.args(["-T", "-r", "-c", "-d", "-M"]).arg(file);
    let text = stdout(&computed(&mut command));
    let numbers: Vec<u64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [.., packets, bytes] = numbers[..] else {
        panic!("{text}")
    };
    (packets, bytes)
}

/// A download of two seconds in a laboratory that captures at the client's end, and a script beside it in the same node,
/// with a folder of its own.
fn beside_a_download(script: &str) -> tempfile::TempDir {
    need_root();
    let (line, folder) = (
        Network::served_line(LINE, LINE),
        tempfile::tempdir().unwrap(),
    );
    let file = line.file();
    let mut command = Command::new(PLUMB);
    command
        .current_dir(&folder)
        .args(["lab", "run", "--virtual"])
        .arg(file.path());
    command.args(["--capture", "line@client=lab.pcapng", "--"]);
    let load = "plumb rate --down --duration 2s --quiet server > rate.txt";
    let script = format!("set -e; {script}\n");
    command.args(["sh", "-c", &script.replace("LOAD", load)]);
    let output = output_of(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    folder
}

#[test]
fn it_has_every_packet_that_passed_the_interface() {
    // The lab's node has one interface besides the loopback, by the name of the link.
    let folder = beside_a_download(
        "plumb capture -i line --quiet -w live.pcapng -o live.json > live.txt & capture=$!; \
         plumb capture -i line --quiet --filter 'tcp and src host 10.0.0.2' --snaplen 100 -w some.pcapng -o some.json > /dev/null & some=$!; \
         until [ -e live.pcapng ] && [ -e some.pcapng ]; do sleep 0.05; done; sleep 0.5; LOAD; sleep 0.5; kill -INT $capture $some; wait $capture; wait $some",
    );
    let at = |name: &str| folder.path().join(name);
    let (live, lab) = (saved(&at("live.json")), of_file(&[], &at("lab.pcapng")));
    assert_eq!(live.flaws.dropped, 0);
    // The laboratory splits large segments into the packets that the link carries, an interface has them whole.
    let payload = |result: &CaptureResult| {
        let each = result.connections.iter().map(|c| c.down.payload_bytes);
        each.sum::<u64>()
    };
    assert!(payload(&live) > 3_000_000, "{}", payload(&live));
    assert_eq!(payload(&live), payload(&lab));
    // The file has what was counted, for others and for plumb.
    let written = of_file(&[], &at("live.pcapng"));
    assert_eq!((written.packets, written.bytes), (live.packets, live.bytes));
    assert_eq!(capinfos(&at("live.pcapng")), (live.packets, live.bytes));
    // What the kernel let pass is what the filter lets pass of all.
    let some = saved(&at("some.json"));
    let filtered = of_file(
        &["--filter", "tcp and src host 10.0.0.2"],
        &at("live.pcapng"),
    );
    assert!(some.packets > 1000, "{}", some.packets);
    assert_eq!(
        (some.packets, some.bytes),
        (filtered.packets, filtered.bytes)
    );
    // Full packets are cut, those that open and close connections are not.
    assert!((1000..some.packets).contains(&some.flaws.cut_packets));
}

/// Pings through the loopback of a laboratory's node while a capture goes on there; what the script prints.
fn in_a_node(script: &str) -> String {
    let output = Network::line(LINE, LINE).run(&["bash", "-c", script]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn it_ends_after_its_time_and_a_ring_keeps_the_latest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    // A packet of 1000 bytes and its answer, 100 times: 200 packets, of which a file of 20 kB has 18 or so.
    in_a_node(&format!(
        "plumb capture -i lo --for 3s --quiet --filter icmp -w {path}/ring.pcapng --ring 3 --ring-size 20kB \
             -o {path}/live.json > /dev/null & \
         until [ -e {path}/ring-00001.pcapng ]; do sleep 0.05; done; sleep 0.3; plumb ping 127.0.0.1 -c 100 -i 10ms -s 972 > /dev/null; wait $!"
    ));
    let live = saved(&folder.path().join("live.json"));
    assert_eq!((live.packets, live.flaws.dropped), (200, 0));
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "pcapng"))
        .collect();
    files.sort();
    let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let kept: Vec<(u64, u64)> = files.iter().map(|file| capinfos(file)).collect();
    assert!(
        kept[..2]
            .iter()
            .all(|(packets, _)| (15..=20).contains(packets)),
        "{kept:?}"
    );
    let arguments: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let output = plumb(&[&["capture", "--json"], &arguments[..]].concat());
    let together = result(Run::from_json(&stdout(&output)).unwrap());
    let packets: u64 = kept.iter().map(|(packets, _)| packets).sum();
    assert_eq!((together.packets, together.files.len()), (packets, 3));
    // The latest ends where the capture ended.
    let end = |result: &CaptureResult| result.began_unix_s.unwrap() + result.duration_s;
    assert!((end(&together) - end(&live)).abs() < 1e-6);
}

#[test]
fn an_interface_that_goes_leaves_what_was_captured() {
    let text = in_a_node(
        "ip link add here type veth peer name there; ip link set here up; ip link set there up; \
         plumb capture -i here --json & sleep 0.7; ip addr add 192.0.2.1/24 dev here; \
         plumb ping 192.0.2.2 -c 2 -i 0.1 -W 0.1 > /dev/null; ip link del here; wait $!; echo status $? >&2",
    );
    let run = Run::from_json(&text).unwrap();
    let note = run.notes.join("\n");
    assert!(
        note.contains("the interface went down, or is gone"),
        "{note}"
    );
    assert!(result(run).arp_packets > 0);
}

#[test]
fn who_may_not_is_told_what_is_missing() {
    let text = in_a_node(
        "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
             plumb capture -i lo 2>&1; echo status $?; \
         plumb capture -i no-such-thing 2>&1; echo status $?; \
         plumb capture -i lo --for 1s --filter 'tcp' -w /no/such/folder 2>&1; echo status $?; \
         plumb capture -i lo --for 1s -w /dev/full --filter none 2>&1; echo status $?; \
         plumb capture -i lo --for 1s --quiet -w /dev/full 2>&1; echo status $?",
    );
    assert!(
        text.contains("Capturing needs root, or CAP_NET_RAW: sudo setcap cap_net_raw+ep /"),
        "{text}"
    );
    assert!(
        text.contains("there is no interface no-such-thing; there are lo"),
        "{text}"
    );
    assert!(
        text.contains("cannot write /no/such/folder: No such file"),
        "{text}"
    );
    assert!(
        text.contains("cannot write /dev/full: No space left"),
        "{text}"
    );
    assert!(
        text.contains("status 1\n") && text.contains("status 2\n"),
        "{text}"
    );
}

#[test]
fn flows_are_on_the_terminal_while_they_pass() {
    let folder = beside_a_download(
        "(sleep 3.5; printf t; sleep 1.2; printf /udp; sleep 0.4; printf '\\rq') | \
             script -qec 'stty cols 90 rows 20; plumb capture -i line' /dev/null > view.txt & view=$!; \
         sleep 1; LOAD; wait $view",
    );
    let text = std::fs::read_to_string(folder.path().join("view.txt")).unwrap();
    let (view, result) = text
        .split_once("\u{1b}[?1049l")
        .expect("the screen is given back");
    let pictures: Vec<&str> = view.split("\u{1b}[H").collect();
    let shows = |parts: &[&str]| {
        let all = |picture: &&&str| parts.iter().all(|part| picture.contains(part));
        assert!(
            pictures.iter().any(|picture| all(&picture)),
            "{parts:?} in {view:?}"
        );
    };
    // The download, with its rate, while it runs.
    shows(&[
        "plumb capture of line",
        "by rate",
        "Mbit/s",
        " M ",
        "→ 10.0.0.2:7586",
    ]);
    shows(&["by retransmissions, ", "tcp 10.0.0.1:"]);
    shows(&["0 of ", "with 'udp'"]);
    let lines = pictures.iter().flat_map(|picture| picture.lines());
    let longest = lines
        .map(|line| line.replace("\u{1b}[K", "").chars().count())
        .max();
    assert!(longest <= Some(90), "{longest:?}");
    assert!(
        result.contains("TCP connections, and where their time went"),
        "{result}"
    );
}

#[test]
fn a_filter_means_the_same_in_the_kernel_and_over_the_file() {
    const FILTERS: [&str; 8] = [
        "vlan 5",
        "vlan 7",
        "vlan and icmp",
        "vlan 7 and vlan 5 and udp",
        "icmp",
        "not icmp",
        "ip or vlan 5",
        "less 90",
    ];
    // Nine programs that start together.
    let _slot = slots::take(slots::Weight::Processor);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("send.py"), TAGGED).unwrap();
    let mut script = format!("cd {}; {CABLE}", folder.path().display());
    script += "plumb capture -i vb -w all.pcapng -o all.json -q > all & wait=$!\n";
    for (number, filter) in FILTERS.iter().enumerate() {
        script += &format!(
            "plumb capture -i vb --filter '{filter}' -w {number}.pcapng -o {number}.json -q > {number} & wait=\"$wait $!\"\n"
        );
    }
    script += "until [ $(ls *.pcapng | wc -l) = 9 ]; do sleep 0.05; done; sleep 0.3\n";
    script += "python3 send.py; sleep 0.3; kill -INT $wait; wait $wait";
    in_a_node(&script);
    let at = |name: &str| folder.path().join(name);
    let (all, read) = (at("all.pcapng"), |filter: &str| {
        of_file(&["--filter", filter], &at("all.pcapng"))
    });
    // Multicast listeners of IPv6 have their say too.
    assert_eq!(read("vlan").packets, 20);
    assert!(read("not vlan").packets >= 10);
    assert_eq!(read("vlan 7 and vlan 5").packets, 10);
    for (number, filter) in FILTERS.iter().enumerate() {
        let (own, truth) = (saved(&at(&format!("{number}.json"))), read(filter));
        let counts = |result: &CaptureResult| (result.packets, result.bytes);
        assert_eq!(counts(&own), counts(&truth), "{filter}");
        assert!(own.packets >= 5, "{filter}");
    }
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-Y", "vlan.id == 5", "-r"]).arg(&all);
    assert_eq!(stdout(&computed(&mut tshark)).lines().count(), 20);
}

/// A conversation over TCP and one over UDP of each family, through the loopback by addresses that are not its own.
const TALK: &str = r#"
import socket
SECRET = b"the password is swordfish" * 20
for family, host in [(socket.AF_INET, "198.51.100.7"), (socket.AF_INET6, "2001:db8::7")]:
    listener = socket.create_server((host, 8080), family=family)
    client = socket.create_connection((host, 8080))
    server, _ = listener.accept()
    for sender, receiver in [(client, server), (server, client)] * 20:
        sender.sendall(SECRET)
        receiver.recv(len(SECRET), socket.MSG_WAITALL)
    client.close(); server.close()
    ends = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(2)]
    ends[0].bind((host, 5300))
    for _ in range(20):
        ends[1].sendto(SECRET, (host, 5300))
        ends[0].recv(2000)
"#;

/// The packets of a file: their lengths on the wire, and their bytes.
fn packets(file: &Path) -> Vec<(u32, Vec<u8>)> {
    let mut reader = Reader::new(std::fs::File::open(file).unwrap()).unwrap();
    let mut packets = Vec::new();
    while reader.advance().unwrap().is_some() {
        let frame = reader.frame();
        packets.push((frame.original_bytes, frame.bytes.to_vec()));
    }
    packets
}

#[test]
fn what_is_anonymised_while_it_passes_is_as_when_its_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("key"), [7; 32]).unwrap();
    std::fs::write(at("talk.py"), TALK).unwrap();
    in_a_node(&format!(
        "set -e; cd {}; ip addr add 198.51.100.7/32 dev lo; ip addr add 2001:db8::7/128 dev lo nodad; \
         plumb capture -i lo -q -w plain.pcapng -o plain.json > plain & plain=$!; \
         plumb capture -i lo -q --anonymise --key key -w live.pcapng -o live.json > live & live=$!; \
         until [ -e plain.pcapng ] && [ -e live.pcapng ]; do sleep 0.05; done; sleep 0.3; \
         python3 talk.py; sleep 0.3; kill -INT $plain $live; wait $plain; wait $live",
        folder.path().display()
    ));
    let [plain, live, key, later] = ["plain.pcapng", "live.pcapng", "key", "later.pcapng"].map(&at);
    let [key, later_name] = [&key, &later].map(|path| path.to_str().unwrap());
    let read = of_file(&["--anonymise", "--key", key, "-w", later_name], &plain);
    let shown = saved(&at("live.json"));
    assert_eq!(
        (shown.flaws.dropped, saved(&at("plain.json")).flaws.dropped),
        (0, 0)
    );
    let ([plain_packets, live_packets], later_packets) =
        ([&plain, &live].map(|file| packets(file)), packets(&later));
    // Of both families 40 messages over TCP and 20 over UDP.
    assert!(plain_packets.len() >= 120, "{}", plain_packets.len());
    assert_eq!(live_packets.len(), plain_packets.len());
    for (number, (live, later)) in live_packets.iter().zip(&later_packets).enumerate() {
        assert_eq!(live, later, "packet {number}");
    }
    assert_eq!(live_packets, later_packets);
    // Each capture has stamps of its own.
    let carried = |result: &CaptureResult| {
        let each = result.connections.iter().map(|c| {
            let ends = [&c.client, &c.server].map(String::clone);
            (ends, c.up.payload_bytes, c.down.payload_bytes, c.turns)
        });
        each.collect::<Vec<_>>()
    };
    assert_eq!(carried(&shown), carried(&read));
    assert_eq!(shown.connections.len(), 2);
    // The plain file has what the other one has not.
    let has = |file: &Path, secret: &[u8]| {
        let bytes = std::fs::read(file).unwrap();
        bytes.windows(secret.len()).any(|part| part == secret)
    };
    let v6 = "2001:db8::7".parse::<Ipv6Addr>().unwrap().octets();
    for secret in [&b"swordfish"[..], &[198, 51, 100, 7], &v6] {
        assert!(has(&plain, secret) && !has(&live, secret), "{secret:02x?}");
    }
    let text = std::fs::read_to_string(at("live.json")).unwrap();
    assert!(
        !text.contains("198.51.100.") && !text.contains("2001:db8:"),
        "{text}"
    );
}

#[test]
fn a_test_keeps_its_own_packets() {
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.pcapng");
    let name = path.to_str().unwrap();
    let line = Network::served_line(LINE, LINE);
    let load = [
        "rate",
        "--down",
        "--duration",
        "2s",
        "--capture",
        name,
        "server",
    ];
    let run = line.measured(&load).run;
    let kept = of_file(&[], &path);
    let note = format!(
        "{name} has {} packets that passed between here and the far end",
        kept.packets
    );
    assert!(
        run.notes.iter().any(|n| n.contains(&note)),
        "{:?}",
        run.notes
    );
    let carried = |m: &plumb_model::run::Measurement| m.outcome.throughput().map(|t| t.bytes);
    let carried: u64 = run.measurements.iter().filter_map(carried).sum();
    let down = kept
        .connections
        .iter()
        .map(|c| c.down.payload_bytes)
        .max()
        .unwrap();
    // What was on its way at the end was captured, and did not count.
    assert!(
        (carried..carried + carried / 5).contains(&down),
        "{carried} {down}"
    );
    assert_eq!(kept.flaws.dropped, 0);
    // Nothing is measured where what was asked for cannot be done.
    let output = line.run(&[
        "plumb",
        "rate",
        "-t",
        "1",
        "--capture",
        "/no/such/file",
        "server",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot write /no/such/file"),
        "{}",
        stderr(&output)
    );
}

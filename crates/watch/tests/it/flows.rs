//! Debian's softflowd and nfdump's nfreplay as exporters of flows.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plumb_watch::flows::dimension::Dimension;
use plumb_watch::flows::listening::Listener;
use plumb_watch::flows::look::look;
use plumb_watch::flows::settings::FlowSource;
use plumb_watch::flows::state::State;
use plumb_watch::store::{Store, Width};
use plumb_watch::watching::{self, Asked};
use serde_json::Value;

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Ten times what an exporter takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Flows of the capture, packets of each, and bytes of IP of each packet.
const FLOWS: u16 = 40;
const PACKETS: u32 = 25;
const BYTES: u16 = 500;

/// A capture (pcap, Ethernet) of flows of UDP from 192.0.2.x to 198.51.100.1:53, with DSCP 46.
fn capture(path: &Path) {
    let mut out = Vec::new();
    let words = |out: &mut Vec<u8>, words: &[u32]| {
        words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    };
    words(&mut out, &[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1]);
    for packet in 0..PACKETS {
        for flow in 0..FLOWS {
            let frame_bytes = u32::from(BYTES) + 14;
            words(
                &mut out,
                &[
                    1_767_225_600 + packet,
                    u32::from(flow),
                    frame_bytes,
                    frame_bytes,
                ],
            );
            let begin = out.len();
            out.extend([2; 12]);
            out.extend(0x0800u16.to_be_bytes());
            out.extend([0x45, 0xb8]);
            out.extend(BYTES.to_be_bytes());
            out.extend([
                0,
                0,
                0,
                0,
                64,
                17,
                0,
                0,
                192,
                0,
                2,
                flow as u8 + 1,
                198,
                51,
                100,
                1,
            ]);
            out.extend((50_000 + flow).to_be_bytes());
            out.extend(53u16.to_be_bytes());
            out.extend((BYTES - 20).to_be_bytes());
            out.resize(begin + usize::from(BYTES) + 14, 0);
        }
    }
    fs::File::create(path).unwrap().write_all(&out).unwrap();
}

/// A port of UDP that is free.
fn free() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.local_addr().unwrap()
}

/// What came to a place while exporters sent to it, until so many flows were there.
fn collected(send: impl FnOnce(SocketAddr), enough: u64) -> Value {
    let at = free();
    let source = FlowSource {
        hosts: true,
        ..FlowSource::at(at)
    };
    let listener = Listener::bind(source).unwrap();
    let listening = thread::spawn(move || {
        let stop = AtomicBool::new(false);
        let mut enough_came = |state: &State, _| {
            stop.store(state.flows() >= enough, Ordering::Relaxed);
        };
        look(listener, Some(PATIENCE), &stop, &mut enough_came).unwrap()
    });
    send(at);
    serde_json::to_value(listening.join().unwrap()).unwrap()
}

/// Waits until a program has that port (proc(5), /proc/net/udp).
fn until_listened_at(at: SocketAddr) {
    let begun = Instant::now();
    let port = format!(":{:04X} ", at.port());
    while !fs::read_to_string("/proc/net/udp").unwrap().contains(&port) {
        assert!(begun.elapsed() < PATIENCE, "nothing listens at {at}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn ended(command: &mut Command) {
    let program = command.get_program().to_owned();
    let done = command
        .env("PATH", PATH)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|_| panic!("{program:?} is missing: tests/tools.sh installs it"));
    assert!(done.status.success(), "{program:?}: {done:?}");
}

/// Has softflowd export the capture, with more options.
fn softflowd(folder: &Path, to: SocketAddr, options: &[&str]) {
    let path = |name: &str| folder.join(name);
    capture(&path("flows.pcap"));
    ended(
        Command::new("softflowd")
            .arg("-r")
            .arg(path("flows.pcap"))
            .args(["-n", &to.to_string()])
            .arg("-p")
            .arg(path("pid"))
            // Without the socket for its control, at which it may wait for ever.
            .args(["-c", "none"])
            .args(options),
    );
}

/// The row of that key, by a dimension.
fn row<'a>(document: &'a Value, by: &str, key: &str) -> &'a Value {
    let tops = document["tops"].as_array().unwrap();
    let top = tops.iter().find(|top| top["by"] == by).unwrap();
    let rows = top["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| row["key"] == key);
    found.unwrap_or_else(|| panic!("{by} has no {key}: {top}"))
}

/// Sees that a document has all of the capture.
fn has_the_capture(document: &Value, protocol: &str) {
    let exporter = &document["exporters"][0];
    assert_eq!(
        exporter["protocols"],
        serde_json::json!([protocol]),
        "{document}"
    );
    assert_eq!(exporter["address"], "127.0.0.1");
    assert_eq!(
        (&exporter["malformed"], &exporter["lost"]),
        (&0.into(), &serde_json::json!({})),
        "{exporter}"
    );
    let (packets, bytes) = (f64::from(PACKETS), f64::from(PACKETS) * f64::from(BYTES));
    let all = f64::from(FLOWS);
    for (by, key, flows) in [
        ("total", "all", all),
        ("source", "192.0.2.1", 1.0),
        ("source", "192.0.2.40", 1.0),
        ("destination", "198.51.100.1", all),
        ("application", "udp/53", all),
        ("dscp", "46", all),
    ] {
        let row = row(document, by, key);
        assert_eq!(row["bytes"], bytes * flows, "{protocol}, {by} {key}: {row}");
        assert_eq!(row["packets"], packets * flows, "{row}");
        assert_eq!(row["bytes_low"], row["bytes"], "{row}");
    }
}

#[test]
fn softflowd_is_read_by_all_its_protocols() {
    for (version, protocol) in [("5", "NetFlow v5"), ("9", "NetFlow v9"), ("10", "IPFIX")] {
        let folder = tempfile::tempdir().unwrap();
        let send = |to| softflowd(folder.path(), to, &["-v", version]);
        let document = collected(send, FLOWS.into());
        has_the_capture(&document, protocol);
    }
}

#[test]
fn what_softflowd_samples_is_scaled() {
    for version in ["9", "10"] {
        let folder = tempfile::tempdir().unwrap();
        let send = |to| softflowd(folder.path(), to, &["-v", version, "-s", "5"]);
        let document = collected(send, 1);
        let exporter = &document["exporters"][0];
        assert_eq!(
            exporter["one_in"],
            serde_json::json!([5.0, 5.0]),
            "{version}: {document}"
        );
        // Each fifth of the packets.
        let total = row(&document, "total", "all");
        let packets = f64::from(PACKETS) * f64::from(FLOWS);
        let number = |of: &str| total[of].as_f64().unwrap();
        assert!((number("packets") - packets).abs() <= 5.0, "{total}");
        assert!(
            number("packets_low") < packets && packets < number("packets_high"),
            "{total}"
        );
    }
}

/// A collector of nfdump that ends with the test.
struct Nfcapd(Child);

impl Drop for Nfcapd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_nfcapd_wrote_and_nfreplay_sends_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = free();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let nfcapd = Command::new("nfcapd")
        .env("PATH", PATH)
        .args(["-b", "127.0.0.1", "-p", &at.port().to_string(), "-w"])
        .arg(&files)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nfdump is missing: tests/tools.sh installs it");
    let mut nfcapd = Nfcapd(nfcapd);
    until_listened_at(at);
    softflowd(folder.path(), at, &["-v", "9"]);
    // It writes what it has when it is asked to end.
    thread::sleep(Duration::from_secs(1));
    ended(Command::new("kill").args(["-TERM", &nfcapd.0.id().to_string()]));
    nfcapd.0.wait().unwrap();
    let mut written = fs::read_dir(&files)
        .unwrap()
        .map(|file| file.unwrap().path());
    let written = written.next().unwrap();
    for (version, protocol) in [("5", "NetFlow v5"), ("9", "NetFlow v9")] {
        let replay = |to: SocketAddr| {
            let port = to.port().to_string();
            let mut nfreplay = Command::new("nfreplay");
            nfreplay.args(["-H", "127.0.0.1", "-p", &port, "-v", version, "-r"]);
            ended(nfreplay.arg(&written));
        };
        let document = collected(replay, FLOWS.into());
        has_the_capture(&document, protocol);
    }
}

/// A message of NetFlow 5 with one flow of 1,000 bytes.
fn netflow5(sequence: u32) -> Vec<u8> {
    let words = [5 << 16 | 1, 60_000, 1_767_225_600, 0, sequence, 0];
    let flow = [
        0xc000_0201,
        0xc633_6401,
        0,
        3 << 16 | 4,
        2,
        1000,
        58_000,
        59_000,
    ];
    let rest = [50_000 << 16 | 443, 0x0018_06b8, 0, 0];
    let words = words.into_iter().chain(flow).chain(rest);
    words.flat_map(u32::to_be_bytes).collect()
}

#[test]
fn flows_are_watched_and_those_of_strangers_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = free();
    let page = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let file = folder.path().join("watch.toml");
    let text = format!(
        "[store]\npath = \"w.db\"\n[page]\nlisten = \"{page}\"\n\
         [[flows]]\nname = \"core\"\nlisten = \"{at}\"\nexporters = [\"127.0.0.1\"]\n"
    );
    fs::write(&file, text).unwrap();
    let asked = Arc::new(Asked::default());
    let stop = Arc::clone(&asked);
    let watching = thread::spawn(move || {
        watching::run(&file, &stop, &|_| {}).map_err(|error| error.to_string())
    });
    until_listened_at(at);
    let exporter = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
    for sequence in 0..10 {
        // Two of them are lost.
        exporter
            .send_to(&netflow5(sequence + sequence / 9 * 2), at)
            .unwrap();
        stranger.send_to(&netflow5(sequence), at).unwrap();
    }
    // What was sent is read when no datagram waits.
    let begun = Instant::now();
    while waiting(at) {
        assert!(begun.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(50));
    }
    thread::sleep(Duration::from_millis(500));
    asked.stop.store(true, Ordering::Relaxed);
    assert_eq!(watching.join().unwrap(), Ok(()));
    // What was heard since the last minute is written at the end.
    let store = Store::open_to_read(&folder.path().join("w.db")).unwrap();
    let (name, _, state) = store.flow_sources().unwrap().swap_remove(0);
    assert_eq!(
        (name.as_str(), state.flows(), state.refused),
        ("core", 10, 10)
    );
    assert_eq!(state.refused_from, [Ipv4Addr::new(127, 0, 0, 2)]);
    assert_eq!(state.exporters[0].lost["NetFlow v5 flows"], 2);
    let read = |by| {
        store
            .flows("core", by, Width::Minute, (0, i64::MAX))
            .unwrap()
    };
    let bytes = |by| -> f64 {
        let windows = read(by);
        let rows = windows.iter().flat_map(|(_, top)| &top.rows);
        rows.map(|row| row.sums.bytes).sum()
    };
    assert_eq!(bytes(Dimension::Total), 10_000.0);
    assert_eq!(read(Dimension::Source)[0].1.rows[0].key, "192.0.2.0/24");
}

/// Whether datagrams wait at that port.
fn waiting(at: SocketAddr) -> bool {
    let port = format!(":{:04X} ", at.port());
    let sockets = fs::read_to_string("/proc/net/udp").unwrap();
    let socket = sockets.lines().find(|line| line.contains(&port)).unwrap();
    // tx_queue:rx_queue is the fifth.
    let queues = socket.split_whitespace().nth(4).unwrap();
    !queues.ends_with(":00000000")
}

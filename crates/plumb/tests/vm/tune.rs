//! `plumb tune` on a stock kernel, where the network is that of the whole machine: fq with BBR.

use std::fs;
use std::process::Command;

use plumb_net::tc;

use crate::common::{plumb, stderr, stdout};

fn read(key: &str) -> String {
    fs::read_to_string(format!("/proc/sys/{}", key.replace('.', "/")))
        .unwrap()
        .trim()
        .to_owned()
}

fn root_of(device: &str) -> (String, String) {
    let root = tc::qdiscs(device).unwrap().into_iter().find(|q| q.root);
    root.map(|q| (q.kind, q.handle)).unwrap()
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

const KEYS: [&str; 4] = [
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// The path loses more than CUBIC can stand, so the plan is BBR, and fq on the interface that leads there.
#[test]
fn fq_with_bbr_is_applied_read_back_and_undone() {
    run("modprobe", &["tcp_bbr"]);
    run("ip", &["link", "add", "far", "type", "dummy"]);
    run("ip", &["addr", "add", "198.51.100.1/24", "dev", "far"]);
    run("ip", &["link", "set", "far", "up"]);
    run("ip", &["route", "add", "192.0.2.0/24", "dev", "far"]);
    // A dummy has no queue unless it gets a length.
    run("ip", &["link", "set", "far", "txqueuelen", "1000"]);
    run(
        "tc",
        &[
            "qdisc", "add", "dev", "far", "root", "handle", "1:", "pfifo",
        ],
    );
    run("tc", &["qdisc", "del", "dev", "far", "root"]);
    let before = (KEYS.map(read), root_of("far"));
    assert_eq!(before.1.1, "0:", "{before:?}");

    let path = ["--rate", "1gbit", "--rtt", "100ms", "--loss", "1%"];
    let apply = plumb(&[&["tune", "apply", "--runtime", "--yes"], &path[..]].concat());
    assert!(apply.status.success(), "{}", stderr(&apply));
    let said = stdout(&apply);
    assert!(
        said.contains("tcp_congestion_control: cubic -> bbr"),
        "{said}"
    );
    assert_eq!(read("net.ipv4.tcp_congestion_control"), "bbr");
    assert_eq!(read("net.core.default_qdisc"), "fq");
    assert_eq!(root_of("far"), ("fq".to_owned(), "7586:".to_owned()));
    // A new interface gets it, and a new socket paces.
    run(
        "ip",
        &[
            "link", "add", "near", "type", "veth", "peer", "name", "raen",
        ],
    );
    let status = stdout(&plumb(&["tune", "status"]));
    assert_eq!(
        status.matches("as set").count(),
        said_changes(&said),
        "{status}"
    );

    let undo = plumb(&["tune", "undo"]);
    assert!(undo.status.success(), "{}", stderr(&undo));
    assert_eq!(
        (KEYS.map(read), root_of("far")),
        before,
        "{}",
        stdout(&undo)
    );
    run("ip", &["link", "del", "near"]);
    run("ip", &["link", "del", "far"]);
}

/// How many changes apply says that it made.
fn said_changes(said: &str) -> usize {
    let done = said.split("Done: ").nth(1).unwrap();
    done.split(' ').next().unwrap().parse().unwrap()
}

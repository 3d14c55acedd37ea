//! `plumb tune` on a stock kernel, where the network is that of the whole machine: fq with BBR.

use std::fs;
use std::process::Command;

use plumb_host::tune::apply::{apply, undo};
use plumb_host::tune::interface::Setting;
use plumb_host::tune::journal::{Directory, Step, Target};
use plumb_host::tune::machine::{Machine as _, ThisMachine};
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
#[ignore = "runs in the virtual machine"]
fn fq_with_bbr_is_applied_read_back_and_undone() {
    run("ip", &["link", "add", "far", "type", "dummy"]);
    run("ip", &["addr", "add", "198.51.100.1/24", "dev", "far"]);
    run("ip", &["link", "set", "far", "up"]);
    run("ip", &["route", "add", "default", "dev", "far"]);
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

/// The card of the virtual machine, whose driver has a ring and offloads (vm/run.sh).
const CARD: &str = "eth0";

/// A real driver's ring and offloads, which no namespace has: set, read back, undone to what they were.
#[test]
#[ignore = "runs in the virtual machine"]
fn a_drivers_ring_and_offloads_are_set_and_undone() {
    run("modprobe", &["vmxnet3"]);
    run("ip", &["link", "set", CARD, "up"]);
    let target = |setting| Target::Interface(CARD.to_owned(), setting);
    let steps = || {
        [
            (target(Setting::ReceiveRing), "2048"),
            (
                target(Setting::Offload("tx-tcp-segmentation".to_owned())),
                "off",
            ),
            (target(Setting::Offload("rx-gro".to_owned())), "off"),
            (target(Setting::QueueLength), "500"),
        ]
        .map(|(target, new)| Step::to(target, new.to_owned()))
        .to_vec()
    };
    let now = || -> Vec<_> {
        let read = |step: &Step| ThisMachine.read(&step.target).unwrap().unwrap();
        steps().iter().map(read).collect()
    };
    let before = now();
    let wanted: Vec<_> = steps().iter().map(|s| s.new.clone().unwrap()).collect();
    assert!(
        before.iter().zip(&wanted).all(|(a, b)| a != b),
        "{before:?}"
    );
    let place = tempfile::tempdir().unwrap();
    let mut store = Directory::lock(place.path(), &place.path().join("drop-in")).unwrap();
    let machine = &mut ThisMachine;
    apply(
        &mut store,
        machine,
        "id".into(),
        "now".into(),
        None,
        steps(),
    )
    .unwrap();
    assert_eq!(now(), wanted);
    let undone = undo(&mut store, machine).unwrap().unwrap();
    assert_eq!(now(), before, "{undone:?}");

    // More than the card can is refused by the driver, and everything is as it was.
    let mut too_much = steps();
    let adaptive = target(Setting::AdaptiveReceive);
    too_much.push(Step::to(adaptive, "on".to_owned()));
    let error = apply(
        &mut store,
        machine,
        "id".into(),
        "now".into(),
        None,
        too_much,
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("adaptive interrupt coalescing of eth0"),
        "{error}"
    );
    assert_eq!(now(), before);

    // The plan finds what somebody switched off, and plumb switches it on.
    run("ip", &["addr", "add", "203.0.113.1/24", "dev", CARD]);
    run("ip", &["route", "add", "default", "dev", CARD]);
    let gro = target(Setting::Offload("rx-gro".to_owned()));
    machine.write(&gro, Some("off")).unwrap();
    let apply = plumb(&[
        "tune",
        "apply",
        "--runtime",
        "--yes",
        "--rate",
        "1gbit",
        "--rtt",
        "1ms",
    ]);
    assert!(apply.status.success(), "{}", stderr(&apply));
    assert!(
        stdout(&apply).contains("offload gro: off -> on"),
        "{}",
        stdout(&apply)
    );
    assert_eq!(machine.read(&gro).unwrap().as_deref(), Some("on"));
    assert!(plumb(&["tune", "undo"]).status.success());
    assert_eq!(machine.read(&gro).unwrap().as_deref(), Some("off"));
    machine.write(&gro, Some("on")).unwrap();
    run("ip", &["link", "set", CARD, "down"]);
}

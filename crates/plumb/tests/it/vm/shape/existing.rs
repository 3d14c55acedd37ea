//! Somebody's configuration: never replaced unasked, made again exactly, or refused.

use super::{BOTH, Home, LINE, refused, run};
use crate::common::{stderr, stdout};

fn tc(home: &Home, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    run(&home.router, "tc", &words);
}

const APPLY: [&str; 5] = ["shape", "apply", LINE, "--yes", "--keep"];

#[test]
#[ignore = "runs in the virtual machine"]
fn what_can_be_made_again_is_put_aside_only_when_asked() {
    let home = Home::new();
    for theirs in [
        "fq_codel target 7ms interval 123ms flows 333 limit 777 memory_limit 5mb noecn",
        "codel target 3ms interval 51ms limit 55",
        "pfifo limit 77",
        "fq limit 4321 flow_limit 55 maxrate 33mbit",
        "pie target 17ms limit 300",
        "cake bandwidth 33mbit diffserv8 overhead 13 wash rtt 50ms",
        "tbf rate 44mbit burst 20k limit 60k",
        "sfq limit 99 perturb 7",
    ] {
        tc(
            &home,
            &format!("qdisc add dev {LINE} root handle 42: {theirs}"),
        );
        let before = home.state();
        refused(
            &home.plumb(&[&APPLY[..], &BOTH].concat()),
            &["--replace", "42:"],
        );
        assert_eq!(home.state(), before, "{theirs}");
        let output = home.plumb(&[&APPLY[..], &BOTH, &["--replace"]].concat());
        assert!(output.status.success(), "{theirs}: {}", stderr(&output));
        assert_eq!(home.root()["kind"], "cake");
        let undone = home.undo();
        assert_eq!(home.state(), before, "{theirs}: {undone}");
        // The download alone leaves it where it is.
        let output = home.plumb(&[&APPLY[..], &["--down", "20mbit"]].concat());
        assert!(output.status.success(), "{theirs}: {}", stderr(&output));
        home.undo();
        assert_eq!(home.state(), before, "{theirs}");
        tc(&home, &format!("qdisc del dev {LINE} root"));
    }
}

#[test]
#[ignore = "runs in the virtual machine"]
fn what_cannot_be_made_again_is_refused() {
    let home = Home::new();
    for (theirs, why) in [
        (
            &[
                "qdisc add dev wan root handle 1: htb default 10",
                "class add dev wan parent 1: classid 1:10 htb rate 5mbit",
            ][..],
            "parts",
        ),
        (
            &[
                "qdisc add dev wan root handle 1: prio",
                "qdisc add dev wan parent 1:1 handle 2: pfifo limit 9",
            ],
            "others in it",
        ),
        (
            &["qdisc add dev wan root handle 1: stab overhead 20 linklayer atm fq_codel"],
            "stab",
        ),
    ] {
        for line in theirs {
            tc(&home, line);
        }
        let before = home.state();
        refused(
            &home.plumb(&[&APPLY[..], &BOTH, &["--replace"]].concat()),
            &["exactly", why],
        );
        assert_eq!(home.state(), before, "{theirs:?}");
        tc(&home, "qdisc del dev wan root");
    }
}

#[test]
#[ignore = "runs in the virtual machine"]
fn filters_of_received_packets_are_refused_and_an_empty_place_is_shared() {
    let home = Home::new();
    tc(&home, "qdisc add dev wan clsact");
    let before = home.state();
    home.shape(&BOTH);
    assert_eq!(home.root()["kind"], "cake");
    home.undo();
    assert_eq!(home.state(), before);
    tc(
        &home,
        "filter add dev wan ingress prio 3 protocol ip u32 match u8 0 0 at 0 action ok",
    );
    let before = home.state();
    refused(
        &home.plumb(&[&APPLY[..], &BOTH].concat()),
        &["filters", "clsact"],
    );
    assert_eq!(home.state(), before);
    // Upwards nothing is in the way.
    home.shape(&["--up", "20mbit"]);
    home.undo();
    assert_eq!(home.state(), before);
}

/// What somebody puts in the shaper's place is theirs.
#[test]
#[ignore = "runs in the virtual machine"]
fn what_somebody_changed_since_is_left_alone() {
    let home = Home::new();
    home.shape(&BOTH);
    tc(&home, "qdisc replace dev wan root handle 9: pfifo limit 12");
    let status = stdout(&home.plumb(&["shape", "status", LINE]));
    assert!(status.contains("it was removed"), "{status}");
    let undone = home.undo();
    assert!(undone.contains("Left alone: wan has pfifo 9:"), "{undone}");
    assert_eq!(home.root()["handle"], "9:");
    assert_eq!(
        home.qdiscs(LINE).len(),
        1,
        "the place of the redirection is gone"
    );
    tc(&home, "qdisc del dev wan root");

    // Without its journal a shaper is known by its handle.
    let before = home.state();
    home.shape(&BOTH);
    for entry in std::fs::read_dir(plumb_host::shape::journal::STATE).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    home.undo();
    assert_eq!(home.state(), before);
}

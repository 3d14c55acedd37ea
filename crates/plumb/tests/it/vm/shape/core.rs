//! The least that a shaper must do, which is tried before every change: it is planned, applied, has its effect, and goes without a
//! trace; it undoes itself where nobody confirms it; and what makes no sense is refused.

use std::time::Duration;

use super::effect::{greedy, received, servers};
use super::{BOTH, Home, LINE, refused};
use crate::common::{stderr, stdout};

#[test]
#[ignore = "runs in the virtual machine"]
fn it_is_planned_applied_felt_and_undone() {
    let home = Home::new();
    let before = home.state();
    let rates = ["--up", "5mbit", "--down", "30mbit"];
    let plan = home.plumb(&[&["shape", "plan", LINE], &rates[..]].concat());
    assert!(
        stdout(&plan).contains("tc qdisc add dev wan root handle 7587: cake bandwidth 5000kbit")
    );
    assert_eq!(home.state(), before);
    home.shape(&rates);
    let servers = servers(&home);
    let bps = received(greedy(&home, 0, "2", "1", &[]));
    drop(servers);
    // Of 1518 bytes on the line 1448 are payload.
    assert!((4e6..5e6 * 1448.0 / 1518.0 * 1.005).contains(&bps), "{bps}");
    let status = stdout(&home.plumb(&["shape", "status", LINE]));
    assert!(status.contains("up 5.00 Mbit/s"), "{status}");
    home.undo();
    assert_eq!(home.state(), before);
}

#[test]
#[ignore = "runs in the virtual machine"]
fn it_undoes_itself_where_nobody_confirms_it() {
    let home = Home::new();
    let before = home.state();
    let apply = [
        "shape", "apply", LINE, "--yes", "--for", "3s", "--scheme", "htb",
    ];
    let applied = home.plumb(&[&apply, &BOTH[..]].concat());
    assert!(applied.status.success(), "{}", stderr(&applied));
    assert_eq!(home.root()["kind"], "tbf");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(home.state(), before);
}

#[test]
#[ignore = "runs in the virtual machine"]
fn what_makes_no_sense_is_refused() {
    let home = Home::new();
    let before = home.state();
    let apply = |device: &str, options: &[&str]| {
        home.plumb(&[&["shape", "apply", device, "--yes", "--keep"], options].concat())
    };
    refused(&apply("wan7", &BOTH), &["no interface wan7", "lan1", "wan"]);
    refused(&apply(LINE, &["--up", "0"]), &["above zero"]);
    refused(&apply("lo", &BOTH), &["loopback"]);
    assert_eq!(home.state(), before);
}

//! Devices, rates and kernels that a shaper cannot have: a clear error, and the link keeps working.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{BOTH, Home, LINE, command, refused, run};
use crate::common::{PLUMB, stderr};

#[test]
#[ignore = "runs in the virtual machine"]
fn devices_and_rates_that_make_no_sense() {
    let home = Home::new();
    let before = home.state();
    let apply = |device: &str, options: &[&str]| {
        home.plumb(&[&["shape", "apply", device, "--yes", "--keep"], options].concat())
    };
    refused(&apply("wan7", &BOTH), &["no interface wan7", "lan1", "wan"]);
    refused(&apply("lo", &BOTH), &["loopback"]);
    refused(&apply(LINE, &["--up", "0"]), &["above zero"]);
    refused(&apply(LINE, &["--up", "1bit"]), &["too small"]);
    refused(&apply(LINE, &[]), &["--up"]);
    run(
        &home.router,
        "ip",
        &["link", "add", "br0", "type", "bridge"],
    );
    run(
        &home.router,
        "ip",
        &["link", "set", "lan2", "master", "br0"],
    );
    refused(&apply("lan2", &BOTH), &["port of the bridge br0"]);
    run(&home.router, "ip", &["link", "del", "br0"]);
    assert_eq!(home.state(), before);
    refused(
        &home.plumb(&["shape", "confirm", LINE]),
        &["nothing to keep"],
    );
    let undo = home.plumb(&["shape", "undo", LINE]);
    assert!(undo.status.success(), "{}", stderr(&undo));
}

/// The card has a rate, other than a veth.
#[test]
#[ignore = "runs in the virtual machine"]
fn a_rate_above_the_link() {
    let _ = Command::new("modprobe").arg("vmxnet3").status();
    let _ = Command::new("ip")
        .args(["link", "set", "eth0", "up"])
        .status();
    let plan = Command::new(PLUMB)
        .args(["shape", "plan", "eth0", "--up", "100gbit"])
        .output()
        .unwrap();
    refused(&plan, &["eth0 runs at", "below the line's"]);
    let _ = Command::new("ip")
        .args(["link", "set", "eth0", "down"])
        .status();
}

#[test]
#[ignore = "runs in the virtual machine"]
fn two_at_a_time_on_one_device() {
    let home = Home::new();
    let before = home.state();
    let apply = [
        &["shape", "apply", LINE, "--yes", "--keep", "--scheme", "htb"],
        &BOTH[..],
    ]
    .concat();
    let mut both = [0, 1].map(|_| command(&home.router, PLUMB, &apply).spawn().unwrap());
    let succeeded = both.iter_mut().filter_map(|child| {
        let status = child.wait().unwrap();
        status.success().then_some(())
    });
    assert_eq!(succeeded.count(), 1);
    refused(
        &home.plumb(&apply),
        &["plumb's shaper already", "plumb shape undo wan"],
    );
    home.undo();
    assert_eq!(home.state(), before);
}

/// Without the modules, and with no way to load them: what is missing has its name and its option, and nothing is left.
#[test]
#[ignore = "runs in the virtual machine"]
fn a_kernel_without_a_part() {
    const LOADER: &str = "/proc/sys/kernel/modprobe";
    let home = Home::new();
    let before = home.state();
    let loader = fs::read_to_string(LOADER).unwrap();
    let apply = |scheme: &str| {
        home.plumb(
            &[
                &[
                    "shape", "apply", LINE, "--yes", "--keep", "--scheme", scheme,
                ],
                &BOTH[..],
            ]
            .concat(),
        )
    };
    let parts = [
        ("cake", "sch_cake", "CONFIG_NET_SCH_CAKE"),
        ("htb", "sch_htb", "CONFIG_NET_SCH_HTB"),
        ("htb", "cls_flow", "CONFIG_NET_CLS_FLOW"),
        ("cake", "ifb", "CONFIG_IFB"),
        ("cake", "act_mirred", "CONFIG_NET_ACT_MIRRED"),
        ("cake", "cls_matchall", "CONFIG_NET_CLS_MATCHALL"),
    ];
    for (scheme, module, option) in parts {
        // All of them are loaded but one.
        for part in PARTS {
            let loaded = Command::new("modprobe").arg(part).status().unwrap();
            assert!(loaded.success(), "{part}");
        }
        take_away(module);
        fs::write(LOADER, "/bin/false").unwrap();
        let output = apply(scheme);
        fs::write(LOADER, &loader).unwrap();
        // This system has no os-release, so that the packages of several are named, and the option.
        refused(
            &output,
            &["this kernel", module, option, "everything is as it was"],
        );
        assert_eq!(home.state(), before, "{module}");
    }
}

/// The modules of both schemes.
const PARTS: [&str; 9] = [
    "sch_cake",
    "sch_htb",
    "sch_tbf",
    "sch_fq_codel",
    "sch_ingress",
    "cls_flow",
    "cls_matchall",
    "act_mirred",
    "ifb",
];

/// Takes a module out of the kernel, when what used it has gone: namespaces go a while after their last process.
fn take_away(module: &str) {
    let is_there = || {
        let modules = fs::read_to_string("/proc/modules").unwrap();
        modules
            .lines()
            .any(|line| line.starts_with(&format!("{module} ")))
    };
    let started = Instant::now();
    while is_there() {
        let _ = Command::new("modprobe").args(["--remove", module]).output();
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{module} is in use"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

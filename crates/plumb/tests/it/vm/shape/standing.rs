//! What stands on the interface is what was asked for, attribute by attribute, and goes without a trace.

use std::path::Path;

use plumb_host::shape::journal::STATE;
use plumb_host::shape::rates::set_rates;
use serde_json::{Value, json};

use super::{BOTH, Home, LINE, SERVER, run, shell};
use crate::common::{stderr, stdout};

fn has(qdisc: &Value, wanted: &Value) {
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&qdisc["options"][key], value, "{key} of {qdisc}");
    }
}

#[test]
#[ignore = "runs in the virtual machine"]
fn cake_is_applied_read_back_and_undone() {
    let home = Home::new();
    let before = home.state();
    let options = [
        "--framing",
        "pppoe-ptm",
        "--classes",
        "diffserv4",
        "--nat",
        "--ack-filter",
    ];
    home.shape(&[&BOTH[..], &options].concat());
    let up = home.root();
    assert_eq!(
        (&up["kind"], &up["handle"]),
        (&json!("cake"), &json!("7587:"))
    );
    let common = json!({
        "diffserv": "diffserv4", "nat": true, "overhead": 30, "atm": "ptm", "split_gso": true, "rtt": 100_000, "wash": false,
    });
    has(&up, &common);
    has(
        &up,
        &json!({"bandwidth": 2_500_000, "flowmode": "dual-srchost", "ingress": false, "ack-filter": "enabled"}),
    );
    let ifb = home.ifb();
    let down = &home.qdiscs(&ifb)[0];
    has(down, &common);
    has(
        down,
        &json!({"bandwidth": 3_750_000, "flowmode": "dual-dsthost", "ingress": true, "ack-filter": "disabled"}),
    );
    let filters = stdout(&run(
        &home.router,
        "tc",
        &["filter", "show", "dev", LINE, "ingress"],
    ));
    assert!(
        filters.contains("matchall") && filters.contains(&format!("to device {ifb}")),
        "{filters}"
    );

    // The controller's function changes the rates and nothing else.
    let change = || set_rates(Path::new(STATE), LINE, Some(7_000_000), Some(9_000_000));
    home.router
        .in_network(|| {
            change().unwrap();
            Ok::<_, std::io::Error>(())
        })
        .unwrap();
    let (mut then, now) = (up.clone(), home.root());
    then["options"]["bandwidth"] = json!(875_000);
    assert_eq!(now, then);
    assert_eq!(
        home.qdiscs(&ifb)[0]["options"]["bandwidth"],
        json!(1_125_000)
    );

    let again = home.plumb(&["shape", "apply", LINE, "--yes", "--up", "5mbit"]);
    assert!(
        stderr(&again).contains("shape undo wan"),
        "{}",
        stderr(&again)
    );
    assert_eq!(home.root(), now);
    home.undo();
    assert_eq!(home.state(), before);
}

#[test]
#[ignore = "runs in the virtual machine"]
fn htb_is_applied_read_back_and_undone() {
    let home = Home::new();
    let before = home.state();
    let options = [
        "--scheme",
        "htb",
        "--framing",
        "ethernet",
        "--classes",
        "premium",
    ];
    home.shape(&[&BOTH[..], &options].concat());
    let ifb = home.ifb();
    for (device, bps) in [(LINE, 20_000_000_u64), (&ifb, 30_000_000)] {
        let qdiscs = home.qdiscs(device);
        let count = |kind: &str| qdiscs.iter().filter(|q| q["kind"] == kind).count();
        // The bucket that cuts super-packets apart, the shaper in it, and a queue for each host of two classes.
        assert_eq!((count("tbf"), count("htb"), count("fq_codel")), (1, 1, 128));
        let tbf = qdiscs.iter().find(|q| q["kind"] == "tbf").unwrap();
        assert_eq!(tbf["options"]["rate"], json!(bps * 10 / 8), "{tbf}");
        let queue = qdiscs.iter().find(|q| q["kind"] == "fq_codel").unwrap();
        // CoDel's times are kept in steps of 1.024 us.
        has(
            queue,
            &json!({"flows": 128, "target": 4999, "interval": 99_999, "ecn": true, "memory_limit": 4 << 20, "quantum": 1518}),
        );
        let classes = stdout(&run(
            &home.router,
            "tc",
            &["-d", "class", "show", "dev", device],
        ));
        let of = |id: &str| {
            let line = classes
                .lines()
                .find(|line| line.contains(&format!("class htb {id} ")));
            line.unwrap_or_else(|| panic!("{id} in {classes}"))
                .to_owned()
        };
        let mbit = bps / 1_000_000;
        for (id, rate) in [
            ("7587:1", format!("rate {mbit}Mbit ")),
            ("7587:10", format!("rate {}Mbit ", mbit / 4)),
            ("7587:11", format!("rate {}Mbit ", mbit * 3 / 4)),
        ] {
            let line = of(id)
                .replace("7500Kbit", "7Mbit")
                .replace("22500Kbit", "22Mbit");
            assert!(
                line.contains(&rate) && line.contains(&format!("ceil {mbit}Mbit")),
                "{line}"
            );
            assert!(
                line.contains(" overhead 24 ") && line.contains(" mpu 84b"),
                "{line}"
            );
        }
        assert!(of("7587:13f").contains("parent 7587:10"));
        assert!(of("7587:23f").contains("parent 7587:11"));
        let filters = stdout(&run(
            &home.router,
            "tc",
            &["filter", "show", "dev", device, "parent", "7587:"],
        ));
        let key = if device == LINE {
            "keys src"
        } else {
            "keys dst"
        };
        assert!(
            filters.contains(key) && filters.contains("divisor 64"),
            "{filters}"
        );
        // EF and VA in IPv4 (the second byte) and IPv6 (across the first two).
        assert!(
            filters.contains("match 00b00000/00f40000 at 0"),
            "{filters}"
        );
        assert!(
            filters.contains("match 0b000000/0f400000 at 0"),
            "{filters}"
        );
    }
    let disciplines = home.qdiscs(LINE).len();
    home.router
        .in_network(|| {
            set_rates(Path::new(STATE), LINE, Some(8_000_000), None).unwrap();
            Ok::<_, std::io::Error>(())
        })
        .unwrap();
    let classes = stdout(&run(&home.router, "tc", &["class", "show", "dev", LINE]));
    assert!(
        classes.contains("class htb 7587:1 root rate 8Mbit overhead 24 ceil 8Mbit "),
        "{classes}"
    );
    assert_eq!(
        classes.matches("ceil 8Mbit").count(),
        1 + 2 + 128,
        "{classes}"
    );
    assert_eq!(home.qdiscs(LINE).len(), disciplines);
    home.undo();
    assert_eq!(home.state(), before);
}

/// What is shown as commands does what is done over netlink.
#[test]
#[ignore = "runs in the virtual machine"]
fn the_commands_make_what_netlink_makes() {
    let home = Home::new();
    for options in [
        &["--classes", "diffserv4", "--framing", "pppoe-llcsnap"][..],
        &["--scheme", "htb", "--classes", "diffserv4"],
        &["--scheme", "htb", "--framing", "pppoe-llcsnap", "--nat"],
    ] {
        let before = home.state();
        let plan = home.plumb(&[&["shape", "plan", LINE, "--json"], &BOTH[..], options].concat());
        let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
        home.shape(&[&BOTH[..], options].concat());
        let ours = listed(&home);
        home.undo();
        let all = |key: &str| {
            for line in plan[key].as_array().unwrap() {
                shell(&home.router, line.as_str().unwrap());
            }
        };
        all("commands");
        assert_eq!(listed(&home), ours, "{options:?}");
        all("undo");
        assert_eq!(home.state(), before);
    }
}

/// All that is listed of both devices, without what only tells when it was made.
fn listed(home: &Home) -> Vec<String> {
    let ifb = home.ifb();
    let mut listed = Vec::new();
    for device in [LINE, &ifb] {
        for words in [
            &["qdisc", "show", "dev", device][..],
            &["-d", "class", "show", "dev", device],
            &["filter", "show", "dev", device],
        ] {
            let text = stdout(&run(&home.router, "tc", words));
            // A packet of the kernel's own may be counted, or wait in a flow, when it is listed.
            let of_flow = ["class fq_codel ", "class cake "];
            let lines = text
                .lines()
                .filter(|line| !of_flow.iter().any(|begin| line.starts_with(begin)));
            let mut lines: Vec<String> = lines
                .map(|line| match line.split_once(" direct_packets_stat ") {
                    Some((before, counted)) => {
                        let after = counted.split_once(' ').map_or("", |(_, after)| after);
                        format!("{before} {after}")
                    }
                    None => line.to_owned(),
                })
                .collect();
            lines.sort();
            listed.extend(lines);
        }
    }
    listed
}

#[test]
#[ignore = "runs in the virtual machine"]
fn it_is_undone_by_itself_unless_it_is_confirmed() {
    let home = Home::new();
    let before = home.state();
    let apply = ["shape", "apply", LINE, "--yes", "--for", "3s"];
    let applied = home.plumb(&[&apply, &BOTH[..]].concat());
    assert!(applied.status.success(), "{}", stderr(&applied));
    assert_eq!(home.root()["kind"], "cake");
    let status = stdout(&home.plumb(&["shape", "status", LINE]));
    assert!(status.contains("undone by itself at"), "{status}");
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(home.state(), before);

    home.plumb(&[&apply, &BOTH[..]].concat());
    let confirm = home.plumb(&["shape", "confirm", LINE]);
    assert!(confirm.status.success(), "{}", stderr(&confirm));
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(home.root()["kind"], "cake");
    home.undo();
    assert_eq!(home.state(), before);
    let late = home.plumb(&["shape", "confirm", LINE]);
    assert!(
        stderr(&late).contains("nothing to keep"),
        "{}",
        stderr(&late)
    );

    // Whoever still reaches the far end needs not confirm.
    for (host, kept) in [(SERVER, true), ("192.0.2.77", false)] {
        let applied = home.plumb(&[&apply, &BOTH[..], &["--far-end", host]].concat());
        assert!(applied.status.success(), "{}", stderr(&applied));
        std::thread::sleep(std::time::Duration::from_secs(20));
        assert_eq!(home.root()["kind"] == "cake", kept, "{host}");
        home.undo();
        assert_eq!(home.state(), before);
    }
}

//! Every rendering, word for word.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use plumb_link::spec::ChainSpec;

use super::line::ETHERNET_HEADER_BYTES;
use super::*;
use crate::scenario::Scenario;
use plumb_net::tc::spell;

fn chain(text: &str) -> ChainSpec {
    #[derive(serde::Deserialize)]
    struct File {
        cells: ChainSpec,
    }
    toml::from_str::<File>(&format!("cells = [{text}]"))
        .unwrap()
        .cells
}

fn rendered(text: &str) -> Vec<String> {
    let tree = Tree::render(&chain(text)).unwrap();
    tree.commands("line", 1500, 1)
        .iter()
        .map(|c| spell(c))
        .collect()
}

#[test]
fn the_cable_line() {
    // 2 frames of 1518 and 250 µs at 20 Mbit/s (625 B); 700 ms are 1,750,000 B; netem holds
    // 9 ms of 2 x 20e6 / 672 packets/s (535), 1000 more and the queue of 52-byte packets.
    assert_eq!(
        rendered(
            r#"{ type = "shaper", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "700ms" } },
               { type = "delay", delay = "9ms" }"#
        ),
        [
            "tc qdisc add dev line root handle 1: stab overhead 4 netem limit 35188 delay 9000us",
            "tc qdisc add dev line parent 1:1 handle 2: tbf rate 20000000bit burst 3661 limit 1750000 mpu 64",
        ]
    );
}

#[test]
fn a_managed_line_without_delay() {
    assert_eq!(
        rendered(
            r#"{ type = "shaper", rate = "19mbit", framing = "pppoe-llcsnap", queue = { type = "fq_codel" } }"#
        ),
        [
            "tc qdisc add dev line root handle 1: stab overhead -14 tbf rate 19000000bit burst 4091 limit 4091 overhead 40 linklayer atm",
            "tc qdisc add dev line parent 1:1 handle 2: fq_codel limit 10240 flows 1024 quantum 1514 target 5000us interval 100000us memory_limit 33554432 ecn",
        ]
    );
}

#[test]
fn each_queue_as_tc_writes_it() {
    for (queue, wanted) in [
        (
            r#"{ type = "fifo", limit = "9p", drop = "head" }"#,
            "pfifo_head_drop limit 9",
        ),
        (
            r#"{ type = "codel", ecn = true }"#,
            "codel limit 1000 target 5000us interval 100000us ecn",
        ),
        (
            r#"{ type = "red", ecn = true }"#,
            "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02 bandwidth 10000000bit ecn",
        ),
        (
            r#"{ type = "pie" }"#,
            "pie limit 1000 target 15000us tupdate 15000us alpha 2 beta 20 noecn nobytemode",
        ),
    ] {
        let commands = rendered(&format!(
            r#"{{ type = "shaper", rate = "10mbit", queue = {queue} }}"#
        ));
        let leaf = format!("tc qdisc add dev line parent 1:1 handle 2: {wanted}");
        assert_eq!(commands.last(), Some(&leaf));
    }
}

#[test]
fn what_netem_does_to_packets() {
    for (cells, wanted) in [
        (
            r#"{ type = "delay", delay = "20ms", jitter = "5ms", reordering = true, distribution = "normal" }, { type = "delay", delay = "1ms" }"#,
            "netem limit 27000 delay 21000us 5000us distribution normal",
        ),
        (
            r#"{ type = "loss", ratio = "50%" }, { type = "loss", ratio = "50%" }"#,
            "netem limit 1000 loss random 75.000000000%",
        ),
        (
            r#"{ type = "gilbert_elliott", p = "1%", r = "25%", loss_good = "0.1%" }"#,
            "netem limit 1000 loss gemodel 1.000000000% 25.000000000% 100.000000000% 0.100000000%",
        ),
        (
            r#"{ type = "markov4", p13 = "1%", p31 = "30%", p14 = "2%" }"#,
            "netem limit 1000 loss state 1.000000000% 30.000000000% 0.000000000% 100.000000000% 2.000000000%",
        ),
        (
            r#"{ type = "duplicate", ratio = "1%" }, { type = "corrupt", ratio = "2%" }"#,
            "netem limit 1000 duplicate 1.000000000% corrupt 2.000000000%",
        ),
    ] {
        let command = format!("tc qdisc add dev line root handle 1: {wanted}");
        assert_eq!(rendered(cells), [command], "{cells}");
    }
    let behind = chain(r#"{ type = "shaper", rate = "1mbit" }, { type = "loss", ratio = "1%" }"#);
    assert!(Tree::render(&behind).unwrap().notes[0].contains("before the rate"));
}

#[test]
fn a_burst_at_its_own_rate() {
    assert_eq!(
        rendered(
            r#"{ type = "shaper", rate = "20mbit", burst = "100kB", peak_rate = "50mbit", queue = { type = "fifo", limit = "50kB" } }"#
        ),
        [
            "tc qdisc add dev line root handle 1: stab overhead -14 tbf rate 20000000bit burst 100000 limit 50000 peakrate 50000000bit mtu 3000"
        ]
    );
}

#[test]
fn cake_is_shaper_and_queue() {
    assert_eq!(
        rendered(
            r#"{ type = "shaper", rate = "10mbit", framing = "pppoe-ptm", queue = { type = "cake", isolation = "dual-srchost", memory_limit = "1MB" } }, { type = "delay", delay = "1ms" }"#
        ),
        [
            "tc qdisc add dev line root handle 1: netem limit 20259 delay 1000us",
            "tc qdisc add dev line parent 1:1 handle 2: cake bandwidth 10000000bit overhead 30 mpu 0 ptm diffserv3 dual-srchost no-ack-filter nowash rtt 100000us memlimit 1000000",
        ]
    );
}

#[test]
fn the_framing_is_counted_once() {
    for (framing, queue) in [
        ("docsis", "700ms"),
        ("docsis", "500kB"),
        ("overhead -5", "9p"),
        ("raw", "1ms"),
    ] {
        let tree = Tree::render(&chain(&format!(
            r#"{{ type = "shaper", rate = "1mbit", framing = "{framing}", queue = {{ type = "fifo", limit = "{queue}" }} }}"#
        )))
        .unwrap();
        let line = tree.line.unwrap();
        let arguments = line.arguments(1500);
        let at_tbf = arguments
            .iter()
            .position(|word| word == "overhead")
            .map_or(0, |at| arguments[at + 1].parse::<i64>().unwrap());
        assert_eq!(
            ETHERNET_HEADER_BYTES + line.stab_overhead() + at_tbf,
            i64::from(line.framing.overhead_bytes),
            "{framing} {queue}"
        );
    }
}

#[test]
fn what_the_kernel_cannot_do_is_named() {
    for (cells, says) in [
        (
            r#"{ type = "shaper", name = "dsl", rate = "1mbit", framing = "pppoe-ptm" }"#,
            "'dsl'",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "codel", limit = "5ms" } }"#,
            "counts packets",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit" }, { type = "shaper", name = "second", rate = "1mbit" }"#,
            "'second'",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "fifo", limit = "5ms", drop = "head" } }"#,
            "drops at the head",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "pie", alpha = 0.2 } }"#,
            "sixteenths",
        ),
        (
            r#"{ type = "delay", delay = "9ms", jitter = "2ms" }"#,
            "overtake",
        ),
        (
            r#"{ type = "loss", ratio = "1%" }, { type = "gilbert_elliott", p = "1%", r = "9%" }"#,
            "'gilbert_elliott'",
        ),
        (
            r#"{ type = "shaper", schedule = [{ at = "0s", rate = "1mbit" }] }"#,
            "no schedule",
        ),
        (
            r#"{ type = "outage", at = "1s", lasts = "1s" }"#,
            "nothing of the kind",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "docsis_pie" } }"#,
            "no such queue",
        ),
    ] {
        let error = Tree::render(&chain(cells)).unwrap_err().to_string();
        assert!(
            error.contains(says) && error.contains("--backend emulated"),
            "{error}"
        );
    }
}

#[test]
fn no_cells_no_commands() {
    let tree = Tree::render(&chain(r#"{ type = "delay", delay = "0ms" }"#)).unwrap();
    assert!(tree.is_empty() && tree.commands("x", 1500, 1).is_empty());
}

#[test]
fn netem_never_drops_what_the_line_could_send() {
    // A delay alone: a second of the fastest arrivals.
    let netem = Netem {
        delay: Duration::from_secs(1),
        ..Default::default()
    };
    assert_eq!(netem.limit(None), 1_001_000);
    assert_eq!(
        spell(&netem.arguments(7)),
        "tc netem limit 7 delay 1000000us"
    );
    let lossy = Netem {
        jitter: Duration::from_millis(2),
        loss: Loss::Random(0.01),
        reorder_ratio: 0.25,
        ..netem
    };
    assert_eq!(
        spell(&lossy.arguments(7)),
        "tc netem limit 7 delay 1000000us 2000us loss random 1.000000000% reorder 25.000000000%"
    );
}

/// Twice the largest packet passes tbf at once, or the packet never would.
#[test]
fn a_link_of_large_packets_passes_them() {
    let text = r#"
name = "jumbo"
summary = "a link that takes 9000 bytes"
[[node]]
name = "client"
[[node]]
name = "server"
[[link]]
name = "line"
between = ["client", "server"]
mtu = 9000
up = [{ type = "shaper", rate = "10mbit" }]
"#;
    let scenario = Scenario::parse(text, "a test").unwrap();
    let directions = links::render(&scenario).unwrap();
    let commands: Vec<_> = directions[0].commands().iter().map(|c| spell(c)).collect();
    let mut burst = commands[0].split(' ').skip_while(|word| *word != "burst");
    let burst: u32 = burst.nth(1).unwrap().parse().unwrap();
    assert!((18_000..19_000).contains(&burst), "{commands:?}");
}

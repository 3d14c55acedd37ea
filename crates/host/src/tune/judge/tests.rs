//! What advice is worth, on a stock host and 1 Gbit/s over 80 ms unless said otherwise.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::finding::Actor;
use plumb_model::tune::{Os, Role};

use super::*;
use crate::facts::Modules;
use crate::tune::plan::plan_host;
use crate::tune::plan::tests::{path, stock};
use crate::tune::snapshot::AVAILABLE;

fn judged_on(host: &Snapshot, situation: &Situation, knob: &str, value: &str) -> (Worth, String) {
    let catalogue = Catalogue::built_in().unwrap();
    let settings = [(knob.to_owned(), value.to_owned())];
    let plan = plan_host(&catalogue, host, situation, Actor::ThisHost, &settings);
    let judged = &plan.judged[0];
    (judged.worth, judged.why.clone())
}

fn host() -> Snapshot {
    let mut host = Snapshot {
        memory_bytes: Some(24 << 30),
        modules: Modules::only(&["tcp_bbr", "tcp_vegas", "sch_fq", "sch_fq_codel"]),
        ..stock()
    };
    for (key, value) in [
        ("net.ipv4.tcp_mem", "287898 383867 575796"),
        ("net.ipv4.ip_local_port_range", "32768 60999"),
        ("net.core.netdev_max_backlog", "1000"),
        (AVAILABLE, "reno cubic"),
    ] {
        host.values.insert(key.to_owned(), value.to_owned());
    }
    host
}

#[track_caller]
fn is(knob: &str, value: &str, worth: Worth, words: &str) {
    let (found, why) = judged_on(&host(), &path(1e9, 0.080), knob, value);
    assert_eq!(found, worth, "{knob} = {value}: {why}");
    assert!(why.contains(words), "{knob} = {value}: {why}");
}

#[test]
fn what_takes_away_what_the_path_needs_does_harm() {
    let needs = "needs 10.0 MB in flight";
    is(
        "net.ipv4.tcp_wmem",
        "4096 16384 131072",
        Worth::Harmful,
        "It is in the wrong direction",
    );
    is(
        "net.ipv4.tcp_wmem",
        "4096 16384 131072",
        Worth::Harmful,
        "One connection would carry about 10.5 Mbit/s",
    );
    is(
        "net.ipv4.tcp_wmem",
        "4096 16384 8388608",
        Worth::TooLittle,
        needs,
    );
    is(
        "net.ipv4.tcp_wmem",
        "4096 16384 33554432",
        Worth::Helps,
        needs,
    );
    let mut large = host();
    large.values.insert(
        "net.ipv4.tcp_rmem".to_owned(),
        "4096 131072 33554432".to_owned(),
    );
    let of = |value| judged_on(&large, &path(1e9, 0.080), "net.ipv4.tcp_rmem", value);
    let (worth, why) = of("4096 131072 4194304");
    assert_eq!(worth, Worth::Harmful, "{why}");
    assert!(why.contains("carry about 273 Mbit/s"), "{why}");
    let (worth, why) = of("4096 131072 16777216");
    assert_eq!(worth, Worth::NoEffect, "{why}");
    assert!(why.contains("It lowers 33554432 to 16777216."), "{why}");
    assert_eq!(of("4096 87380 67108864").0, Worth::Harmful);
    is("net.ipv4.tcp_sack", "0", Worth::Harmful, "obsolete advice");
}

#[test]
fn what_starves_this_host_does_harm_on_every_path() {
    is("net.core.somaxconn", "16", Worth::Harmful, "refused");
    is(
        "net.core.somaxconn",
        "1024",
        Worth::NoEffect,
        "It lowers 4096 to 1024.",
    );
    is(
        "net.core.optmem_max",
        "1000",
        Worth::Harmful,
        "no longer fit",
    );
    is(
        "net.core.netdev_max_backlog",
        "10",
        Worth::Harmful,
        "300 packets",
    );
    is(
        "net.core.netdev_max_backlog",
        "16384",
        Worth::NoEffect,
        "NAPI",
    );
    let ports = "net.ipv4.ip_local_port_range";
    is(
        ports,
        "40000 40100",
        Worth::Harmful,
        "101 ports are 1.7 new connections a second",
    );
    is(ports, "32768 65535", Worth::NoEffect, "");
    is(ports, "60000 40000", Worth::Impossible, "below its first");
}

#[test]
fn a_server_that_needs_more_is_not_given_less() {
    let server = Situation {
        role: Role::Server,
        ..path(1e9, 0.080)
    };
    let of = |knob, value| judged_on(&host(), &server, knob, value).0;
    assert_eq!(of("net.core.somaxconn", "1024"), Worth::Harmful);
    assert_eq!(of("net.core.somaxconn", "6000"), Worth::TooLittle);
    assert_eq!(of("net.core.somaxconn", "8192"), Worth::Helps);
    assert_eq!(of(memory::TCP_MEM, "100000 200000 300000"), Worth::Harmful);
}

#[test]
fn what_is_not_there_cannot_be_set() {
    let control = "net.ipv4.tcp_congestion_control";
    is(
        control,
        "nonesuch",
        Worth::Impossible,
        "this kernel has no nonesuch",
    );
    is(
        control,
        "vegas",
        Worth::Unknown,
        "what loss vegas can stand",
    );
    is(
        control,
        "reno",
        Worth::Harmful,
        "Reno holds 1.00 Gbit/s over 80.0 ms only while",
    );
    is(
        "net.core.default_qdisc",
        "bogus",
        Worth::Impossible,
        "this kernel has no bogus",
    );
    let lossy = Situation {
        loss_ratio: Some(0.01),
        ..path(1e9, 0.080)
    };
    let of = |host: &Snapshot, knob, value| judged_on(host, &lossy, knob, value);
    assert_eq!(of(&host(), control, "bbr").0, Worth::Helps);
    assert_eq!(of(&host(), control, "reno").0, Worth::Harmful);
    assert_eq!(of(&host(), "net.core.default_qdisc", "fq").0, Worth::Helps);
    // The article's fq, where the kernel has none.
    let without = Snapshot {
        modules: Modules::only(&["tcp_bbr"]),
        ..host()
    };
    let (worth, why) = of(&without, "net.core.default_qdisc", "fq");
    assert_eq!(
        (worth, why.as_str()),
        (Worth::Impossible, "this kernel has no fq")
    );
    // A host that was pasted reports its loaded modules.
    let pasted = Snapshot {
        modules: Modules::default(),
        ..host()
    };
    let (worth, why) = of(&pasted, "net.core.default_qdisc", "bogus");
    assert_eq!(worth, Worth::Unknown, "{why}");
    let namespace = Snapshot {
        whole_machine: false,
        ..host()
    };
    let (worth, why) = of(&namespace, control, "bbr");
    assert_eq!(worth, Worth::Impossible, "{why}");
    assert!(why.contains("namespace may not choose bbr"), "{why}");
}

#[test]
fn memory_of_all_of_tcp_is_judged_by_the_machine() {
    let mem = memory::TCP_MEM;
    is(
        mem,
        "1048576 2097152 4194304",
        Worth::Harmful,
        "17.2 GB of this host's 25.8 GB",
    );
    is(mem, "100 200 300", Worth::Harmful, "its numbers are pages");
    is(
        mem,
        "200000 300000 500000",
        Worth::NoEffect,
        "all of TCP may then hold 2.05 GB",
    );
    is(mem, "5", Worth::Impossible, "takes 3 numbers");
    let unknown = Snapshot::unknown(Os::Linux);
    let (worth, why) = judged_on(&unknown, &path(1e9, 0.080), mem, "1048576 2097152 4194304");
    assert_eq!(worth, Worth::Unknown, "{why}");
}

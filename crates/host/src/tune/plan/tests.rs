//! Plans for hosts and paths.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use std::collections::BTreeMap;

use plumb_model::tune::Worth;

use plumb_model::results::host::{LinkMode, Offload, Qdisc, Rings};

use super::super::advice;
use super::super::snapshot::{ALLOWED, AVAILABLE};
use super::*;
use crate::facts::Modules;

pub(crate) fn stock() -> Snapshot {
    let values = [
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        (AVAILABLE, "reno cubic bbr"),
        (ALLOWED, "reno cubic"),
        ("net.core.default_qdisc", "fq_codel"),
        ("net.core.somaxconn", "4096"),
        ("net.core.optmem_max", "131072"),
        ("net.core.rmem_max", "212992"),
        ("net.ipv4.tcp_timestamps", "1"),
        ("net.ipv4.tcp_slow_start_after_idle", "1"),
        ("net.ipv4.tcp_mtu_probing", "0"),
    ];
    Snapshot {
        release: Some("6.12.0".to_owned()),
        memory_bytes: Some(64 << 30),
        values: values.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        interface: Some(Interface {
            name: "eth0".to_owned(),
            mtu_bytes: 1500,
            ..Interface::default()
        }),
        qdiscs: vec![qdisc("fq_codel", "0:")],
        ..Snapshot::unknown(Os::Linux)
    }
}

fn qdisc(kind: &str, handle: &str) -> Qdisc {
    Qdisc {
        interface: "eth0".to_owned(),
        kind: kind.to_owned(),
        handle: handle.to_owned(),
        parent: "root".to_owned(),
        ..Qdisc::default()
    }
}

pub(crate) fn path(rate_bps: f64, rtt_s: f64) -> Situation {
    Situation {
        rate_bps,
        rtt_s,
        loss_ratio: None,
        role: Role::Client,
        memory_bytes: None,
        mtu_bytes: None,
        release: None,
    }
}

fn plan(host: &Snapshot, situation: &Situation) -> HostPlan {
    let catalogue = Catalogue::built_in().unwrap();
    let article = advice::parse(advice::ARTICLE).unwrap();
    plan_host(&catalogue, host, situation, Actor::ThisHost, &article)
}

fn changes(plan: &HostPlan) -> BTreeMap<&str, &str> {
    plan.changes
        .iter()
        .map(|c| (c.knob.as_str(), c.to.as_str()))
        .collect()
}

#[test]
fn the_articles_path() {
    let plan = plan(&stock(), &path(10e9, 0.050));
    assert_eq!(
        changes(&plan),
        [
            ("net.core.default_qdisc", "fq"),
            ("net.ipv4.tcp_congestion_control", "bbr"),
            ("net.ipv4.tcp_rmem", "4096 131072 134217728"),
            ("net.ipv4.tcp_wmem", "4096 16384 134217728"),
            ("qdisc fq", "fq"),
        ]
        .into()
    );
    assert_eq!(plan.changes[0].knob, "qdisc fq", "undone last");
    assert_eq!(plan.memory_bytes, Some(256 << 20));
    let worth: BTreeMap<_, _> = plan
        .judged
        .iter()
        .map(|j| (j.knob.as_str(), j.worth))
        .collect();
    for (knob, expected) in [
        ("net.ipv4.tcp_congestion_control", Worth::Helps),
        ("net.core.default_qdisc", Worth::Helps),
        ("net.ipv4.tcp_rmem", Worth::TooLittle),
        ("net.ipv4.tcp_wmem", Worth::TooLittle),
        ("net.core.optmem_max", Worth::Harmful),
        ("net.core.rmem_max", Worth::NoEffect),
        ("net.core.netdev_max_backlog", Worth::NoEffect),
        ("net.ipv4.udp_wmem_min", Worth::NoEffect),
        ("net.ipv4.tcp_slow_start_after_idle", Worth::NoEffect),
    ] {
        assert_eq!(worth[knob], expected, "{knob}");
    }
}

#[test]
fn a_lan_needs_nothing() {
    let plan = plan(&stock(), &path(10e9, 0.0003));
    assert_eq!(changes(&plan), BTreeMap::new());
    assert!(plan.judged.iter().all(|j| j.worth != Worth::Helps));
    assert!(plan.left.iter().any(|l| l.knob == "net.ipv4.tcp_wmem"));
}

#[test]
fn a_namespace_changes_only_what_is_its_own() {
    let host = Snapshot {
        whole_machine: false,
        ..stock()
    };
    let plan = plan(&host, &path(10e9, 0.050));
    assert!(plan.changes.iter().all(|c| c.scope == Scope::Namespace));
    // BBR is not among what a namespace may choose here, so there is no use for fq.
    assert!(!changes(&plan).contains_key("net.ipv4.tcp_congestion_control"));
    assert!(changes(&plan).contains_key("net.ipv4.tcp_wmem"));
    let mut host = host;
    host.values
        .insert(ALLOWED.to_owned(), "reno bbr".to_owned());
    let plan = self::plan(&host, &path(10e9, 0.050));
    let refused = plan
        .refused
        .iter()
        .find(|r| r.knob.ends_with("congestion_control"));
    assert!(refused.unwrap().why.contains("cubic could not be put back"));
}

#[test]
fn a_chosen_queue_is_left_alone() {
    let mut host = stock();
    host.qdiscs = vec![qdisc("cake", "8001:")];
    let plan = plan(&host, &path(10e9, 0.050));
    assert!(!changes(&plan).contains_key("qdisc fq"));
    assert!(plan.refused.iter().any(|r| r.why.contains("chose cake")));
}

#[test]
fn an_interface_is_set_by_typed_actions() {
    let mut host = stock();
    let card = host.interface.as_mut().unwrap();
    card.rings = Some(Rings {
        receive_packets: 256,
        receive_max_packets: 2048,
        ..Rings::default()
    });
    card.counters.rx_packets = 1_000_000;
    card.counters.rx_missed_errors = 1000;
    card.offloads = vec![Offload {
        name: "rx-gro".to_owned(),
        on: false,
        fixed: false,
    }];
    let plan = plan(&host, &path(10e9, 0.0003));
    let actions: Vec<_> = plan.changes.iter().map(|c| c.action.clone()).collect();
    let of = |change| {
        Some(Action::Interface(InterfaceAction {
            interface: "eth0".to_owned(),
            change,
        }))
    };
    let gro = InterfaceChange::Offload {
        feature: "rx-gro".to_owned(),
        on: true,
    };
    assert_eq!(
        actions,
        [of(InterfaceChange::ReceiveRingPackets(2048)), of(gro)]
    );
    assert_eq!(plan.changes[0].from.as_deref(), Some("256"));
}

/// The loaded modules do not show which could be loaded: only the lists of modules do, and a pasted host's are not
/// known.
#[test]
fn bbr_is_planned_where_its_module_would_be_loaded() {
    let of = |modules: Modules| {
        let mut host = Snapshot { modules, ..stock() };
        host.values
            .insert(AVAILABLE.to_owned(), "reno cubic".to_owned());
        plan(&host, &path(10e9, 0.050))
    };
    let name = "net.ipv4.tcp_congestion_control";
    let stock = of(Modules::only(&["tcp_bbr", "sch_fq"]));
    assert_eq!(changes(&stock)[name], "bbr");
    assert_eq!(changes(&stock)["qdisc fq"], "fq");
    let change = |plan: &HostPlan| plan.changes.iter().find(|c| c.knob == name).cloned();
    assert!(!change(&stock).unwrap().why.contains("not known"));
    let pasted = change(&of(Modules::default())).unwrap();
    assert!(pasted.why.contains("is not known"), "{}", pasted.why);
    let none = of(Modules::only(&["sch_fq"]));
    assert!(change(&none).is_none());
    let left = none.left.iter().find(|l| l.knob == name).unwrap();
    assert!(left.why.contains("this kernel has no bbr"), "{}", left.why);
}

#[test]
fn a_kernel_without_fq_gets_bbr_alone() {
    let host = Snapshot {
        modules: Modules::only(&["tcp_bbr"]),
        ..stock()
    };
    let plan = plan(&host, &path(10e9, 0.050));
    assert_eq!(changes(&plan)["net.ipv4.tcp_congestion_control"], "bbr");
    assert!(!changes(&plan).values().any(|to| *to == "fq"));
    assert_eq!(plan.refused.len(), 2);
}

#[test]
fn other_systems() {
    let situation = path(10e9, 0.050);
    let of = |os| plan(&Snapshot::unknown(os), &situation);
    let mac = of(Os::Macos);
    assert_eq!(
        mac.changes[0].knob, "kern.ipc.maxsockbuf",
        "before what it clips"
    );
    assert_eq!(mac.changes.len(), 3);
    assert!(mac.changes.iter().all(|c| c.action.is_none()));
    let windows = of(Os::Windows);
    assert_eq!(changes(&windows)["autotuninglevel"], "experimental");
    assert!(windows.notes.iter().any(|n| n.contains("cubic")));
    assert!(of(Os::Openbsd).notes.iter().any(|n| n.contains("2 MB")));
    assert!(changes(&of(Os::Solaris)).contains_key("_cwnd_max"));
    assert!(changes(&of(Os::Freebsd)).contains_key("net.inet.tcp.sendbuf_max"));
}

#[test]
fn what_is_left_out_takes_its_memory_and_notes_along() {
    let situation = Situation {
        role: Role::Server,
        ..path(1e9, 0.150)
    };
    let mut host = stock();
    host.values.insert(
        "net.ipv4.tcp_rmem".to_owned(),
        "4096 131072 67108864".to_owned(),
    );
    let mut plan = plan(&host, &situation);
    assert_eq!(plan.memory_bytes, Some(32 << 20));
    assert!(plan.notes.iter().any(|n| n.starts_with("A server")));
    leave_out(&mut plan, &["tcp_wmem".to_owned()], &host, &situation).unwrap();
    assert_eq!((plan.memory_bytes, plan.notes.as_slice()), (None, &[][..]));
    let wrong = leave_out(&mut plan, &["tcp_wmen".to_owned()], &host, &situation);
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("no change of 'tcp_wmen'"), "{wrong}");
}

#[test]
fn a_slow_link_is_named() {
    let with = |speed_bps, duplex, rate| {
        let mut host = stock();
        host.interface.as_mut().unwrap().link = Some(LinkMode {
            speed_bps: Some(speed_bps),
            duplex: Some(duplex),
            autonegotiation: Some(duplex == Duplex::Full),
            ..LinkMode::default()
        });
        plan(&host, &path(rate, 0.080)).notes.join(" ")
    };
    assert_eq!(with(10e9, Duplex::Full, 10e9), "");
    let slow = with(10e9, Duplex::Full, 40e9);
    assert!(
        slow.contains("eth0 is a link of 10.0 Gbit/s. No more"),
        "{slow}"
    );
    let half = with(100e6, Duplex::Half, 1e9);
    assert!(
        half.contains("100 Mbit/s, half duplex, with negotiation switched off"),
        "{half}"
    );
    assert!(half.contains("1.00 Gbit/s cannot be reached"), "{half}");
    assert!(with(100e6, Duplex::Half, 50e6).contains("loses packets"));
    assert_eq!(with(1e9, Duplex::Half, 1e9), "");
}

#[test]
fn buffers_beyond_what_all_of_tcp_may_hold_are_named() {
    let mut host = stock();
    host.values.insert(
        "net.ipv4.tcp_mem".to_owned(),
        "22000 33000 44000".to_owned(),
    );
    let notes = plan(&host, &path(10e9, 0.100)).notes.join(" ");
    assert!(
        notes.contains("lets all of TCP hold 180 MB, less than these buffers"),
        "{notes}"
    );
    assert_eq!(plan(&host, &path(1e9, 0.080)).notes, Vec::<String>::new());
}

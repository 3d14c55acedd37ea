//! The planner: what should change on a host for a path, and what should not. Pure: hosts and paths are
//! arguments.

use plumb_model::finding::{Action, Actor, InterfaceAction, InterfaceChange, SysctlAction};
use plumb_model::results::host::Interface;
use plumb_model::tune::{HostPlan, Kind, Left, Os, PlannedChange, Refused, Role, Scope};

use super::advice;
use super::snapshot::Snapshot;
use crate::knobs::formula::{Advice, Formula, Present, advise, interface};
use crate::knobs::situation::Situation;
use crate::knobs::{Catalogue, Knob};

/// Plans for one host. `settings` is advice to be judged on the way.
pub fn plan_host(
    catalogue: &Catalogue,
    host: &Snapshot,
    situation: &Situation,
    on: Actor,
    settings: &[(String, String)],
) -> HostPlan {
    let mut plan = HostPlan {
        on,
        os: host.os,
        role: situation.role,
        facts_from: host.from.clone(),
        changes: Vec::new(),
        refused: Vec::new(),
        left: Vec::new(),
        judged: Vec::new(),
        memory_bytes: None,
        notes: Vec::new(),
    };
    let situation = &Situation {
        memory_bytes: situation.memory_bytes.or(host.memory_bytes),
        mtu_bytes: situation
            .mtu_bytes
            .or(host.interface.as_ref().map(|i| i.mtu_bytes))
            .filter(|mtu| *mtu != 0),
        release: situation.release.clone().or(host.release.clone()),
        ..situation.clone()
    };
    let chosen = chosen_congestion_control(catalogue, host, situation);
    let advised = |knob: &Knob| advise(knob, situation, present(knob, host, chosen.as_deref()));
    for knob in in_order(catalogue, host.os) {
        let value = current(knob, host);
        match advised(knob) {
            Advice::Leave { why } => {
                let looked_at = knob.value != Formula::Leave && value.is_some();
                if looked_at {
                    plan.left.push(Left {
                        knob: knob.name.clone(),
                        value,
                        why,
                    });
                }
            }
            Advice::Set {
                value: to,
                why,
                effect,
                memory_bytes,
            } => {
                if let Some(why) = forbidden(knob, host, value.as_deref()) {
                    plan.refused.push(Refused {
                        knob: knob.name.clone(),
                        to,
                        why,
                    });
                    continue;
                }
                plan.changes.push(PlannedChange {
                    action: action(knob, host, &to),
                    knob: knob.name.clone(),
                    kind: knob.kind,
                    from: value,
                    to,
                    scope: knob.scope,
                    why,
                    effect,
                    risk: knob.risk.clone(),
                    memory_bytes,
                    source: knob.source.clone(),
                });
            }
        }
    }
    plan.memory_bytes = memory(&plan.changes);
    system_notes(host.os, situation, &mut plan);
    plan.judged = advice::judge(settings, catalogue, host, advised);
    plan
}

/// Interfaces first and ceilings before what they clip, so that undoing in reverse puts back the default
/// for interfaces before the interface that falls back to it.
fn in_order(catalogue: &Catalogue, os: Os) -> Vec<&Knob> {
    let mut knobs: Vec<_> = catalogue.of(os).collect();
    knobs.sort_by_key(|knob| match (knob.kind, knob.value) {
        (Kind::Interface, _) => 0,
        (_, Formula::SocketCeiling) => 1,
        _ => 2,
    });
    knobs
}

/// The congestion control that there will be.
fn chosen_congestion_control(
    catalogue: &Catalogue,
    host: &Snapshot,
    situation: &Situation,
) -> Option<String> {
    let name = "net.ipv4.tcp_congestion_control";
    let knob = catalogue.find(host.os, name)?;
    match advise(knob, situation, present(knob, host, None)) {
        Advice::Set { value, .. } if forbidden(knob, host, host.value(name)).is_none() => {
            Some(value)
        }
        _ => host.value(name).map(str::to_owned),
    }
}

fn present<'a>(knob: &Knob, host: &'a Snapshot, chosen: Option<&'a str>) -> Present<'a> {
    Present {
        value: match knob.value {
            Formula::FairQueueDevice => host.root_qdisc().map(|q| q.kind.as_str()),
            _ => host.value(&knob.name),
        },
        bbr: host.congestion_control("bbr"),
        cubic: host.congestion_control("cubic"),
        congestion_control: chosen,
        interface: interface::Present {
            interface: host.interface.as_ref(),
            qdiscs: &host.qdiscs,
        },
    }
}

fn current(knob: &Knob, host: &Snapshot) -> Option<String> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let present = present(knob, host, None);
    interface::value(knob, present.interface).or_else(|| present.value.map(words))
}

/// Why a change may not be made on this host, though it would help.
fn forbidden(knob: &Knob, host: &Snapshot, current: Option<&str>) -> Option<String> {
    if knob.scope == Scope::Machine && !host.whole_machine {
        return Some(
            "it belongs to the whole machine, and this is a network namespace of it (a container, or a node of a laboratory)"
                .to_owned(),
        );
    }
    let queue = matches!(knob.value, Formula::FairQueue | Formula::FairQueueDevice);
    if queue && let Some(why) = host.queue("fq").why_not("fq") {
        return Some(format!("{why}; BBR paces its packets without it"));
    }
    match knob.value {
        Formula::CongestionControl if !host.whole_machine => {
            let current = current?;
            let why = host.congestion_control(current).why_not(current)?;
            Some(format!("{current} could not be put back: {why}"))
        }
        Formula::FairQueueDevice => {
            let Some(interface) = &host.interface else {
                return Some(
                    "the interface that leads to the path is not known: tc qdisc replace dev DEV root fq"
                        .to_owned(),
                );
            };
            match host.root_qdisc() {
                Some(root) if root.handle != "0:" => Some(format!(
                    "somebody chose {} for {}, which plumb could not put back",
                    root.kind, interface.name
                )),
                _ => None,
            }
        }
        _ => None,
    }
}

fn action(knob: &Knob, host: &Snapshot, to: &str) -> Option<Action> {
    match (host.os, knob.kind, knob.value) {
        (Os::Linux, Kind::Sysctl, _) => Some(Action::Sysctl(SysctlAction {
            key: knob.name.clone(),
            value: to.to_owned(),
        })),
        (Os::Linux, Kind::Interface, _) => host.interface.as_ref().and_then(|interface| {
            Some(Action::Interface(InterfaceAction {
                interface: interface.name.clone(),
                change: interface_change(knob, interface, to)?,
            }))
        }),
        _ => None,
    }
}

fn interface_change(knob: &Knob, interface: &Interface, to: &str) -> Option<InterfaceChange> {
    Some(match knob.value {
        Formula::FairQueueDevice => InterfaceChange::Qdisc(to.to_owned()),
        Formula::ReceiveRing => InterfaceChange::ReceiveRingPackets(to.parse().ok()?),
        Formula::QueueLength => InterfaceChange::TransmitQueuePackets(to.parse().ok()?),
        Formula::Offload => InterfaceChange::Offload {
            feature: knob.feature.clone()?,
            on: to == "on",
        },
        Formula::Coalescing => InterfaceChange::AdaptiveReceive(to == "on"),
        Formula::DriverQueue => InterfaceChange::DriverQueueMostBytes {
            queues: u32::try_from(interface.byte_limits.len()).ok()?,
            bytes: to.parse().ok()?,
        },
        _ => return None,
    })
}

/// Both buffers of one connection; ceilings above them hold nothing of their own.
fn memory(changes: &[PlannedChange]) -> Option<u64> {
    changes
        .iter()
        .filter(|change| !change.knob.ends_with("sockbuf") && !change.knob.ends_with("max_buf"))
        .filter_map(|change| change.memory_bytes)
        .reduce(u64::saturating_add)
}

fn system_notes(os: Os, situation: &Situation, plan: &mut HostPlan) {
    let congestion = plan
        .changes
        .iter()
        .any(|change| change.knob == "congestionprovider");
    if congestion {
        plan.notes.push(
            "The way back, should loopback or an application suffer: the same commands with cubic (Compat: newreno)."
                .to_owned(),
        );
    }
    if os == Os::Openbsd && situation.bdp_bytes() > 1_000_000.0 {
        plan.notes.push(
            "OpenBSD lets buffers grow to 2 MB, which no sysctl changes: use several connections on this path."
                .to_owned(),
        );
    }
    let buffers = plan
        .changes
        .iter()
        .any(|change| change.memory_bytes.is_some());
    if buffers && situation.role == Role::Server {
        plan.notes.push(
            "A server may have many connections: the largest buffer is a ceiling for each of those that need it, and tcp_mem bounds them all."
                .to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::collections::BTreeMap;

    use plumb_model::tune::Worth;

    use plumb_model::results::host::{Offload, Qdisc, Rings};

    use super::super::snapshot::{ALLOWED, AVAILABLE};
    use crate::facts::Modules;
    use super::*;

    fn stock() -> Snapshot {
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

    fn path(rate_bps: f64, rtt_s: f64) -> Situation {
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
        let plan = super::tests::plan(&host, &path(10e9, 0.050));
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

    /// What is loaded does not tell what could be: only the lists of modules do, and a pasted host's are not known.
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
}

//! Every rule fires on the machine that it is about, and on no healthy one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::finding::{Action, Cause, InterfaceChange, PathKind, Severity};
use plumb_model::results::Outcome;
use plumb_model::results::host::*;
use plumb_model::run::Measurement;
use plumb_model::tune::Scope;

use super::{Audit, audit};
use crate::testing::measurement;

mod interfaces;
mod kernel;

/// The facts of a machine whose only interface in use is a radio connected to an access point.
pub(crate) fn on_wifi(wifi: Wifi) -> Measurement {
    let interface = Interface {
        name: "wlan0".to_owned(),
        hardware: "ethernet".to_owned(),
        up: true,
        carrier: true,
        wifi: Some(Wifi {
            mode: "station".to_owned(),
            ..wifi
        }),
        ..Interface::default()
    };
    measurement(Outcome::Host(Box::new(HostResult {
        interfaces: vec![interface],
        ..HostResult::default()
    })))
}

/// A server on which nothing is wrong: a 10 Gbit/s card, counters that have counted, room everywhere.
fn healthy() -> HostResult {
    let sysctl = |key: &str, value: &str| Sysctl {
        key: key.into(),
        value: Some(value.into()),
        scope: Scope::Namespace,
        never_because: None,
    };
    let offload = |name: &str, on: bool| Offload {
        name: name.into(),
        on,
        fixed: false,
    };
    let interface = Interface {
        name: "eth0".into(),
        index: 2,
        hardware: "ethernet".into(),
        up: true,
        carrier: true,
        carrier_changes: Some(2),
        addresses: vec!["192.0.2.7/24".into(), "2001:db8::7/64".into()],
        mtu_bytes: 1500,
        driver: Some("ixgbe".into()),
        bus: Some(Bus {
            kind: "pci".into(),
            address: Some("0000:01:00.0".into()),
            speed_bps: Some(31.5e9),
            best_speed_bps: Some(31.5e9),
        }),
        link: Some(LinkMode {
            speed_bps: Some(10e9),
            duplex: Some(Duplex::Full),
            autonegotiation: Some(true),
            best_speed_bps: Some(10e9),
            offered_speed_bps: Some(10e9),
            partner_speed_bps: Some(10e9),
        }),
        offloads: vec![
            offload("tx-generic-segmentation", true),
            offload("tx-tcp-segmentation", true),
            offload("rx-gro", true),
            offload("rx-lro", false),
        ],
        rings: Some(Rings {
            receive_packets: 512,
            receive_max_packets: 4096,
            send_packets: 512,
            send_max_packets: 4096,
        }),
        energy_efficient: Some(false),
        coalescing: Some(Coalescing {
            receive_s: 50e-6,
            adaptive_receive_possible: Some(true),
            ..Coalescing::default()
        }),
        byte_limits: vec![ByteLimit {
            queue: 0,
            limit_bytes: 30_280,
            inflight_bytes: 0,
            limit_max_bytes: Some(1_879_048_192),
        }],
        steering: vec![Steering {
            queue: "rx-0".into(),
            cpus: "00".into(),
            flows: Some(0),
        }],
        counters: LinkCounters {
            rx_packets: 100_000_000,
            tx_packets: 100_000_000,
            rx_crc_errors: 3,
            ..LinkCounters::default()
        },
        neighbours: 20,
        ..Interface::default()
    };
    HostResult {
        interfaces: vec![interface],
        qdiscs: vec![Qdisc {
            interface: "eth0".into(),
            kind: "fq_codel".into(),
            parent: "root".into(),
            packets: 100_000_000,
            drops: 5000,
            ..Qdisc::default()
        }],
        sysctls: vec![
            sysctl("net.ipv4.ip_forward", "0"),
            sysctl("net.ipv4.ip_no_pmtu_disc", "0"),
            sysctl("net.ipv4.tcp_window_scaling", "1"),
            sysctl("net.ipv4.tcp_sack", "1"),
            sysctl("net.ipv4.tcp_timestamps", "1"),
            sysctl("net.ipv4.tcp_moderate_rcvbuf", "1"),
            sysctl("net.ipv4.tcp_rmem", "4096 131072 268435456"),
            sysctl("net.ipv4.tcp_wmem", "4096 16384 268435456"),
            sysctl("net.core.netdev_max_backlog", "1000"),
            sysctl("net.core.netdev_budget", "300"),
            sysctl("net.core.rmem_max", "212992"),
            sysctl("net.core.rmem_default", "8388608"),
            sysctl("net.core.somaxconn", "4096"),
            sysctl("net.netfilter.nf_conntrack_count", "10"),
            sysctl("net.netfilter.nf_conntrack_max", "1000"),
        ],
        counters: [
            ("TcpInSegs", 10_000_000),
            ("TcpOutSegs", 10_000_000),
            ("TcpRetransSegs", 50_000),
            ("TcpExtListenOverflows", 0),
            ("TcpExtTCPMemoryPressures", 0),
            ("TcpExtTCPAbortOnMemory", 0),
            ("TcpExtRcvPruned", 3),
            ("TcpExtTCPTimeWaitOverflow", 0),
            ("UdpInDatagrams", 10_000_000),
            ("UdpRcvbufErrors", 7),
            ("IpReasmFails", 5),
            ("IpReasmReqds", 100),
            ("IpReasmOKs", 45),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
        softnet: vec![SoftnetCpu {
            processed: 100_000_000,
            dropped: 9,
            squeezed: 1000,
            ..SoftnetCpu::default()
        }],
        sockets: Sockets {
            listeners: vec![Listener {
                local: "0.0.0.0:443".into(),
                owner: None,
                waiting: 3,
                backlog: 511,
            }],
            ..Sockets::default()
        },
        cpus: Cpus {
            online: 8,
            frequency_driver: Some("intel_pstate".into()),
            governors: vec!["powersave".into()],
            wake_s: Some(0.000_05),
            ..Cpus::default()
        },
        interrupts: vec![InterruptLine {
            number: 24,
            name: "eth0-TxRx-0".into(),
            interface: "eth0".into(),
            counts: vec![100_000; 8],
            allowed_cpus: None,
        }],
        files: FileLimits {
            open: Some(1000),
            open_max: Some(1_000_000),
            per_process: Some(1024),
            per_process_max: Some(524_288),
        },
        neighbours: vec![NeighbourTable {
            ip_version: 4,
            entries: 20,
            failed: 0,
            max_entries: Some(1024),
        }],
        clock: Clock {
            source: Some("tsc".into()),
            synchronised: Some(true),
            ..Clock::default()
        },
        ..HostResult::default()
    }
}

fn after(change: impl FnOnce(&mut HostResult)) -> Audit {
    let mut host = healthy();
    change(&mut host);
    audit(&host, "m1")
}

/// The findings, each with its severity.
fn causes(audit: &Audit) -> Vec<(Cause, Severity)> {
    audit
        .findings
        .iter()
        .map(|f| (f.cause, f.severity))
        .collect()
}

/// A change after which exactly one thing is wrong.
#[track_caller]
fn one(cause: Cause, severity: Severity, change: impl FnOnce(&mut HostResult)) -> Audit {
    let mut host = healthy();
    change(&mut host);
    let audit = audit(&host, "m1");
    assert_eq!(causes(&audit), [(cause, severity)]);
    let finding = &audit.findings[0];
    assert!(
        !finding.evidence.is_empty() && !finding.fixes.is_empty(),
        "{finding:?}"
    );
    assert!(
        finding
            .evidence
            .iter()
            .all(|e| e.field.starts_with("result."))
    );
    audit
}

fn set(host: &mut HostResult, key: &str, value: &str) {
    let sysctl = host.sysctls.iter_mut().find(|s| s.key == key).unwrap();
    sysctl.value = Some(value.into());
}

fn count(host: &mut HostResult, name: &str, value: i64) {
    host.counters.insert(name.into(), value);
}

#[test]
fn a_healthy_machine_has_no_findings() {
    let audit = after(|_| {});
    assert_eq!(causes(&audit), []);
    assert!(
        audit
            .checks
            .iter()
            .all(|check| check.state == CheckState::Fine),
        "{:?}",
        audit.checks
    );
    assert!(audit.verdict.headline.starts_with("Nothing needs fixing"));
    let unset = after(|h| h.clock.synchronised = Some(false));
    assert!(
        unset.verdict.headline.ends_with("one is worth knowing."),
        "{:?}",
        unset.verdict
    );
}

#[test]
fn a_machine_that_tells_nothing_is_not_called_fine() {
    let audit = audit(&HostResult::default(), "m1");
    assert_eq!(causes(&audit), []);
    for subject in [
        "backlog",
        "Window scaling",
        "send buffer",
        "segments retransmitted",
        "UDP receive buffers",
        "clock",
    ] {
        let check = audit
            .checks
            .iter()
            .find(|check| check.subject == subject)
            .unwrap();
        assert_eq!(check.state, CheckState::Unknown, "{subject}");
    }
    assert!(audit.verdict.headline.contains("could not be read"));
}

#[test]
fn evidence_may_be_a_word() {
    let half = one(Cause::LinkDuplexHalf, Severity::Critical, |h| {
        h.interfaces[0].link.as_mut().unwrap().duplex = Some(Duplex::Half);
    });
    let evidence = &half.findings[0].evidence[0];
    assert_eq!(evidence.value, "half".into());
    let json = serde_json::to_value(evidence).unwrap();
    assert_eq!(
        (&json["value"], &json["threshold"]),
        (&"half".into(), &"full".into())
    );
}

//! Every rule fires on the machine that it is about, and on no healthy one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::finding::{Action, Cause, InterfaceChange, PathKind, Severity};
use plumb_model::results::host::*;
use plumb_model::tune::Scope;

use super::{Audit, audit};

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
    assert!(audit.verdict.headline.starts_with("Nothing needs mending"));
}

#[test]
fn a_machine_that_tells_nothing_is_not_called_fine() {
    let audit = audit(&HostResult::default(), "m1");
    assert_eq!(causes(&audit), []);
    for subject in [
        "backlog",
        "Window scaling",
        "send buffer",
        "segments sent again",
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
    assert!(audit.verdict.headline.contains("could not be told"));
}

#[test]
fn links() {
    let link = |change: fn(&mut LinkMode)| {
        move |host: &mut HostResult| change(host.interfaces[0].link.as_mut().unwrap())
    };
    let mismatch = one(
        Cause::LinkDuplexHalf,
        Severity::Critical,
        link(|l| {
            l.duplex = Some(Duplex::Half);
            l.partner_speed_bps = None;
        }),
    );
    assert!(mismatch.findings[0].summary.contains("does not negotiate"));
    one(
        Cause::LinkSlow,
        Severity::Warning,
        link(|l| l.speed_bps = Some(1e9)),
    );
    // The far end's port is only that fast: nothing to mend.
    let slow = after(link(|l| {
        l.speed_bps = Some(1e9);
        l.partner_speed_bps = Some(1e9);
    }));
    assert_eq!(causes(&slow), []);
    one(Cause::LinkUnsteady, Severity::Info, |h| {
        h.interfaces[0].carrier_changes = Some(300)
    });
    one(Cause::BusSlow, Severity::Warning, |h| {
        h.interfaces[0].bus.as_mut().unwrap().speed_bps = Some(4e9);
    });
    // What is down is not judged.
    let down = after(|h| {
        h.interfaces[0].carrier = false;
        h.interfaces[0].link.as_mut().unwrap().duplex = Some(Duplex::Half);
    });
    assert_eq!(causes(&down), []);
}

#[test]
fn frames_and_rings() {
    one(Cause::LinkErrors, Severity::Warning, |h| {
        h.interfaces[0].counters.rx_crc_errors = 500
    });
    one(Cause::LinkErrors, Severity::Critical, |h| {
        h.interfaces[0].counters.rx_crc_errors = 50_000
    });
    let overrun = one(Cause::ReceiveOverrun, Severity::Warning, |h| {
        h.interfaces[0].counters.rx_missed_errors = 5000;
    });
    let Some(Action::Interface(action)) = &overrun.findings[0].fixes[0].action else {
        panic!("{overrun:?}")
    };
    assert_eq!(action.change, InterfaceChange::ReceiveRingPackets(4096));
}

#[test]
fn pause_frames() {
    let paused = |count: u64| {
        move |h: &mut HostResult| {
            h.interfaces[0].pause = Some(Pause {
                autonegotiation: true,
                receive: true,
                send: true,
            });
            let counters = &mut h.interfaces[0].driver_counters;
            counters.insert("rx_flow_control_xoff".into(), count);
        }
    };
    one(Cause::PauseFlood, Severity::Warning, paused(50_000));
    // A burst of them among 100 million packets.
    assert_eq!(causes(&after(paused(5000))), []);
}

#[test]
fn light_and_radio() {
    let module = |receive: Option<f64>| {
        move |h: &mut HostResult| {
            h.interfaces[0].module = Some(Module {
                receive_dbm: vec![receive],
                receive_low_dbm: Some(-18.0),
                ..Module::default()
            });
        }
    };
    one(
        Cause::ModuleLightLow,
        Severity::Warning,
        module(Some(-21.0)),
    );
    one(Cause::ModuleLightLow, Severity::Critical, module(None));
    assert_eq!(causes(&after(module(Some(-6.0)))), []);

    let radio = |change: fn(&mut Wifi)| {
        move |h: &mut HostResult| {
            let mut wifi = Wifi {
                signal_dbm: Some(-55),
                sent: Some(100_000),
                retries: Some(5000),
                busy_ratio: Some(0.2),
                frequency_hz: Some(5.18e9),
                power_save: Some(false),
                ..Wifi::default()
            };
            change(&mut wifi);
            h.interfaces[0].wifi = Some(wifi);
        }
    };
    assert_eq!(causes(&after(radio(|_| {}))), []);
    one(
        Cause::WifiWeak,
        Severity::Warning,
        radio(|w| w.signal_dbm = Some(-75)),
    );
    one(
        Cause::WifiWeak,
        Severity::Critical,
        radio(|w| w.signal_dbm = Some(-84)),
    );
    one(
        Cause::WifiWeak,
        Severity::Warning,
        radio(|w| w.retries = Some(40_000)),
    );
    one(
        Cause::WifiWeak,
        Severity::Warning,
        radio(|w| w.busy_ratio = Some(0.8)),
    );
    one(
        Cause::WifiWeak,
        Severity::Info,
        radio(|w| w.power_save = Some(true)),
    );
}

#[test]
fn packet_sizes_and_neighbours() {
    // Ports of a bridge.
    let bridge = |h: &mut HostResult, other: u32| {
        let mut port = h.interfaces[0].clone();
        port.name = "eth1".into();
        port.index = 3;
        port.mtu_bytes = other;
        port.addresses.clear();
        port.controller = Some(9);
        h.interfaces[0].controller = Some(9);
        h.interfaces[0].addresses.clear();
        h.interfaces.push(port);
        h.interfaces.push(Interface {
            name: "br0".into(),
            index: 9,
            kind: Some("bridge".into()),
            mtu_bytes: 1500,
            ..Interface::default()
        });
    };
    let mixed = after(|h| bridge(h, 9000));
    assert_eq!(causes(&mixed)[0], (Cause::MtuMismatch, Severity::Warning));
    assert!(
        mixed.findings[0]
            .summary
            .starts_with("eth0 takes packets of 1500 bytes"),
        "{mixed:?}"
    );
    let alike = after(|h| bridge(h, 1500));
    assert!(
        causes(&alike)
            .iter()
            .all(|(cause, _)| *cause != Cause::MtuMismatch)
    );
    // IPv6 needs 1280.
    one(Cause::MtuMismatch, Severity::Warning, |h| {
        h.interfaces[0].mtu_bytes = 1200
    });

    one(Cause::BroadcastDomainLarge, Severity::Warning, |h| {
        h.interfaces[0].neighbours = 700
    });
    // A large prefix alone does no harm.
    assert_eq!(
        causes(&after(
            |h| h.interfaces[0].addresses = vec!["10.0.0.7/8".into()]
        )),
        []
    );
}

#[test]
fn offloads() {
    let off = one(Cause::OffloadOff, Severity::Warning, |h| {
        h.interfaces[0].offloads[2].on = false
    });
    assert!(off.findings[0].summary.contains("rx-gro"));
    // On a slow link it is only worth knowing, and what cannot be changed is no finding.
    let slow = after(|h| {
        h.interfaces[0].offloads[2].on = false;
        let link = h.interfaces[0].link.as_mut().unwrap();
        for speed in [
            &mut link.speed_bps,
            &mut link.best_speed_bps,
            &mut link.partner_speed_bps,
            &mut link.offered_speed_bps,
        ] {
            *speed = Some(100e6);
        }
    });
    assert_eq!(causes(&slow), [(Cause::OffloadOff, Severity::Info)]);
    assert_eq!(
        causes(&after(|h| {
            h.interfaces[0].offloads[2].on = false;
            h.interfaces[0].offloads[2].fixed = true;
        })),
        []
    );
    one(Cause::OffloadHarmful, Severity::Warning, |h| {
        h.interfaces[0].offloads[3].on = true;
        set(h, "net.ipv4.ip_forward", "1");
    });
    assert_eq!(
        causes(&after(|h| h.interfaces[0].offloads[3].on = true)),
        []
    );
}

#[test]
fn queues() {
    // Drops of fq_codel are its work; those of a plain queue are not.
    one(Cause::QueueUnmanaged, Severity::Info, |h| {
        h.qdiscs[0].kind = "pfifo_fast".into();
        h.qdiscs[0].drops = 0;
    });
    let router = after(|h| {
        h.qdiscs[0].kind = "pfifo_fast".into();
        set(h, "net.ipv4.ip_forward", "1");
    });
    assert_eq!(
        causes(&router),
        [
            (Cause::QueueDrops, Severity::Warning),
            (Cause::QueueUnmanaged, Severity::Warning)
        ]
    );
    one(Cause::DriverQueueUnlimited, Severity::Info, |h| {
        h.interfaces[0].byte_limits[0].limit_bytes = 0
    });
}

#[test]
fn receiving() {
    let backlog = one(Cause::BacklogDrops, Severity::Warning, |h| {
        h.softnet[0].dropped = 5000
    });
    let Some(Action::Sysctl(action)) = &backlog.findings[0].fixes[0].action else {
        panic!("{backlog:?}")
    };
    assert_eq!(
        (action.key.as_str(), action.value.as_str()),
        ("net.core.netdev_max_backlog", "4000")
    );
    one(Cause::BacklogDrops, Severity::Info, |h| {
        h.softnet[0].squeezed = 1_000_000
    });
    one(Cause::OneProcessorReceives, Severity::Info, |h| {
        h.interrupts[0].counts = vec![0, 5_000_000, 0, 0, 0, 0, 0, 0];
    });
    // RPS spreads them.
    assert_eq!(
        causes(&after(|h| {
            h.interrupts[0].counts = vec![0, 5_000_000, 0, 0, 0, 0, 0, 0];
            h.interfaces[0].steering[0].cpus = "fe".into();
        })),
        []
    );
    one(Cause::PowerSaving, Severity::Warning, |h| {
        h.cpus.frequency_driver = Some("acpi-cpufreq".into())
    });
    one(Cause::PowerSaving, Severity::Info, |h| {
        h.cpus.wake_s = Some(0.001)
    });
}

#[test]
fn tcp() {
    let scaling = one(Cause::TcpFeatureOff, Severity::Critical, |h| {
        set(h, "net.ipv4.tcp_window_scaling", "0")
    });
    assert!(
        scaling.findings[0]
            .matters_for
            .contains(&PathKind::LongPath)
    );
    one(Cause::TcpFeatureOff, Severity::Warning, |h| {
        set(h, "net.ipv4.tcp_sack", "0")
    });
    one(Cause::TcpFeatureOff, Severity::Warning, |h| {
        set(h, "net.ipv4.ip_no_pmtu_disc", "1")
    });
    let small = one(Cause::SendBufferSmall, Severity::Info, |h| {
        set(h, "net.ipv4.tcp_wmem", "4096 16384 4194304")
    });
    let Some(Action::Sysctl(action)) = &small.findings[0].fixes[0].action else {
        panic!("{small:?}")
    };
    // 10 Gbit/s over 100 ms is 125 MB, of which half of a buffer is window.
    assert_eq!(action.value, "4096 16384 268435456");
    one(Cause::ReceiveBufferSmall, Severity::Info, |h| {
        set(h, "net.ipv4.tcp_rmem", "4096 131072 6291456")
    });
    // What is no three numbers is not known, rather than wrong.
    assert_eq!(causes(&after(|h| set(h, "net.ipv4.tcp_rmem", "lots"))), []);
    one(Cause::RetransmitsHigh, Severity::Info, |h| {
        count(h, "TcpRetransSegs", 200_000)
    });
    one(Cause::RetransmitsHigh, Severity::Warning, |h| {
        count(h, "TcpRetransSegs", 400_000)
    });
}

#[test]
fn room_for_connections_and_datagrams() {
    one(Cause::UdpBufferSmall, Severity::Warning, |h| {
        count(h, "UdpRcvbufErrors", 500)
    });
    one(Cause::ListenOverflow, Severity::Warning, |h| {
        count(h, "TcpExtListenOverflows", 4)
    });
    let full = one(Cause::ListenOverflow, Severity::Critical, |h| {
        h.sockets.listeners[0].waiting = 511
    });
    assert!(full.findings[0].summary.contains("0.0.0.0:443"));
    one(Cause::MemoryPressure, Severity::Warning, |h| {
        count(h, "TcpExtTCPMemoryPressures", 2)
    });
    one(Cause::MemoryPressure, Severity::Critical, |h| {
        count(h, "TcpExtTCPAbortOnMemory", 1)
    });
    one(Cause::ReceiveBufferPruned, Severity::Warning, |h| {
        count(h, "TcpExtRcvPruned", 5000)
    });
    one(Cause::FragmentsLost, Severity::Warning, |h| {
        count(h, "IpReasmFails", 40)
    });
    one(Cause::LimitNear, Severity::Warning, |h| {
        h.neighbours[0].entries = 900
    });
    one(Cause::LimitNear, Severity::Critical, |h| {
        h.neighbours[0].entries = 1024
    });
    one(Cause::LimitNear, Severity::Warning, |h| {
        h.files.open = Some(900_000)
    });
    one(Cause::LimitNear, Severity::Warning, |h| {
        set(h, "net.netfilter.nf_conntrack_count", "900")
    });
    one(Cause::LimitNear, Severity::Info, |h| {
        count(h, "TcpExtTCPTimeWaitOverflow", 1)
    });
    one(Cause::LimitNear, Severity::Info, |h| {
        h.files.per_process_max = Some(1024)
    });
}

#[test]
fn old_advice_and_clocks() {
    one(Cause::ObsoleteSetting, Severity::Warning, |h| {
        h.sysctls[0].never_because = Some("it breaks clients behind NAT".into());
    });
    one(Cause::ClockUnsynchronised, Severity::Info, |h| {
        h.clock.synchronised = Some(false)
    });
    one(Cause::ClockSourceSlow, Severity::Warning, |h| {
        h.clock.source = Some("hpet".into())
    });
}

#[test]
fn interrupts_for_every_packet_and_late_ones() {
    let adaptive = |audit: &Audit| match &audit.findings[0].fixes[0].action {
        Some(Action::Interface(action)) => action.change == InterfaceChange::AdaptiveReceive(true),
        _ => false,
    };
    let unfit = |change: fn(&mut Coalescing)| {
        one(Cause::CoalescingUnfit, Severity::Info, |h| {
            change(h.interfaces[0].coalescing.as_mut().unwrap());
        })
    };
    let every = unfit(|c| c.receive_s = 0.0);
    assert!(adaptive(&every) && every.findings[0].summary.contains("every packet"));
    let late = unfit(|c| c.receive_s = 1e-3);
    assert!(
        adaptive(&late) && late.findings[0].summary.contains("1.0 ms"),
        "{late:?}"
    );
    let cannot = unfit(|c| {
        c.receive_s = 1e-3;
        c.adaptive_receive_possible = Some(false);
    });
    assert!(cannot.findings[0].fixes[0].action.is_none());
    // One that adapts, and a paravirtual card, are left alone.
    for change in [
        (|i: &mut Interface| i.coalescing.as_mut().unwrap().adaptive_receive = true)
            as fn(&mut Interface),
        |i| i.driver = Some("virtio_net".into()),
    ] {
        let mut host = healthy();
        host.interfaces[0].coalescing.as_mut().unwrap().receive_s = 0.0;
        change(&mut host.interfaces[0]);
        assert_eq!(causes(&audit(&host, "m1")), []);
    }
}

#[test]
fn a_link_that_sleeps() {
    let sleeps = one(Cause::PowerSaving, Severity::Info, |h| {
        h.interfaces[0].energy_efficient = Some(true);
    });
    assert!(sleeps.findings[0].matters_for == [PathKind::Lan]);
    let mut host = healthy();
    host.interfaces[0].energy_efficient = Some(true);
    host.interfaces[0].carrier_changes = Some(40);
    let worst = &audit(&host, "m1").findings[0];
    assert_eq!(
        (worst.cause, worst.severity),
        (Cause::PowerSaving, Severity::Warning)
    );
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

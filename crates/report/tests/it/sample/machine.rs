//! A laptop and server in one, made by hand, so that every part of what is known of a machine has something.

use std::collections::BTreeMap;

use plumb_model::results::Outcome;
use plumb_model::results::host::*;
use plumb_model::run::{Measurement, Run};
use plumb_model::tune::Scope;

/// A Run of `plumb host` on it.
pub(crate) fn full() -> Run {
    of(HostResult {
        machine: Machine {
            product: Some("Example Systems Model 7".into()),
            memory_bytes: Some(34_359_738_368),
            first_network_namespace: true,
            ..Machine::default()
        },
        interfaces: vec![card(), radio()],
        qdiscs: vec![qdisc("eth0", "fq_codel", 3), qdisc("wlan0", "noqueue", 0)],
        queue_kinds: Some(["fq", "fq_codel", "pfifo_fast"].map(str::to_owned).to_vec()),
        sysctls: vec![
            sysctl("fs.file-max", Some("9223372036854775807"), Scope::Machine),
            sysctl("net.core.somaxconn", Some("4096"), Scope::Namespace),
            sysctl(
                "net.ipv4.ipfrag_high_thresh",
                Some("4194304"),
                Scope::Namespace,
            ),
            sysctl(
                "net.ipv4.tcp_rmem",
                Some("4096 131072 6291456"),
                Scope::Namespace,
            ),
            Sysctl {
                never_because: Some("a lost segment then costs a round trip each".into()),
                ..sysctl("net.ipv4.tcp_sack", Some("0"), Scope::Namespace)
            },
            sysctl("net.netfilter.nf_conntrack_max", None, Scope::Machine),
        ],
        counters: [
            ("IpReasmFails", 3),
            ("IpReasmOKs", 0),
            ("TcpExtTCPTimeouts", 12),
            ("TcpRetransSegs", 245),
            ("TcpExtTCPUnheardOf", 1),
            ("UdpNoPorts", 0),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
        softnet: vec![SoftnetCpu {
            processed: 1_234_567,
            squeezed: 8,
            ..SoftnetCpu::default()
        }],
        cached_metrics: vec![CachedMetrics {
            remote: "203.0.113.7".into(),
            local: Some("192.0.2.7".into()),
            age_s: Some(754.0),
            ssthresh_segments: Some(41),
            cwnd_segments: Some(60),
            rtt_s: Some(0.0183),
            rttvar_s: Some(0.0021),
            reordering_segments: Some(5),
        }],
        sockets: sockets(),
        socket_memory: SocketMemoryUse {
            tcp_in_use: Some(2),
            tcp_orphans: Some(0),
            tcp_time_wait: Some(3),
            tcp_bytes: Some(65_536),
            udp_in_use: Some(4),
            udp_bytes: Some(8192),
            fragments: Some(1),
            fragment_bytes: Some(1800),
        },
        cpus: Cpus {
            model: Some("Example CPU at 3 GHz".into()),
            online: 2,
            frequency_driver: Some("intel_pstate".into()),
            governors: vec!["powersave".into()],
            frequency_hz: Some(0.8e9),
            max_frequency_hz: Some(3.4e9),
            energy_preferences: vec!["balance_power".into()],
            idle_driver: Some("intel_idle".into()),
            wake_s: Some(890e-6),
        },
        interrupts: vec![InterruptLine {
            number: 129,
            name: "eth0-TxRx-0".into(),
            interface: "eth0".into(),
            counts: vec![0, 96_411],
            allowed_cpus: Some("0-1".into()),
        }],
        files: FileLimits {
            open: Some(1824),
            open_max: Some(9_223_372_036_854_775_807),
            per_process: Some(1024),
            per_process_max: Some(524_288),
        },
        neighbours: vec![NeighbourTable {
            ip_version: 4,
            entries: 12,
            failed: 1,
            max_entries: Some(1024),
        }],
        clock: Clock {
            source: Some("tsc".into()),
            synchronised: Some(true),
            max_error_s: Some(0.012),
            estimated_error_s: Some(0.0004),
            frequency_ppm: Some(-12.25),
        },
        of_the_machine: vec!["cpus".into(), "clock".into()],
        unread: vec![Unread {
            what: "owners of sockets".into(),
            why: "permission denied".into(),
        }],
        ..HostResult::default()
    })
}

/// One of a machine that told nothing.
pub(crate) fn silent() -> Run {
    of(HostResult::default())
}

fn of(result: HostResult) -> Run {
    let mut run = super::before();
    run.target = None;
    run.findings.clear();
    run.verdict = None;
    run.measurements = vec![Measurement {
        id: "m1".into(),
        outcome: Outcome::Host(Box::new(result)),
        at_s: 0.0,
        duration_s: 0.02,
        context: Default::default(),
        ended: Default::default(),
        settings: Default::default(),
        series: BTreeMap::new(),
    }];
    run
}

/// A card whose every part tells.
fn card() -> Interface {
    Interface {
        name: "eth0".into(),
        index: 2,
        hardware: "ethernet".into(),
        alias: Some("to the core".into()),
        up: true,
        carrier: true,
        carrier_changes: Some(4),
        addresses: vec!["192.0.2.7/24".into(), "2001:db8::7/64".into()],
        mtu_bytes: 1500,
        max_mtu_bytes: Some(9702),
        driver: Some("ixgbe".into()),
        firmware: Some("0x800008a5".into()),
        bus: Some(Bus {
            kind: "pci".into(),
            address: Some("0000:03:00.0".into()),
            speed_bps: Some(16e9),
            best_speed_bps: Some(32e9),
        }),
        link: Some(LinkMode {
            speed_bps: Some(1e9),
            duplex: Some(Duplex::Full),
            autonegotiation: Some(true),
            best_speed_bps: Some(10e9),
            offered_speed_bps: Some(10e9),
            partner_speed_bps: Some(1e9),
        }),
        pause: Some(Pause {
            autonegotiation: true,
            receive: true,
            send: false,
        }),
        energy_efficient: Some(true),
        offloads: [
            ("tx-tcp-segmentation", true, false),
            ("rx-gro", true, false),
            ("rx-lro", false, false),
            ("netns-local", false, true),
        ]
        .map(|(name, on, fixed)| Offload {
            name: name.into(),
            on,
            fixed,
        })
        .to_vec(),
        rings: Some(Rings {
            receive_packets: 512,
            receive_max_packets: 4096,
            send_packets: 512,
            send_max_packets: 4096,
        }),
        channels: Some(Channels {
            combined: 2,
            combined_max: 63,
            ..Channels::default()
        }),
        coalescing: Some(Coalescing {
            receive_s: 20e-6,
            receive_packets: 8,
            adaptive_receive: true,
            ..Coalescing::default()
        }),
        tx_queue_packets: Some(1000),
        gso_max_bytes: Some(65_536),
        gso_max_segments: Some(65_535),
        byte_limits: vec![ByteLimit {
            queue: 0,
            limit_bytes: 45_420,
            inflight_bytes: 3028,
            limit_max_bytes: Some(1_879_048_192),
        }],
        steering: vec![Steering {
            queue: "rx-0".into(),
            cpus: "3".into(),
            flows: Some(4096),
        }],
        counters: LinkCounters {
            rx_packets: 123_456,
            rx_bytes: 145_000_000,
            tx_packets: 65_432,
            tx_bytes: 9_800_000,
            rx_dropped: 17,
            rx_crc_errors: 2,
            ..LinkCounters::default()
        },
        driver_counters: [("rx_no_dma_resources".to_owned(), 17)].into(),
        module: Some(Module {
            standard: "SFF-8472".into(),
            temperature_c: Some(41.5),
            receive_dbm: vec![Some(-7.25)],
            send_dbm: vec![Some(-2.1)],
            receive_low_dbm: Some(-14.4),
            receive_high_dbm: Some(0.5),
        }),
        neighbours: 12,
        ..Interface::default()
    }
}

fn radio() -> Interface {
    Interface {
        name: "wlan0".into(),
        index: 3,
        hardware: "ethernet".into(),
        up: true,
        mtu_bytes: 1500,
        wifi: Some(Wifi {
            network: Some("example".into()),
            mode: "station".into(),
            frequency_hz: Some(5.5e9),
            width_hz: Some(80e6),
            signal_dbm: Some(-67),
            average_signal_dbm: Some(-66),
            noise_dbm: Some(-95),
            busy_ratio: Some(0.31),
            airtime: None,
            send: Some(WifiRate {
                bps: Some(432e6),
                protocol: WifiProtocol::Ax,
                mcs: Some(4),
                streams: Some(2),
                width_hz: Some(80e6),
            }),
            receive: Some(WifiRate {
                bps: Some(54e6),
                streams: Some(1),
                ..WifiRate::default()
            }),
            sent: Some(120_000),
            retries: Some(9000),
            failed: Some(3),
            beacons_lost: Some(1),
            connected_s: Some(754.0),
            scanned_ago_s: None,
            power_save: Some(true),
        }),
        ..Interface::default()
    }
}

fn qdisc(interface: &str, kind: &str, drops: u64) -> Qdisc {
    Qdisc {
        interface: interface.into(),
        kind: kind.into(),
        handle: "8001:".into(),
        parent: "root".into(),
        bytes: 9_800_000,
        packets: 65_432,
        drops,
        ..Qdisc::default()
    }
}

fn sysctl(key: &str, value: Option<&str>, scope: Scope) -> Sysctl {
    Sysctl {
        key: key.into(),
        value: value.map(str::to_owned),
        scope,
        never_because: None,
    }
}

fn sockets() -> Sockets {
    let owner = Some(Owner {
        pid: 4711,
        program: "rsync".into(),
    });
    Sockets {
        tcp_states: [("ESTABLISHED".to_owned(), 1), ("LISTEN".to_owned(), 1)].into(),
        connections: vec![Connection {
            local: "192.0.2.7:44120".into(),
            remote: "203.0.113.7:873".into(),
            owner: owner.clone(),
            congestion_control: Some("cubic".into()),
            rtt_s: 0.0183,
            min_rtt_s: Some(0.0179),
            cwnd_segments: 60,
            mss_bytes: 1448,
            path_mtu_bytes: 1500,
            delivery_bps: 36.2e6,
            pacing_bps: Some(45e6),
            bytes_acked: 1_200_000_000,
            bytes_received: 34_000,
            retransmits: 245,
            send_queue_bytes: 86_880,
            receive_queue_bytes: 0,
            send_buffer_bytes: Some(4_194_304),
            receive_buffer_bytes: Some(131_072),
            drops: Some(0),
            rwnd_ratio: Some(0.02),
            sndbuf_ratio: Some(0.61),
        }],
        connections_left_out: 2,
        listeners: vec![Listener {
            local: "0.0.0.0:873".into(),
            owner,
            waiting: 0,
            backlog: 128,
        }],
        udp: 4,
        udp_drops: 7,
    }
}

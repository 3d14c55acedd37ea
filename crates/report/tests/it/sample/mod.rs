//! A cable line of 100/20 Mbit/s whose modem queues 700 ms of upload, and the same line shaped:
//! made by hand, so that what is drawn can be looked at and kept.

pub(crate) mod machine;

use std::collections::BTreeMap;

use plumb_model::context::Context;
use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::finding::*;
use plumb_model::grade::{DSLREPORTS, Grade};
use plumb_model::protocol::Protocol;
use plumb_model::results::*;
use plumb_model::run::Ended;
use plumb_model::run::*;
use plumb_model::series::{Series, Unit};

/// One probe each 50 ms, as `plumb check` sends them.
const PROBE_INTERVAL_S: f64 = 0.05;
const PHASE_S: f64 = 20.0;
const IDLE_S: f64 = 5.0;
const IDLE_RTT_S: f64 = 0.0183;

/// The line before the fix.
pub(crate) fn before() -> Run {
    line(&Line {
        id: "0199f0a2-7c1e-7d4a-9b1f-3a5e6c7d8e90",
        started: "2025-11-21T20:15:04Z",
        up: Load {
            queue_s: 0.69,
            tau_s: 2.4,
            up_bps: 18.9e6,
            down_bps: 0.0,
            retransmits: 412,
        },
        down: Load {
            queue_s: 0.232,
            tau_s: 1.2,
            up_bps: 0.0,
            down_bps: 94.1e6,
            retransmits: 873,
        },
        both: Load {
            queue_s: 0.74,
            tau_s: 2.0,
            up_bps: 18.2e6,
            down_bps: 31.4e6,
            retransmits: 611,
        },
        fixed: false,
    })
}

/// The line with a shaper in front of the modem.
pub(crate) fn after() -> Run {
    line(&Line {
        id: "0199f0a5-2b3c-7e5b-8c2a-4b6f7d8e9fa1",
        started: "2025-11-21T20:18:22Z",
        up: Load {
            queue_s: 0.0058,
            tau_s: 0.2,
            up_bps: 17.9e6,
            down_bps: 0.0,
            retransmits: 96,
        },
        down: Load {
            queue_s: 0.0071,
            tau_s: 0.2,
            up_bps: 0.0,
            down_bps: 89.4e6,
            retransmits: 154,
        },
        both: Load {
            queue_s: 0.0112,
            tau_s: 0.2,
            up_bps: 17.2e6,
            down_bps: 86.1e6,
            retransmits: 171,
        },
        fixed: true,
    })
}

/// Only what a host without a responder allows: a ping and a port.
pub(crate) fn ping_and_port() -> Run {
    let mut run = before();
    run.measurements.truncate(1);
    run.findings.clear();
    run.verdict = None;
    run.measurements.push(Measurement {
        id: "m2".into(),
        outcome: Outcome::Port(Box::new(PortResult {
            address: "203.0.113.7".into(),
            port: 443,
            tried: 5,
            connected: 4,
            connect_s: Distribution::of([0.0191, 0.0193, 0.0190, 0.0204]),
            error: Some("timed out after 3 s".into()),
            ..PortResult::default()
        })),
        at_s: 5.2,
        duration_s: 3.1,
        context: Context::default(),
        ended: Ended::Complete,
        settings: serde_json::Map::new(),
        series: BTreeMap::new(),
    });
    run.notes = vec!["cable.example does not answer on port 7586, so nothing was loaded: start `plumb serve` there.".into()];
    if let Some(target) = &mut run.target {
        target.host = None;
    }
    run
}

struct Line {
    id: &'static str,
    started: &'static str,
    up: Load,
    down: Load,
    both: Load,
    fixed: bool,
}

struct Load {
    /// What the queue adds when full.
    queue_s: f64,
    /// How fast it fills.
    tau_s: f64,
    up_bps: f64,
    down_bps: f64,
    retransmits: u64,
}

fn line(line: &Line) -> Run {
    let mut measurements = Vec::new();
    let mut add = |outcome, at_s, duration_s, phase: &str, series: Vec<(&str, Series)>| {
        measurements.push(Measurement {
            id: format!("m{}", measurements.len() + 1),
            outcome,
            at_s,
            duration_s,
            context: Context::phase(phase.parse().expect("a phase")),
            ended: Ended::Complete,
            settings: serde_json::Map::new(),
            series: series
                .into_iter()
                .map(|(name, s)| (name.to_owned(), s))
                .collect(),
        });
    };
    for (i, protocol) in [Protocol::Icmp, Protocol::Udp].into_iter().enumerate() {
        let rtt = rtt(IDLE_S, i as u64, |_| IDLE_RTT_S, |_| false);
        add(
            Outcome::Ping(ping(protocol, &rtt)),
            0.0,
            IDLE_S,
            "idle",
            vec![("rtt", rtt)],
        );
    }
    let phases = [
        ("up", Direction::Up, &line.up),
        ("down", Direction::Down, &line.down),
        ("both", Direction::Both, &line.both),
    ];
    for (i, (phase, direction, load)) in phases.into_iter().enumerate() {
        let at_s = IDLE_S + 1.0 + i as f64 * (PHASE_S + 3.0);
        for (direction, bps) in [
            (Direction::Up, load.up_bps),
            (Direction::Down, load.down_bps),
        ] {
            if bps > 0.0 {
                let series = vec![("bps", rate(bps, i as u64))];
                add(
                    Outcome::Throughput(throughput(direction, bps, load)),
                    at_s,
                    PHASE_S,
                    phase,
                    series,
                );
            }
        }
        let delay = |t: f64| {
            // The queue fills as CUBIC grows, and breathes with its loss events.
            let fill = 1.0 - (-t / load.tau_s).exp();
            IDLE_RTT_S + load.queue_s * fill * (0.93 + 0.07 * (t * 0.9).sin())
        };
        let lossy = move |n: u64| !line.fixed && n % 97 == 60;
        let udp = rtt(PHASE_S, 10 + i as u64, delay, lossy);
        let icmp = rtt(PHASE_S, 20 + i as u64, |t| delay(t) * 1.01, |_| false);
        let result = loaded(direction, &udp, load);
        add(
            Outcome::LoadedLatency(result),
            at_s,
            PHASE_S,
            phase,
            vec![("rtt", udp), ("rtt_icmp", icmp)],
        );
    }
    let worst = if line.fixed { Grade::A } else { Grade::F };
    Run {
        schema: SCHEMA.into(),
        id: line.id.into(),
        started: line.started.into(),
        plumb: "0.1.0".into(),
        command: vec!["plumb".into(), "check".into(), "cable.example".into()],
        local: Local {
            host: host("Linux 6.18.5", true),
            lab: Some(LabMark {
                scenario: "bloated-cable".into(),
                seed: 1,
                drawn: BTreeMap::new(),
                changes: Vec::new(),
                backend: LabBackend::Emulated, clock: LabClock::Real,
                lateness_s: Distribution::of((0..1000).map(|i| 20e-6 + noise(7, i) * 30e-6)),
                piece_error_s: if line.fixed { 0.0 } else { 240e-6 },
                starved_ratio: 0.0,
                stolen_ratio: 0.0,
                behind_ratio: 0.0,
                device_drops: 0,
                write_errors: 0,
                link_stopped: false,
                overrun: false,
                notes: Vec::new(),
            }),
        },
        target: Some(Target {
            name: "cable.example".into(),
            address: Some("203.0.113.7".into()),
            host: Some(host("Linux 6.12.9", false)),
        }),
        asked: None,
        measurements,
        findings: if line.fixed { Vec::new() } else { vec![finding()] },
        verdict: Some(Verdict {
            headline: if line.fixed {
                "The line stays responsive under load: at worst 11 ms are added.".into()
            } else {
                "Uploads fill a queue of 0.7 s in the uplink: calls and games stutter while anything is sent.".into()
            },
            clearance: Some(if line.fixed { Clearance::Cleared } else { Clearance::Found }),
            latency_grade: Some(worst),
            not_measured: Vec::new(),
            looked_for: None,
        }),
        notes: vec!["Hardware timestamps are not available here; the kernel stamped every packet in software.".into()],
    }
}

fn finding() -> Finding {
    Finding {
        cause: Cause::BufferbloatUp,
        place: Place::Uplink,
        severity: Severity::Critical,
        confidence: 0.98,
        matters_for: Vec::new(),
        summary: "While an upload runs, everything else waits 688 ms longer: the modem queues packets instead of dropping them.".into(),
        evidence: vec![
            Evidence {
                measurement: "m4".into(),
                field: "result.increase_s.p95".into(),
                value: 0.688.into(),
                rule: "p95 of the increase over idle, grade C or worse".into(),
                threshold: 0.06.into(),
            },
            Evidence {
                measurement: "m3".into(),
                field: "result.tcp.limited.network_ratio".into(),
                value: 0.97.into(),
                rule: "the senders waited for the network, not for a buffer".into(),
                threshold: 0.5.into(),
            },
        ],
        fixes: vec![Fix {
            on: Actor::Router,
            summary: "Shape the upload to 95 % of the line's rate and manage the queue with CAKE, so that it forms where it is kept short.".into(),
            action: Some(Action::Shaper(ShaperAction {
                direction: OneDirection::Up,
                rate_bps: 19_000_000,
                overhead_bytes: 18,
                mpu_bytes: 64,
                cells: plumb_model::framing::Cells::None,
                qdisc: "cake".into(),
            })),
            commands: vec!["tc qdisc replace dev eth0 root cake bandwidth 19mbit overhead 18 mpu 64".into()],
            expect: "p95 under upload falls from 706 ms to below 30 ms; the upload loses about 5 %.".into(),
        }],
        kb: "bufferbloat".into(),
    }
}

fn host(kernel: &str, here: bool) -> HostFacts {
    HostFacts {
        plumb: "0.1.0".into(),
        kernel: kernel.into(),
        congestion_control: Some("cubic".into()),
        congestion_controls: vec!["reno".into(), "cubic".into(), "bbr".into()],
        tcp_rmem_bytes: Some([4096, 131_072, 33_554_432]),
        tcp_wmem_bytes: Some([4096, 16_384, 4_194_304]),
        tcp_adv_win_scale: Some(1),
        window_scaling: Some(true),
        sack: Some(true),
        timestamps: Some(true),
        clock_source: Some("tsc".into()),
        clock_synchronised: here.then_some(true),
    }
}

/// Noise in 0…1 that is the same on every machine (SplitMix64).
fn noise(seed: u64, n: u64) -> f64 {
    let mut z = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(n.wrapping_mul(0xbf58_476d_1ce4_e5b9));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Microseconds, so that the last bits of another machine's `exp` do not show.
fn micro(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn rtt(length_s: f64, seed: u64, delay: impl Fn(f64) -> f64, lost: impl Fn(u64) -> bool) -> Series {
    let mut series = Series::new(Unit::Seconds);
    for n in 0..(length_s / PROBE_INTERVAL_S) as u64 {
        let t = n as f64 * PROBE_INTERVAL_S;
        let jitter = 0.0009 * noise(seed, n).powi(4);
        series.push(micro(t), (!lost(n)).then(|| micro(delay(t) + jitter)));
    }
    series
}

fn rate(bps: f64, seed: u64) -> Series {
    let mut series = Series::new(Unit::BitsPerSecond);
    for n in 1..=(PHASE_S / 0.1) as u64 {
        let t = n as f64 * 0.1;
        let start = 1.0 - (-t / 0.25).exp();
        series.push(
            micro(t),
            Some((bps * start * (0.98 + 0.04 * noise(seed + 30, n))).round()),
        );
    }
    series
}

fn ping(protocol: Protocol, rtt: &Series) -> PingResult {
    PingResult {
        one_way: None,
        protocol,
        address: "203.0.113.7".into(),
        sent: rtt.t_s.len() as u64,
        received: rtt.points().count() as u64,
        loss_ratio: Some(0.0),
        duplicates: 0,
        reordered: 0,
        send_errors: 0,
        late: 0,
        answers: std::collections::BTreeMap::new(),
        losses: plumb_model::results::udp::LossPattern::default(),
        hop_limits: vec![],
        hop_limit_changes: 0,
        phases: None,
        icmp_errors: std::collections::BTreeMap::new(),
        sizes: vec![],
        dropped_here: 0,
        corrupted: 0,
        rtt_s: Distribution::of(rtt.points().map(|p| p.1)),
        lateness_s: Distribution::of((0..100).map(|n| noise(40, n) * 120e-6)),
        timestamps: TimestampSource::Kernel,
    }
}

fn throughput(direction: Direction, bps: f64, load: &Load) -> ThroughputResult {
    let stream = |id| StreamResult {
        id,
        bytes: (bps / 8.0 * PHASE_S / 4.0) as u64,
        bps: bps / 4.0,
        retransmits: load.retransmits / 4,
        error: None,
    };
    ThroughputResult {
        direction,
        protocol: Protocol::Tcp,
        bps,
        steady_bps: Some(bps * 1.01),
        bytes: (bps / 8.0 * PHASE_S) as u64,
        cc: "cubic".into(),
        slow_start: None,
        zero_copy_send: false,
        discard_receive: false,
        files: None,
        streams: (0..4).map(stream).collect(),
        sharing: None,
        tcp: TcpSender {
            retransmits: load.retransmits,
            spurious_retransmits: None,
            min_rtt_s: Some(0.0182),
            max_srtt_s: Some(micro(IDLE_RTT_S + load.queue_s)),
            mss_bytes: 1448,
            send_buffer_bytes: Some(4_194_304),
            max_in_flight_bytes: (bps / 8.0 * (IDLE_RTT_S + load.queue_s) / 4.0) as u64,
            ecn: None,
            fast_open: None,
            window_scaling: None,
            sack: None,
            timestamps: None,
            mptcp: None,
            limited: LimitedTime {
                rwnd_ratio: 0.0,
                sndbuf_ratio: 0.004,
                app_ratio: 0.026,
                network_ratio: 0.97,
            },
        },
        tcp_receiver: TcpReceiver {
            receive_buffer_bytes: Some(6_291_456),
            max_window_bytes: Some(3_145_728),
        },
        cpu: CpuUse {
            local_ratio: Some(0.06),
            remote_ratio: Some(0.04),
            local_s_per_gb: None,
            remote_s_per_gb: None,
        },
        tls: None,
    }
}

fn loaded(direction: Direction, rtt: &Series, load: &Load) -> LoadedLatencyResult {
    let idle = Distribution::of((0..100).map(|n| micro(IDLE_RTT_S + 0.0009 * noise(1, n).powi(4))))
        .unwrap();
    let settled = Distribution::of(rtt.points().filter(|p| p.0 >= 2.0).map(|p| p.1)).unwrap();
    let increase = settled.above(idle.p50);
    let lost = rtt.values.iter().filter(|v| v.is_none()).count();
    LoadedLatencyResult {
        one_way: None,
        direction,
        protocol: Protocol::Udp,
        idle_rtt_s: idle,
        rtt_s: settled,
        increase_s: increase,
        loss_ratio: lost as f64 / rtt.values.len() as f64,
        down_bps: (load.down_bps > 0.0).then_some(load.down_bps),
        up_bps: (load.up_bps > 0.0).then_some(load.up_bps),
        grade: Some(Grade::of_increase(increase.p95)),
        grade_table: Some(DSLREPORTS.into()),
        rpm: None,
        rpm_method: None,
        drain_s: Some(0.7),
        classes: BTreeMap::new(),
        path: None,
        periodic: Vec::new(),
    }
}

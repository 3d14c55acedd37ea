//! What such a Run says that it measured.

use plumb_model::protocol::Protocol;
use plumb_model::results::host::{
    Bus, CachedMetrics, Check, CheckState, Connection, HostResult, Interface, LinkCounters,
    LinkMode, Listener, Machine, Owner, Sockets,
};
use plumb_model::results::responsiveness::{
    ResponsivenessResult, RpmConfidence, RpmProbes, RpmTimes,
};
use plumb_model::results::sharing::*;
use plumb_model::results::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

use super::{distribution, grade, number, words};
use crate::goldens::every_kind;

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::Up),
        Just(Direction::Down),
        Just(Direction::Both)
    ]
}

pub(super) fn outcome() -> impl Strategy<Value = Outcome> {
    let protocol = prop_oneof![Just(Protocol::Icmp), Just(Protocol::Udp)];
    let ping = (
        protocol.clone(),
        words(),
        option::of(distribution()),
        number(),
        any::<u64>(),
    )
        .prop_map(|(protocol, address, rtt_s, loss_ratio, sent)| {
            Outcome::Ping(PingResult {
                one_way: None,
                protocol,
                address: address.clone(),
                sent,
                received: sent,
                loss_ratio: Some(loss_ratio),
                duplicates: sent,
                reordered: 0,
                send_errors: 0,
                late: sent,
                answers: [(address.clone(), sent)].into(),
                losses: plumb_model::results::udp::LossPattern::default(),
                hop_limits: vec![],
                hop_limit_changes: 0,
                phases: None,
                icmp_errors: [(address.clone(), sent)].into(),
                sizes: vec![],
                dropped_here: sent,
                corrupted: sent,
                rtt_s,
                lateness_s: rtt_s,
                timestamps: TimestampSource::User,
            })
        });
    let loaded = (
        direction(),
        protocol,
        distribution(),
        distribution(),
        number(),
        grade(),
        words(),
    )
        .prop_map(
            |(direction, protocol, idle_rtt_s, rtt_s, loss_ratio, grade, table)| {
                Outcome::LoadedLatency(LoadedLatencyResult {
                    one_way: None,
                    direction,
                    protocol,
                    idle_rtt_s,
                    rtt_s,
                    increase_s: rtt_s,
                    loss_ratio,
                    down_bps: Some(loss_ratio),
                    up_bps: None,
                    grade,
                    grade_table: Some(table.clone()),
                    rpm: None,
                    rpm_method: None,
                    drain_s: None,
                    classes: [(
                        table,
                        ClassLatency {
                            dscp: 46,
                            down_bps: Some(loss_ratio),
                            up_bps: None,
                            idle_rtt_s: None,
                            rtt_s: Some(rtt_s),
                            increase_s: Some(rtt_s),
                            loss_ratio: Some(loss_ratio),
                        },
                    )]
                    .into(),
                    path: Some(PathQueueing {
                        places: Vec::new(),
                        local_increase_s: idle_rtt_s,
                        beyond_increase_s: rtt_s,
                        local_ratio: Some(loss_ratio),
                    }),
                    periodic: vec![Periodic {
                        series: "rtt".to_owned(),
                        of: PeriodicOf::Level,
                        period_s: loss_ratio,
                        strength_ratio: loss_ratio,
                        confidence: loss_ratio,
                        times_seen: 0,
                    }],
                })
            },
        );
    let throughput = (
        direction(),
        words(),
        vec(number(), 6),
        option::of(words()),
        any::<u64>(),
        option::of(distribution()),
    )
        .prop_map(|(direction, cc, v, error, bytes, rtt)| {
            let stream = |id| StreamResult {
                id,
                bytes,
                bps: v[0],
                retransmits: bytes,
                error: error.clone(),
            };
            Outcome::Throughput(ThroughputResult {
                direction,
                protocol: Protocol::Tcp,
                bps: v[1],
                steady_bps: Some(v[2]),
                bytes,
                cc: cc.clone(),
                slow_start: None,
                zero_copy_send: false,
                discard_receive: false,
                files: None,
                streams: (0..3).map(stream).collect(),
                sharing: Some(Sharing {
                    jain_index: Some(v[1]),
                    jain_index_each_second: None,
                    groups: (0..2)
                        .map(|first_stream| GroupShare {
                            cc: cc.clone(),
                            first_stream,
                            streams: u32::MAX,
                            bps: v[2],
                            share_ratio: v[3],
                            even_share_ratio: v[4],
                        })
                        .collect(),
                }),
                tcp: TcpSender {
                    retransmits: bytes,
                    spurious_retransmits: None,
                    min_rtt_s: Some(v[3]),
                    max_srtt_s: Some(v[4]),
                    mss_bytes: bytes,
                    send_buffer_bytes: Some(bytes),
                    max_in_flight_bytes: bytes,
                    ecn: None,
                    fast_open: None,
                    window_scaling: None,
                    sack: None,
                    timestamps: None,
                    mptcp: None,
                    limited: LimitedTime {
                        rwnd_ratio: v[0],
                        sndbuf_ratio: v[1],
                        app_ratio: v[2],
                        network_ratio: v[3],
                    },
                },
                tcp_receiver: TcpReceiver {
                    receive_buffer_bytes: Some(bytes),
                    max_window_bytes: None,
                },
                cpu: CpuUse {
                    local_ratio: Some(v[5]),
                    remote_ratio: Some(v[5]),
                    local_s_per_gb: None,
                    remote_s_per_gb: None,
                },
                tls: rtt.map(|handshake_s| TlsResult {
                    cipher_suite: error.clone().unwrap_or_default(),
                    handshake_s,
                }),
            })
        });
    let transactions = (
        vec(number(), 3),
        option::of(distribution()),
        option::of(words()),
        any::<u64>(),
        any::<bool>(),
    )
        .prop_map(|(v, times, error, count, connect)| {
            Outcome::Transactions(TransactionsResult {
                transport: Protocol::Tls,
                connect,
                request_bytes: count,
                response_bytes: 1,
                concurrency: count,
                offered_tps: Some(v[0]),
                completed: count,
                failed: count,
                unfinished: 0,
                delayed: count,
                rate_tps: v[1],
                latency_s: times,
                connect_s: times,
                tls_handshake_s: None,
                response_s: times,
                error,
                cpu: CpuUse {
                    local_ratio: Some(v[2]),
                    remote_ratio: None,
                    local_s_per_gb: None,
                    remote_s_per_gb: None,
                },
            })
        });
    let port = (
        words(),
        any::<u16>(),
        option::of(distribution()),
        option::of(words()),
    )
        .prop_map(|(address, port, connect_s, error)| {
            Outcome::Port(Box::new(PortResult {
                address,
                port,
                tried: 1,
                connected: 1,
                connect_s,
                banner: error.clone(),
                canonical_name: error.clone(),
                hints: error.iter().cloned().collect(),
                error,
                ..PortResult::default()
            }))
        });
    let responsiveness = (
        vec(option::of(number()), 8),
        option::of(distribution()),
        words(),
        option::of(words()),
        any::<u64>(),
    )
        .prop_map(|(v, times, rpm_method, error, count)| {
            Outcome::Responsiveness(Box::new(ResponsivenessResult {
                direction: Direction::Up,
                rpm: v[0],
                rpm_method,
                confidence: RpmConfidence::Medium,
                foreign_rpm: v[1],
                in_band_rpm: v[2],
                goodput_bps: v[3],
                goodput_confidence: RpmConfidence::Low,
                goodput_stable_after_s: v[4],
                spread_ratio: v[4],
                connections: count,
                interval_s: 1.0,
                trimmed_mean_s: RpmTimes {
                    connect: v[5],
                    tls_handshake: v[6],
                    first_answer: v[7],
                    in_band: None,
                },
                times_s: RpmTimes {
                    connect: times,
                    ..RpmTimes::default()
                },
                lost: error.clone(),
                probes: RpmProbes {
                    failed: count,
                    error,
                    ..RpmProbes::default()
                },
            }))
        });
    // Boxed: each of these types is large, and so is the stack of a test without optimisation.
    prop_oneof![
        ping.boxed(),
        loaded.boxed(),
        throughput.boxed(),
        port.boxed(),
        transactions.boxed(),
        responsiveness.boxed(),
        machine().boxed(),
        any_kind().boxed(),
    ]
}

/// A result of any kind, in which some texts and numbers are others that a file could have there.
fn any_kind() -> impl Strategy<Value = Outcome> {
    let kinds = every_kind().measurements.into_iter();
    let kinds: Vec<Value> = kinds
        .map(|measurement| serde_json::to_value(measurement.outcome).unwrap())
        .collect();
    let change = (any::<Index>(), words(), number(), any::<u64>());
    (select(kinds), vec(change, 0..40)).prop_map(|(mut kind, changes)| {
        let mut places = Vec::new();
        find_values(&kind["result"], "/result", &mut places);
        for (place, words, number, count) in changes {
            let mut changed = kind.clone();
            let value = changed.pointer_mut(place.get::<String>(&places)).unwrap();
            match value {
                Value::String(_) => *value = words.into(),
                Value::Number(old) if old.is_u64() => *value = count.into(),
                Value::Number(_) => *value = number.into(),
                _ => {}
            }
            // A word of a vocabulary, or a small number, cannot be another in any file.
            if serde_json::from_value::<Outcome>(changed.clone()).is_ok() {
                kind = changed;
            }
        }
        serde_json::from_value(kind).unwrap()
    })
}

/// Adds where the values are that have no others in them.
fn find_values(value: &Value, place: &str, places: &mut Vec<String>) {
    match value {
        Value::Object(named) => {
            for (name, inner) in named {
                let name = name.replace('~', "~0").replace('/', "~1");
                find_values(inner, &format!("{place}/{name}"), places);
            }
        }
        Value::Array(several) => {
            for (number, inner) in several.iter().enumerate() {
                find_values(inner, &format!("{place}/{number}"), places);
            }
        }
        _ => places.push(place.to_owned()),
    }
}

/// A machine whose names came from drivers, programs and networks.
fn machine() -> impl Strategy<Value = Outcome> {
    (vec(words(), 8), vec(number(), 3), any::<u64>()).prop_map(|(text, v, count)| {
        let owner = Some(Owner {
            pid: 1,
            program: text[0].clone(),
        });
        Outcome::Host(Box::new(HostResult {
            audit: [CheckState::Fine, CheckState::Unknown, CheckState::Found]
                .map(|state| Check {
                    subject: text[1].clone(),
                    state,
                    summary: text[2].clone(),
                })
                .into(),
            interfaces: vec![Interface {
                name: text[3].clone(),
                driver: Some(text[4].clone()),
                up: true,
                carrier: true,
                link: Some(LinkMode {
                    speed_bps: Some(v[0]),
                    ..LinkMode::default()
                }),
                bus: Some(Bus {
                    kind: text[5].clone(),
                    speed_bps: Some(v[1]),
                    ..Bus::default()
                }),
                counters: LinkCounters {
                    rx_bytes: count,
                    rx_errors: count,
                    tx_errors: count,
                    ..LinkCounters::default()
                },
                ..Interface::default()
            }],
            counters: [
                ("TcpRetransSegs".to_owned(), count.cast_signed()),
                (text[6].clone(), 1),
            ]
            .into(),
            sockets: Sockets {
                connections: vec![Connection {
                    local: text[7].clone(),
                    owner: owner.clone(),
                    rtt_s: v[2],
                    rwnd_ratio: Some(v[0]),
                    ..Connection::default()
                }],
                listeners: vec![Listener {
                    local: text[7].clone(),
                    owner,
                    waiting: count,
                    backlog: count,
                }],
                connections_left_out: 3,
                ..Sockets::default()
            },
            cached_metrics: vec![CachedMetrics {
                remote: text[0].clone(),
                age_s: Some(v[1]),
                ..CachedMetrics::default()
            }],
            machine: Machine {
                product: Some(text[1].clone()),
                hypervisor: Some(text[2].clone()),
                ..Machine::default()
            },
            ..HostResult::default()
        }))
    })
}

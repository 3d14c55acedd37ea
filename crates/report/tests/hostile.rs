//! Whatever a Run says, it is drawn: no panic, no markup from its text, nothing loaded from
//! elsewhere, no command to the terminal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod sample;

use plumb_model::distribution::Distribution;
use plumb_model::finding::*;
use plumb_model::grade::Grade;
use plumb_model::results::host::{
    Bus, CachedMetrics, Check, CheckState, Connection, HostResult, Interface, LinkCounters,
    LinkMode, Listener, Machine, Owner, Sockets,
};
use plumb_model::results::responsiveness::{
    ResponsivenessResult, RpmConfidence, RpmProbes, RpmTimes,
};
use plumb_model::results::sharing::*;
use plumb_model::results::*;
use plumb_model::run::*;
use plumb_model::series::{Series, Unit};
use plumb_report::text::Style;
use plumb_report::{compare, flent, html, text};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// Text that would like to be markup, an address or a command.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("<script>alert(1)</script>".to_owned()),
        Just("\"><img src=x onerror=alert(1)>".to_owned()),
        Just("' onmouseover='alert(1)".to_owned()),
        Just("</style></title><svg onload=alert(1)>".to_owned()),
        Just("https://evil.example/a.js".to_owned()),
        Just("{{ 7 * 7 }}{% raw %}".to_owned()),
        Just("\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m".to_owned()),
        Just(String::new()),
        "\\PC{0,40}",
        any::<String>(),
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..2.0f64,
        2 => 0.0..1e9f64,
        1 => Just(0.0),
        1 => Just(-1.0),
        1 => Just(1e300),
        1 => Just(-1e300),
        1 => Just(f64::MIN_POSITIVE),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(f64::NAN),
    ]
}

prop_compose! {
    fn distribution()(v in vec(number(), 10), count in any::<u64>()) -> Distribution {
        Distribution { count, min: v[0], p5: v[1], p25: v[2], p50: v[3], mean: v[4], p75: v[5], p95: v[6], p99: v[7], max: v[8], stddev: v[9] }
    }
}

prop_compose! {
    fn series()(points in vec((number(), option::of(number())), 0..60), seconds in any::<bool>()) -> Series {
        let unit = if seconds { Unit::Seconds } else { Unit::BitsPerSecond };
        // Past `push`, as a hostile file would come.
        Series { unit, t_s: points.iter().map(|p| p.0).collect(), values: points.iter().map(|p| p.1).collect() }
    }
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::Up),
        Just(Direction::Down),
        Just(Direction::Both)
    ]
}

fn grade() -> impl Strategy<Value = Option<Grade>> {
    option::of(prop_oneof![
        Just(Grade::APlus),
        Just(Grade::A),
        Just(Grade::C),
        Just(Grade::F)
    ])
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let protocol = prop_oneof![Just(ProbeProtocol::Icmp), Just(ProbeProtocol::Udp)];
    let ping = (
        protocol.clone(),
        words(),
        option::of(distribution()),
        number(),
        any::<u64>(),
    )
        .prop_map(|(protocol, address, rtt_s, loss_ratio, sent)| {
            Outcome::Ping(PingResult {
                protocol,
                address: address.clone(),
                sent,
                received: sent,
                loss_ratio,
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
                protocol: "tcp".into(),
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
                    min_rtt_s: Some(v[3]),
                    max_srtt_s: Some(v[4]),
                    mss_bytes: bytes,
                    send_buffer_bytes: Some(bytes),
                    max_in_flight_bytes: bytes,
                    ecn: None,
                    fast_open: None,
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
                    local_ratio: v[5],
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
                transport: TransactionTransport::Tls,
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
                    local_ratio: v[2],
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
    ]
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

prop_compose! {
    fn measurement()(
        id in words(),
        outcome in outcome(),
        at_s in number(),
        duration_s in number(),
        phase in prop_oneof![Just("idle".to_owned()), Just("up".to_owned()), Just("both".to_owned()), Just("after".to_owned()), words()],
        series in btree_map(prop_oneof![Just("rtt".to_owned()), Just("rtt_icmp".to_owned()), Just("bps".to_owned()), words()], series(), 0..3),
    ) -> Measurement {
        Measurement { id, outcome, at_s, duration_s, params: serde_json::Map::from_iter([("phase".to_owned(), phase.into())]), series }
    }
}

prop_compose! {
    fn finding()(text in vec(words(), 8), v in vec(number(), 3), critical in any::<bool>()) -> Finding {
        let evidence = Evidence { measurement: text[0].clone(), field: text[1].clone(), value: Observed::Word(text[3].clone()), rule: text[2].clone(), threshold: v[1].into() };
        let fix = Fix {
            on: Actor::Router,
            summary: text[3].clone(),
            action: None,
            commands: vec![text[4].clone(), text[5].clone()],
            expect: text[6].clone(),
        };
        Finding {
            cause: Cause::BufferbloatUp,
            place: Place::Uplink,
            severity: if critical { Severity::Critical } else { Severity::Info },
            confidence: v[2],
            matters_for: Vec::new(),
            summary: text[7].clone(),
            evidence: vec![evidence],
            fixes: vec![fix],
            kb: "bufferbloat".into(),
        }
    }
}

prop_compose! {
    fn run()(
        text in vec(words(), 12),
        measurements in vec(measurement(), 0..6),
        findings in vec(finding(), 0..3),
        grade in grade(),
        lateness_s in option::of(distribution()),
        overrun in any::<bool>(),
    ) -> Run {
        let host = HostFacts {
            plumb: text[0].clone(),
            kernel: text[1].clone(),
            congestion_controls: vec![text[2].clone()],
            clock_source: Some(text[3].clone()),
            tcp_rmem_bytes: Some([u64::MAX; 3]),
            ..HostFacts::default()
        };
        Run {
            schema: SCHEMA.into(),
            id: text[4].clone(),
            started: text[5].clone(),
            plumb: text[6].clone(),
            command: vec![text[7].clone()],
            local: Local { host: host.clone(), lab: Some(LabMark { scenario: text[8].clone(), seed: 1, backend: LabBackend::Kernel, lateness_s, overrun, notes: vec![text[10].clone()] }) },
            target: Some(Target { name: text[9].clone(), address: Some(text[10].clone()), host: Some(host) }),
            measurements,
            findings,
            verdict: Some(Verdict { headline: text[11].clone(), grade }),
            notes: text,
        }
    }
}

/// The tags that the page itself is made of.
const TAGS: &[&str] = &[
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "footer",
    "section",
    "article",
    "div",
    "span",
    "p",
    "b",
    "h1",
    "h2",
    "h3",
    "dl",
    "dt",
    "dd",
    "ul",
    "li",
    "code",
    "pre",
    "figure",
    "figcaption",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "svg",
    "line",
    "rect",
    "path",
    "text",
    "!doctype",
];

/// Fails when the page holds a tag that is not its own, or an attribute that loads or runs.
fn assert_own_markup(page: &str) -> Result<(), TestCaseError> {
    prop_assert!(!page.contains("http://") && !page.contains("https://"));
    let (head, rest) = page.split_once("<style>").expect("a style sheet");
    let (style, body) = rest.split_once("</style>").expect("its end");
    prop_assert!(!style.contains("url(") && !style.contains("@import"));
    for part in head.split('<').skip(1).chain(body.split('<').skip(1)) {
        let (tag, text) = part.split_once('>').expect("a tag is closed");
        let name = tag
            .trim_start_matches('/')
            .split([' ', '\n'])
            .next()
            .unwrap_or_default();
        prop_assert!(TAGS.contains(&name), "<{tag}>");
        prop_assert!(!text.contains('>'), "{text}");
        // Outside quotes there are only names of attributes.
        for attribute in tag
            .split('"')
            .step_by(2)
            .flat_map(str::split_whitespace)
            .skip(1)
        {
            let attribute = attribute.trim_end_matches(['=', '/']);
            prop_assert!(
                !attribute.starts_with("on")
                    && !["src", "href", "style", "action", "xlink:href"].contains(&attribute),
                "<{tag}>"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_run_is_drawn_and_stays_text(run in run(), other in run()) {
        assert_own_markup(&html::render(&run))?;
        let comparison = compare::compare(&run, &other);
        assert_own_markup(&html::render_comparison(&run, &other, &comparison))?;
        let style = Style { color: false, width: 80 };
        for text in [text::render(&run, &style), text::render_comparison(&comparison, &style)] {
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        }
        let tiny = Style { color: true, width: 0 };
        let _ = text::render(&run, &tiny);
        // A Run without a load, or with a start that is no time, is an error and nothing worse.
        let _ = flent::export(&run, None);
        // What is not finite becomes null, and the document still reads.
        let json = serde_json::to_string(&comparison).expect("JSON");
        prop_assert!(serde_json::from_str::<compare::Comparison>(&json).is_ok());
    }
}

#[test]
fn an_empty_run_is_drawn() {
    let mut run = sample::before();
    run.measurements.clear();
    run.findings.clear();
    run.notes.clear();
    run.verdict = None;
    run.target = None;
    assert!(html::render(&run).contains("this host"));
    assert!(text::render(&run, &Style::default()).starts_with("this host"));
    assert!(!html::render(&run).contains("could not be made"));
}

#[test]
fn tame_text_fits_eighty_columns() {
    let comparison = compare::compare(&sample::before(), &sample::after());
    let style = Style {
        color: false,
        width: 80,
    };
    for text in [
        text::render(&sample::before(), &style),
        text::render(&sample::ping_and_port(), &style),
        text::render_comparison(&comparison, &style),
    ] {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn addresses_in_text_do_not_look_like_markup() {
    let mut run = sample::before();
    run.notes = vec!["see https://example.com/?a=1&b=2".into()];
    let page = html::render(&run);
    assert!(
        page.contains("see https:&#x2f;&#x2f;example.com"),
        "the note is there, escaped"
    );
}

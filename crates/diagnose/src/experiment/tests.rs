#![allow(clippy::unwrap_used)]

use plumb_model::context::{Context, Phase};
use plumb_model::finding::{Cause, Clearance};
use plumb_model::goal::Asked;
use plumb_model::results::Outcome;
use plumb_model::results::mtu::{MtuDirection, MtuMethod, MtuResult, TcpMtu};
use plumb_model::run::Run;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::rules;
use crate::testing::{carrying, measurement};

fn next(run: &Run) -> Option<Wanted> {
    wanted(&Case::of(run), true)
}

fn run(text: &str) -> Run {
    Run::from_json(text).unwrap()
}

/// Records what became of an experiment: shares lost, and seconds that packets waited.
pub(crate) fn made(run: &mut Run, stream: Stream, sent: u64, lost_ratio: f64, queue_s: f64) {
    let bps = stream.pps * f64::from(stream.payload_bytes) * 8.0;
    let lost = (sent as f64 * lost_ratio) as u64;
    let spread = json!({
        "count": sent, "min": 0.0, "mean": queue_s, "stddev": 0.0, "p5": queue_s, "p25": queue_s, "p50": queue_s, "p75": queue_s,
        "p90": queue_s, "p95": queue_s, "p99": queue_s, "p999": queue_s, "max": queue_s
    });
    let result = json!({
        "direction": stream.direction.name(), "stream": 0, "pattern": "constant", "payload_bytes": stream.payload_bytes,
        "asked_bps": bps, "gso_segments": 1, "gro": false, "bps": bps * (1.0 - lost_ratio),
        "sender": { "sent": sent, "sent_bytes": 0, "missed": 0, "refused": 0, "lateness_s": null },
        "receiver": {
            "received": sent - lost, "received_bytes": 0, "lost": lost, "loss_ratio": lost_ratio,
            "losses": { "periods": 0, "period_length": null, "distance": null }, "duplicates": 0,
            "reordering": { "reordered": 0, "reordered_ratio": 0.0, "extent": null, "late_s": null, "density": [], "density_threshold": 8 },
            "too_late": 0, "jitter_s": null, "ipdv_s": null, "pdv_s": spread,
            "ecn": { "not_ect": 0, "ect1": 0, "ect0": 0, "ce": 0 }, "dropped_here": 0, "lost_on_path": lost,
            "receive_buffer_bytes": null
        },
        "one_way_delay": null, "cpu": { "local_ratio": 0.0, "remote_ratio": null }, "error": null
    });
    let mut stream_made = measurement(Outcome::Udp(Box::new(
        serde_json::from_value(result).unwrap(),
    )));
    stream_made.duration_s = sent as f64 / stream.pps;
    stream_made.id = format!("experiment{}", run.measurements.len());
    stream_made.context = Context {
        experiment: Some(stream.experiment),
        ..Context::phase(Phase::from(stream.direction))
    };
    run.measurements.push(stream_made);
}

/// Datagrams up.
pub(crate) fn stream(experiment: Experiment, pps: f64, payload_bytes: u16) -> Stream {
    Stream {
        experiment,
        direction: Direction::Up,
        flows: 1,
        pps,
        payload_bytes,
    }
}

/// What is lost of a stream where its direction carries no more than so many times what TCP did.
pub(crate) fn lost_above(run: &Run, stream: Stream, times: f64) -> f64 {
    let carried = Case::of(run).full_load(stream.direction).unwrap().bps();
    let offered = stream.pps * f64::from(stream.payload_bytes) * 8.0;
    (1.0 - times * carried / offered).max(0.0)
}

/// What TCP carried up, in bit/s.
pub(crate) fn carried_up(run: &Run) -> f64 {
    Case::of(run).full_load(Direction::Up).unwrap().bps()
}

fn stream_of(wanted: Option<Wanted>) -> Option<Stream> {
    match wanted? {
        Wanted::Stream(stream) => Some(stream),
        Wanted::PacketSizes | Wanted::SingleStream(..) | Wanted::SmallSegments(_) => None,
    }
}

#[test]
fn a_healthy_line_is_asked_nothing_more() {
    let mut run = run(include_str!("../../fixtures/home-cable-managed.json"));
    assert_eq!(next(&run), None);
    // But for what only datagrams show, where there is time for it.
    let asked = |effort| {
        Some(Asked {
            effort,
            ..Asked::default()
        })
    };
    run.asked = asked(Effort::Quick);
    assert_eq!(next(&run), None);
    run.asked = asked(Effort::Usual);
    for direction in [Direction::Up, Direction::Down] {
        let below = stream_of(next(&run)).unwrap();
        assert_eq!(
            (below.experiment, below.direction),
            (Experiment::Paced, direction)
        );
        made(&mut run, below, 1400, 0.0, 0.0001);
    }
    assert_eq!(next(&run), None);
}

#[test]
fn what_a_full_queue_may_hide_is_asked_below_the_rate_and_not_cleared_before() {
    let mut run = run(include_str!("../../fixtures/home-cable-managed.json"));
    run.asked = Some(Asked {
        effort: Effort::Usual,
        ..Asked::default()
    });
    for measurement in &mut run.measurements {
        if measurement.outcome.throughput().map(|t| t.direction) != Some(Direction::Up) {
            continue;
        }
        // A segment in a hundred: 18 Mbit/s are 155 of them in a tenth of a second.
        let again = measurement.series.get_mut("retransmits").unwrap();
        let count = again.values.len();
        again.values = (0..count).map(|i| Some(1.5 * i as f64)).collect();
    }
    let above = stream(Experiment::Overload, 1.4 * carried_up(&run) / 11200.0, 1400);
    made(&mut run, above, 4000, 0.28, 0.03);
    let below = stream_of(next(&run)).unwrap();
    assert_eq!(
        (below.experiment, below.direction),
        (Experiment::Paced, Direction::Up)
    );
    assert!(!is_settled(&Case::of(&run), true));
    let clearance = |run: &Run| {
        let (_, verdict) = crate::diagnose(&Case::of(run), crate::Scope::Path);
        verdict.clearance
    };
    assert_eq!(clearance(&run), Some(Clearance::NotMeasured));
    let mut lost = run.clone();
    made(&mut run, below, 2600, 0.0, 0.0001);
    assert_eq!(clearance(&run), Some(Clearance::Cleared));
    made(&mut lost, below, 2600, 0.006, 0.0001);
    assert_eq!(clearance(&lost), Some(Clearance::Found));
}

#[test]
fn where_nothing_is_carried_the_size_of_packets_is_asked() {
    let run = run(include_str!("../../fixtures/mtu-black-hole.json"));
    assert_eq!(next(&run), Some(Wanted::PacketSizes));
}

#[test]
fn where_no_size_vanishes_a_load_of_small_segments_is_asked_and_shows_the_black_hole() {
    let mut run = run(include_str!("../../fixtures/mtu-black-hole.json"));
    let whole = MtuResult {
        address: "192.0.2.1".to_owned(),
        path_mtu_bytes: Some(1500),
        path_mtu_at_least: false,
        interface_mtu_bytes: Some(1500),
        largest_tried_bytes: 1500,
        partial: false,
        method: MtuMethod::Probed,
        direction: MtuDirection::Forward,
        hops: Vec::new(),
        black_hole_after: None,
        way_back_bytes: None,
        sent: 40,
        mss: None,
        tcp: TcpMtu::default(),
    };
    let whole = measurement(Outcome::Mtu(Box::new(whole)));
    run.measurements.push(whole);
    let Some(Wanted::SmallSegments(direction)) = next(&run) else {
        panic!("{:?}", next(&run));
    };
    for (bps, finds) in [(0.0, false), (20e6, true)] {
        let mut small = carrying(direction, bps);
        small.context = Context {
            experiment: Some(Experiment::SmallSegments),
            ..Context::default()
        };
        let mut run = run.clone();
        run.measurements.push(small);
        assert_eq!(next(&run), None);
        let found = weighing::found(&Case::of(&run));
        let is_it = |finding: &Finding| finding.cause == Cause::PmtudBlackHole;
        assert_eq!(found.iter().any(is_it), finds, "{found:?}");
    }
}

#[test]
fn where_one_flow_of_datagrams_has_far_less_than_several_connections_one_connection_is_asked_next()
{
    let mut run = run(include_str!("../../fixtures/policer.json"));
    let pps = carried_up(&run) / (1400.0 * 8.0);
    let above = stream(Experiment::Overload, 1.4 * pps, 1400);
    made(&mut run, above, (2.8 * pps) as u64, 0.68, 0.0001);
    let asked = next(&run);
    assert!(
        matches!(asked, Some(Wanted::SingleStream(Direction::Up, _))),
        "{asked:?}"
    );
}

#[test]
fn of_a_path_that_is_down_nothing_is_asked() {
    let mut run = run(include_str!("../../fixtures/mtu-black-hole.json"));
    let beside = |m: &plumb_model::run::Measurement| matches!(m.outcome, Outcome::LoadedLatency(_));
    run.measurements.retain(|measurement| !beside(measurement));
    assert_eq!(next(&run), None);
}

#[test]
fn a_loss_without_a_queue_is_asked_below_the_rate_and_above_it() {
    let mut run = run(include_str!("../../fixtures/policer.json"));
    let below = stream_of(next(&run)).unwrap();
    assert_eq!(
        (below.experiment, below.direction),
        (Experiment::Paced, Direction::Up)
    );
    made(&mut run, below, 1400, 0.0, 0.0001);
    let above = stream_of(next(&run)).unwrap();
    assert_eq!(above.experiment, Experiment::Overload);
    let ratio =
        above.pps * f64::from(above.payload_bytes) / below.pps / f64::from(below.payload_bytes);
    assert!(
        (ratio - OVERLOAD_RATIO / PACED_RATIO).abs() < 0.01,
        "{ratio}"
    );
    // Where TCP's packets do not wait at all, what it loses may keep it from most of the line.
    let mut short = run.clone();
    for measurement in &mut short.measurements {
        if let Outcome::Throughput(result) = &mut measurement.outcome {
            result.tcp.min_rtt_s = Some(0.25);
        }
    }
    let far_above = stream_of(next(&short)).unwrap();
    assert!(far_above.pps > 2.8 * above.pps, "{far_above:?}");
    // It carries more.
    let mut faster = run.clone();
    made(&mut faster, above, 2500, 0.0, 0.0001);
    assert!(stream_of(next(&faster)).unwrap().pps > 3.9 * above.pps);
    // It does not: several flows show whether it is each flow that is limited, small packets whether it is bits.
    let lost = lost_above(&run, above, 1.0);
    made(&mut run, above, 2500, lost, 0.0001);
    let many = stream_of(next(&run)).unwrap();
    assert_eq!((many.experiment, many.flows), (Experiment::ManyFlows, 4));
    let each = Stream { flows: 1, ..many };
    for _ in 0..many.flows {
        made(&mut run, each, 700, 0.5, 0.0001);
    }
    let small = stream_of(next(&run)).unwrap();
    assert_eq!(small.experiment, Experiment::SmallPackets);
    assert!(!may_wait(&Case::of(&run), &Wanted::Stream(small)));
    let bps = |stream: Stream| stream.pps * f64::from(stream.payload_bytes);
    assert!(small.pps > below.pps && bps(small) < 0.25 * bps(below));
    made(&mut run, small, 4000, 0.0, 0.0001);
    assert_eq!(next(&run), None);
}

#[test]
fn what_is_dropped_at_once_is_asked_below_the_rate_after_what_is_above_it() {
    let mut run = run(include_str!("../../fixtures/policer.json"));
    for measurement in &mut run.measurements {
        let carried = measurement.outcome.throughput();
        let least = carried.and_then(|carried| carried.tcp.min_rtt_s);
        // No packet of TCP waited.
        if let Some(srtt) = measurement.series.get_mut("srtt_s") {
            srtt.values.fill(least);
        }
    }
    let above = stream_of(next(&run)).unwrap();
    assert_eq!(above.experiment, Experiment::Overload);
    let lost = lost_above(&run, above, 1.02);
    made(&mut run, above, 4000, lost, 0.0001);
    // TCP carries what the line does, and no queue explains that it loses as much.
    let below = stream_of(next(&run)).unwrap();
    assert_eq!(below.experiment, Experiment::Paced);
    made(&mut run, below, 1400, 0.0, 0.0001);
    let found = rules::found(&Case::of(&run));
    assert!(found.iter().any(|f| f.cause == Cause::Policer), "{found:?}");
}

/// A policer behind a line with a queue of its own, which datagrams of four times TCP's rate fill.
#[test]
fn what_exceeds_two_limits_is_asked_again_just_above_the_lower_one() {
    let mut run = run(include_str!("../../fixtures/policer.json"));
    for measurement in &mut run.measurements {
        let carried = measurement.outcome.throughput();
        let least = carried.and_then(|carried| carried.tcp.min_rtt_s);
        if let Some(srtt) = measurement.series.get_mut("srtt_s") {
            srtt.values.fill(least);
        }
    }
    let above = stream_of(next(&run)).unwrap();
    assert_eq!(above.experiment, Experiment::Overload);
    made(&mut run, above, 8000, 0.6, 0.9);
    let again = stream_of(next(&run)).unwrap();
    assert_eq!(
        (again.experiment, again.direction),
        (Experiment::Overload, above.direction)
    );
    assert!(
        (again.pps / above.pps - 1.3 * 0.4).abs() < 0.01,
        "{again:?}"
    );
    made(&mut run, again, 4000, 0.23, 0.0001);
    let below = stream_of(next(&run)).unwrap();
    assert_eq!(below.experiment, Experiment::Paced);
    made(&mut run, below, 1400, 0.0, 0.0001);
    let found = rules::found(&Case::of(&run));
    let causes: Vec<Cause> = found.iter().map(|finding| finding.cause).collect();
    assert_eq!(causes, [Cause::Policer]);
}

#[test]
fn small_packets_that_are_lost_are_compared_with_full_ones() {
    let mut run = run(include_str!("../../fixtures/home-cable-managed.json"));
    let pps = carried_up(&run) / (1448.0 * 8.0);
    let small = stream(Experiment::SmallPackets, 2.0 * pps, 64);
    let mut whole = run.clone();
    made(&mut whole, small, 6000, 0.0, 0.0001);
    assert_eq!(next(&whole), None);
    made(&mut run, small, 6000, 0.5, 0.0001);
    for (experiment, lost) in [(Experiment::Paced, 0.0), (Experiment::Overload, 0.28)] {
        let full = stream_of(next(&run)).unwrap();
        assert_eq!(
            (full.experiment, full.direction),
            (experiment, Direction::Up)
        );
        made(&mut run, full, (2.0 * full.pps) as u64, lost, 0.0001);
    }
    assert_eq!(next(&run), None);
    let found = rules::found(&Case::of(&run));
    let causes: Vec<Cause> = found.iter().map(|finding| finding.cause).collect();
    assert!(causes.contains(&Cause::PacketRateLimited), "{causes:?}");
}

/// What is found once every experiment is made where the line carries so many times what TCP did.
fn found_after(text: &str, times: f64, load_s: Option<f64>) -> Vec<Cause> {
    let mut run = run(text);
    while let Some(stream) = stream_of(next(&run)) {
        let lost = match stream.experiment {
            Experiment::Overload => lost_above(&run, stream, times),
            _ => 0.0,
        };
        made(&mut run, stream, 2000, lost, 0.0001);
    }
    for measurement in &mut run.measurements {
        if matches!(measurement.outcome, Outcome::Throughput(_)) {
            measurement.duration_s = load_s.unwrap_or(measurement.duration_s);
        }
    }
    let found = rules::found(&Case {
        measurements: &run.measurements,
        local: &run.local.host,
        far: None,
        asked: None,
        log: None,
    });
    found.into_iter().map(|finding| finding.cause).collect()
}

#[test]
fn what_experiments_show_is_compared_with_a_load_that_was_long_enough() {
    let policer = include_str!("../../fixtures/policer.json");
    assert_eq!(found_after(policer, 1.0, None), [Cause::Policer]);
    assert_eq!(found_after(policer, 1.0, Some(1.5)), []);
    let duplex = include_str!("../../fixtures/duplex-mismatch.json");
    assert!(found_after(duplex, f64::MAX, None).contains(&Cause::DuplexMismatch));
    assert!(!found_after(duplex, f64::MAX, Some(1.5)).contains(&Cause::DuplexMismatch));
}

proptest! {
    /// Whatever comes of an experiment, there is an end of them.
    #[test]
    fn there_is_an_end_of_experiments(
        outcomes in prop::collection::vec((0u64..5000, 0.0..1.0f64, 0.0..2.0f64), 32),
        which in 0..3usize,
    ) {
        let texts = [
            include_str!("../../fixtures/policer.json"),
            include_str!("../../fixtures/duplex-mismatch.json"),
            include_str!("../../fixtures/bursts.json"),
        ];
        let mut run = run(texts.get(which).unwrap());
        let mut count = 0;
        for (sent, lost_ratio, queue_s) in outcomes {
            let Some(stream) = stream_of(next(&run)) else {
                break;
            };
            prop_assert!((LEAST_PPS..=MOST_PPS).contains(&stream.pps));
            made(&mut run, stream, sent, lost_ratio, queue_s);
            count += 1;
        }
        // Two directions, each once below the rate, at most four times above it, and once with small packets.
        prop_assert!(count <= 2 * (2 + RAISES), "{count}");
    }
}

#[test]
fn datagrams_that_no_line_of_one_rate_carries_contradict_each_other() {
    let mut run = run(include_str!("../../fixtures/policer.json"));
    let contradicting = |run: &Run| Case::of(run).contradicting_streams(Direction::Up);
    let slow = stream(Experiment::Overload, 1000.0, 1000);
    made(&mut run, slow, 2000, 0.5, 0.03);
    assert_eq!(contradicting(&run), None, "one stream alone");
    // 4 Mbit/s arrived of that one; as much below is no contradiction.
    let mut alike = run.clone();
    made(
        &mut alike,
        stream(Experiment::Paced, 600.0, 1000),
        1200,
        0.0,
        0.0001,
    );
    assert_eq!(contradicting(&alike), None);
    made(
        &mut run,
        stream(Experiment::Paced, 800.0, 1000),
        1600,
        0.0,
        0.0001,
    );
    assert_eq!(contradicting(&run), Some((4e6, 6.4e6)));
}

#[test]
fn datagrams_slower_than_tcp_show_no_rate_of_the_line() {
    let mut run = run(include_str!("../../fixtures/policer.json"));
    let carried = carried_up(&run);
    let line = |run: &Run| Case::of(run).line_bps(Direction::Up);
    let left_out = stream(Experiment::Overload, 0.8 * carried / 8000.0, 1000);
    made(&mut run, left_out, 1400, 0.3, 0.0001);
    assert_eq!(
        line(&run),
        None,
        "a busy host left out what was to be above"
    );
    let above = stream(Experiment::Overload, 4.0 * carried / 8000.0, 1000);
    made(&mut run, above, 6000, 0.7, 0.0001);
    let most = line(&run).unwrap();
    assert!((most / carried - 1.2).abs() < 0.01, "{most} of {carried}");
}

#[test]
fn where_a_load_shows_no_limit_it_is_asked_what_the_line_carries() {
    let mut run = run(include_str!("../../fixtures/home-cable-managed.json"));
    let beside = |m: &plumb_model::run::Measurement| matches!(m.outcome, Outcome::LoadedLatency(_));
    run.measurements.retain(|measurement| !beside(measurement));
    for measurement in &mut run.measurements {
        let carried = measurement.outcome.throughput();
        let Some(up) = carried.filter(|carried| carried.direction == Direction::Up) else {
            continue;
        };
        // No packet waited, and none was retransmitted.
        let least = up.tcp.min_rtt_s;
        let series = &mut measurement.series;
        series
            .get_mut("retransmits")
            .unwrap()
            .values
            .fill(Some(0.0));
        series.get_mut("srtt_s").unwrap().values.fill(least);
    }
    let above = stream_of(next(&run)).unwrap();
    assert_eq!(
        (above.experiment, above.direction),
        (Experiment::Overload, Direction::Up)
    );
    // It carries no more: TCP filled it.
    let open = |run: &Run| shows_no_limit(&Case::of(run), Direction::Up);
    let mut full = run.clone();
    let lost = lost_above(&full, above, 1.05);
    made(&mut full, above, (2.0 * above.pps) as u64, lost, 0.03);
    assert!(!open(&full));
    let small = stream_of(next(&full)).unwrap();
    assert_eq!(small.experiment, Experiment::SmallPackets);
    assert!(may_wait(&Case::of(&full), &Wanted::Stream(small)));
    // Too few were sent to say anything: it is not asked again, and stays open.
    let mut stopped = run.clone();
    made(&mut stopped, above, 10, 0.0, 0.0001);
    assert_eq!(next(&stopped), None);
    assert!(open(&stopped));
    // It carries that, and four times as much but for a part: something keeps TCP from it.
    made(&mut run, above, (2.0 * above.pps) as u64, 0.0, 0.0001);
    let faster = stream_of(next(&run)).unwrap();
    made(&mut run, faster, (2.0 * faster.pps) as u64, 0.3, 0.03);
    let left = causes::left(&Case::of(&run), &[]);
    let short = left
        .iter()
        .find(|sign| sign.kind == Kind::Shortfall)
        .unwrap();
    assert_eq!(short.severity, Severity::Warning, "{}", short.text);
}

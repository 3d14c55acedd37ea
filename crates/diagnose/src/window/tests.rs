//! Buffers of one side and of several connections, and what fills them.
#![allow(clippy::unwrap_used)]
use plumb_model::context::Experiment;
use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_model::series::{Series, Unit};
use serde_json::json;

use super::*;
use crate::experiment::tests::{made, stream};
use crate::testing::{beside_gateway, carrying, idle_spread, measurement};

/// Findings of a download that waits for the window of this host nearly all the time, of so many bit/s over
/// 150 ms while round trips take so long, with a receive buffer that may grow so far.
fn findings(bps: f64, smoothed_rtt_s: f64, largest_bytes: u64) -> Vec<Finding> {
    lasting(20.0, bps, smoothed_rtt_s, largest_bytes, 0)
}

/// The same of a phase of so many seconds, in which so many segments were retransmitted.
fn lasting(
    seconds: f64,
    bps: f64,
    smoothed_rtt_s: f64,
    largest_bytes: u64,
    retransmits: u64,
) -> Vec<Finding> {
    of_streams(
        0,
        [seconds, bps, smoothed_rtt_s],
        largest_bytes,
        retransmits,
    )
}

/// The same of several streams.
fn of_streams(
    streams: u32,
    [seconds, bps, smoothed_rtt_s]: [f64; 3],
    largest_bytes: u64,
    retransmits: u64,
) -> Vec<Finding> {
    let stream = |id| serde_json::json!({ "id": id, "bytes": 0, "bps": 0.0, "retransmits": 0, "error": null });
    let streams: Vec<_> = (0..streams).map(stream).collect();
    let result = serde_json::json!({
        "direction": "down", "protocol": "tcp", "bps": bps, "steady_bps": bps * 1.17, "bytes": (bps * seconds / 8.0) as u64, "cc": "cubic",
        "streams": streams,
        "tcp": {
            "retransmits": retransmits, "min_rtt_s": 0.150, "max_srtt_s": 0.2, "mss_bytes": 1448,
            "send_buffer_bytes": null, "max_in_flight_bytes": 22_000_000,
            "limited": { "rwnd_ratio": 0.9, "sndbuf_ratio": 0.0, "app_ratio": 0.0, "network_ratio": 0.1 }
        },
        "tcp_receiver": { "receive_buffer_bytes": 33_554_432, "max_window_bytes": 22_000_000 },
        "cpu": { "local_ratio": 0.1, "remote_ratio": null }
    });
    let result = serde_json::from_value(result).unwrap();
    let mut measurement = measurement(Outcome::Throughput(result));
    measurement.duration_s = seconds;
    let mut rtt = Series::new(Unit::Seconds);
    for step in 0..20 {
        // Slow start takes the first of them.
        let now = if step < 4 { 0.150 } else { smoothed_rtt_s };
        rtt.push(f64::from(step), Some(now));
    }
    measurement.series.insert("srtt_s".to_owned(), rtt);
    let local = HostFacts {
        tcp_rmem_bytes: Some([4096, 131_072, largest_bytes]),
        ..HostFacts::default()
    };
    let case = Case {
        measurements: &[measurement],
        local: &local,
        far: None,
        asked: None,
        log: None,
    };
    examine(&case, Side::Receiver)
}

fn causes(smoothed_rtt_s: f64) -> Vec<Cause> {
    let found = findings(804e6, smoothed_rtt_s, 33_554_432);
    found.into_iter().map(|finding| finding.cause).collect()
}

#[test]
fn what_no_kernel_takes_is_not_promised() {
    let fix = |largest| {
        let mut found = findings(20e9, 0.150, largest);
        found
            .pop()
            .and_then(|mut finding| finding.fixes.pop())
            .unwrap()
    };
    let capped = fix(33_554_432);
    assert!(
        matches!(&capped.action, Some(Action::Sysctl(set)) if set.value.ends_with(" 2147483647")),
        "{capped:?}"
    );
    // The largest window of TCP, 1 GiB, over 150 ms.
    assert!(
        capped
            .expect
            .contains("one connection can carry about 57.3 Gbit/s at most; several side by side"),
        "{capped:?}"
    );
    let already = fix((1 << 31) - 1);
    assert!(
        already.action.is_none() && already.expect.contains("57.3 Gbit/s at most"),
        "{already:?}"
    );
}

#[test]
fn a_phase_too_short_for_a_window_to_grow_accuses_no_buffer() {
    // Eight doublings of 64 KiB, twice, at 150 ms, after the first two seconds.
    let short = |seconds| lasting(seconds, 804e6, 0.151, 33_554_432, 0).len();
    assert_eq!([1.3, 4.0, 5.0].map(short), [0, 0, 1]);
}

#[test]
fn a_buffer_full_of_what_is_sent_again_is_not_too_small() {
    let segments = 804e6 * 20.0 / 8.0 / 1448.0;
    let losing = |share: f64| {
        let again = (segments * share) as u64;
        lasting(20.0, 804e6, 0.151, 33_554_432, again).len()
    };
    assert_eq!([0.0005, 0.037].map(losing), [1, 0]);
}

#[test]
fn a_rate_that_nobody_saw_is_not_printed() {
    let found = findings(804e6, 0.151, 33_554_432);
    let finding = found.first().unwrap();
    assert!(
        finding.summary.contains("the line carries is not known"),
        "{finding:?}"
    );
    let text = serde_json::to_string(finding).unwrap();
    assert!(text.contains("804 Mbit/s"), "{text}");
    assert!(!text.contains("Gbit/s"), "{text}");
}

#[test]
fn a_window_that_fills_the_line_several_times_over_is_worth_a_word() {
    // 22 MB over 150 ms are 1.17 Gbit/s.
    let found = |streams, bps| of_streams(streams, [20.0, bps, 0.185], 33_554_432, 0);
    let four = found(4, 4e9).pop().unwrap();
    assert_eq!(four.severity, Severity::Info);
    assert!(
        four.summary.contains("holds one connection to 1.17 Gbit/s"),
        "{}",
        four.summary
    );
    assert!(found(1, 4e9).is_empty() && found(4, 1e9).is_empty());
}

#[test]
fn a_buffer_at_its_largest_that_several_connections_hardly_wait_for_holds_one_of_them() {
    let found = |largest: u64, waits: f64| {
        let streams = (0..4)
            .map(|id| json!({ "id": id, "bytes": 0, "bps": 0.0, "retransmits": 0, "error": null }));
        let mut load = carrying(Direction::Down, 24e6);
        let mut rtt = Series::new(Unit::Seconds);
        (0..15).for_each(|step| rtt.push(f64::from(step), Some(0.130)));
        load.series.insert("srtt_s".to_owned(), rtt);
        if let Outcome::Throughput(result) = &mut load.outcome {
            result.streams = streams
                .map(|stream| serde_json::from_value(stream).unwrap())
                .collect();
            result.tcp.min_rtt_s = Some(0.086);
            result.tcp.send_buffer_bytes = Some(111_658);
            result.tcp.limited.sndbuf_ratio = waits;
            result.tcp.limited.network_ratio = 1.0 - waits;
        }
        let far = HostFacts {
            tcp_wmem_bytes: Some([4096, 16_384, largest]),
            ..HostFacts::default()
        };
        let case = Case {
            measurements: &[load],
            local: &HostFacts::default(),
            far: Some(&far),
            asked: None,
            log: None,
        };
        examine(&case, Side::Sender)
    };
    let [finding] = &found(111_658, 0.16)[..] else {
        panic!("one");
    };
    assert_eq!(
        (finding.place, finding.severity),
        (Place::FarHost, Severity::Info)
    );
    assert!(
        finding.summary.contains("holds one connection"),
        "{}",
        finding.summary
    );
    assert!(found(4 << 20, 0.16).is_empty(), "it may still grow");
    assert!(found(111_658, 0.0).is_empty(), "nobody waits");
}

#[test]
fn a_download_whose_sender_reports_nothing_is_compared_with_what_its_buffer_allows() {
    let found = |bps: f64, held: u64| {
        let mut load = carrying(Direction::Down, bps);
        if let Outcome::Throughput(result) = &mut load.outcome {
            result.tcp.min_rtt_s = None;
            result.tcp.limited.network_ratio = 0.0;
            result.tcp_receiver.receive_buffer_bytes = Some(held);
        }
        let local = HostFacts {
            tcp_rmem_bytes: Some([4096, 32_768, 63_530]),
            ..HostFacts::default()
        };
        let case = Case {
            measurements: &[
                idle_spread(0.090, 0.0001),
                beside_gateway(0.090, 0.0001),
                load,
            ],
            local: &local,
            far: None,
            asked: None,
            log: None,
        };
        examine(&case, Side::Receiver)
    };
    // 65 % of 63.5 kB over 90 ms are 3.67 Mbit/s.
    let [finding] = &found(3.4e6, 63_530)[..] else {
        panic!("one");
    };
    assert_eq!(
        (finding.place, finding.severity, finding.confidence),
        (Place::ThisHost, Severity::Critical, 0.8)
    );
    assert!(found(1.5e6, 63_530).is_empty());
    assert!(found(3.4e6, 40_000).is_empty(), "it may still grow");
}

#[test]
fn a_window_that_fills_a_queue_is_large_enough() {
    assert_eq!(causes(0.151), [Cause::ReceiveBufferSmall]);
    assert_eq!(causes(0.160), [Cause::ReceiveBufferSmall]);
    assert_eq!(causes(0.185), []);
}

/// An upload of 39.1 Mbit/s over 61 ms by four connections that wait for a send buffer of 105 kB all the time, where a queue stands so
/// long and datagrams show the line to carry as much.
fn just_full(queue_s: f64) -> Severity {
    let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
    run.measurements.clear();
    let mut load = carrying(Direction::Up, 39.1e6);
    let mut rtt = Series::new(Unit::Seconds);
    (0..15).for_each(|step| rtt.push(f64::from(step), Some(0.061 + queue_s)));
    load.series.insert("srtt_s".to_owned(), rtt);
    if let Outcome::Throughput(result) = &mut load.outcome {
        let streams = (0..4)
            .map(|id| json!({ "id": id, "bytes": 0, "bps": 0.0, "retransmits": 0, "error": null }));
        result.streams = streams
            .map(|stream| serde_json::from_value(stream).unwrap())
            .collect();
        result.tcp.min_rtt_s = Some(0.061);
        result.tcp.send_buffer_bytes = Some(104_750);
        result.tcp.limited.sndbuf_ratio = 0.98;
        result.tcp.limited.network_ratio = 0.02;
    }
    run.measurements.push(load);
    run.local.host.tcp_wmem_bytes = Some([4096, 16_384, 104_750]);
    // 39.7 of 54.7 Mbit/s.
    made(
        &mut run,
        stream(Experiment::Overload, 4888.0, 1400),
        9776,
        0.274,
        0.0001,
    );
    let found = examine(&Case::of(&run), Side::Sender);
    found.first().unwrap().severity
}

#[test]
fn connections_that_just_fill_a_line_by_chance_are_a_warning() {
    assert_eq!(just_full(0.0), Severity::Warning);
    assert_eq!(just_full(0.03), Severity::Info, "a queue stands");
}

//! `plumb load --rpm` on a line that bloats one way and manages its queue the other way.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::network::Network;
use jiff::Timestamp;
use plumb_model::results::responsiveness::{ResponsivenessResult, RpmConfidence};
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Run;
use serde_json::Value;

/// 10 Mbit/s both ways, 20 ms there and back: downwards with one queue of 400 ms for everybody,
/// upwards with FQ-CoDel. The ends' windows fill the line but not that queue: nothing is lost, so that
/// answers in band wait for nothing but the queue.
fn line() -> Network {
    let way = |queue: &str| {
        format!(
            r#"{{ type = "shaper", rate = "10mbit", queue = {queue} }}, {{ type = "delay", delay = "10ms" }}"#
        )
    };
    let (up, down) = (r#""fq_codel""#, r#"{ type = "fifo", limit = "400ms" }"#);
    let mut line = Network::served_line(&way(up), &way(down));
    for end in ["client", "server"] {
        line.sysctl(end, "net.ipv4.tcp_rmem", "4096 131072 131072");
    }
    line
}

/// The result of a direction, and when its measurement ended after the Run began.
fn result(run: &Run, direction: Direction) -> (f64, &ResponsivenessResult) {
    let mut results = run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Responsiveness(result) => Some((m.at_s + m.duration_s, &**result)),
        _ => None,
    });
    results
        .find(|(_, result)| result.direction == direction)
        .expect("a result")
}

/// The mean over time of how long packets took through the link in that direction, between two instants of the
/// laboratory's clock.
fn mean_transit_s(log: &[Value], way: &str, (from_s, to_s): (f64, f64)) -> f64 {
    let mut passages: Vec<(f64, f64)> = log
        .iter()
        .filter(|line| line["way"] == way)
        .filter_map(|line| {
            let (entered, left) = (line["entered_s"].as_f64()?, line["left_s"].as_f64()?);
            (from_s..to_s)
                .contains(&entered)
                .then_some((entered, left - entered))
        })
        .collect();
    passages.sort_by(|a, b| a.0.total_cmp(&b.0));
    let weighted: f64 = passages
        .windows(2)
        .map(|w| w[0].1 * (w[1].0 - w[0].0))
        .sum();
    let (first, last) = (passages.first().unwrap(), passages.last().unwrap());
    weighted / (last.0 - first.0)
}

#[test]
fn round_trips_a_minute_are_those_of_the_link() {
    let (run, lines) = line().logged(&["load", "server", "--rpm", "--streams", "4"]);
    let (end_s, down) = result(&run, Direction::Down);
    // Both clocks are the machine's.
    let zero_ns = lines[0]["started_unix_ns"].as_u64().unwrap();
    let started: Timestamp = run.started.parse().unwrap();
    let started_s = (started.as_nanosecond() - i128::from(zero_ns)) as f64 / 1e9;
    // The probes of the last four intervals count.
    let ended_s = started_s + end_s;
    let window = (ended_s - 4.0 * down.interval_s, ended_s);
    let rtt_s = mean_transit_s(&lines, "down", window) + mean_transit_s(&lines, "up", window);
    let truth = 60.0 / rtt_s;
    let rpm = down.rpm.expect("a number");
    assert!(
        (0.9 * truth..1.1 * truth).contains(&rpm),
        "{rpm} where the link had {truth}: {down:?}"
    );
    // Four windows of 65 kB at 10 Mbit/s.
    assert!(rtt_s > 0.15, "{rtt_s}");
    assert_eq!(down.rpm_method, "native-tls-records");
    assert_eq!(down.goodput_confidence, RpmConfidence::High);
    assert_eq!((down.connections, down.probes.failed), (4, 0));

    // A new connection meets no queue upwards: 20 ms, and what computing a handshake takes.
    let (_, up) = result(&run, Direction::Up);
    let connect_s = up.trimmed_mean_s.connect.unwrap();
    assert!((0.020..0.040).contains(&connect_s), "{up:?}");
    assert!(up.rpm.unwrap() > 2.0 * rpm, "{rpm} and {up:?}");

    let loaded = run.measurements.iter().find_map(|m| match &m.outcome {
        Outcome::LoadedLatency(l) if l.direction == Direction::Down => Some(l),
        _ => None,
    });
    assert_eq!(loaded.unwrap().rpm, Some(rpm));
}

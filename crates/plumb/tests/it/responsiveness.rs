//! `plumb load --rpm` on a line that bloats one way and manages its queue the other way.

use std::collections::BTreeMap;

use crate::common::network::Network;
use crate::common::side_by_side;
use jiff::Timestamp;
use plumb_model::results::responsiveness::{ResponsivenessResult, RpmConfidence};
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Run;
use serde_json::Value;

/// 10 Mbit/s both ways, 20 ms there and back: downwards with one queue of 400 ms for everybody,
/// upwards with FQ-CoDel. The ends' windows fill the line but not that queue: nothing is lost, so that
/// answers in band wait for nothing but the queue.
fn bloated() -> Network {
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

/// 150 ms there and back, beside which computing a handshake is little: 20 Mbit/s downwards, whose queue the windows
/// fill by 100 ms, and 6 Mbit/s upwards that lose one segment with payload in 300 beyond their queue, and are full all
/// the same.
fn lossy() -> Network {
    let delay = r#"{ type = "delay", delay = "75ms" }"#;
    let up = r#"{ type = "shaper", rate = "6mbit", queue = { type = "fifo", limit = "400ms" } },
        { type = "periodic_loss", every = 300, match = "tcp_data" }"#;
    let down =
        r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "300ms" } }"#;
    let mut line = Network::served_line(&format!("{up}, {delay}"), &format!("{down}, {delay}"));
    for end in ["client", "server"] {
        line.sysctl(end, "net.ipv4.tcp_rmem", "4096 262144 262144");
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

fn measured(line: &Network) -> (Run, Vec<Value>) {
    line.logged(&[
        "load",
        "server",
        "--rpm",
        "--streams",
        "4",
        "--protocol",
        "native",
    ])
}

/// The same with the responder's networkQuality, downwards.
fn measured_over_http2(line: &Network) -> (Run, Vec<Value>) {
    let options = ["--down", "--protocol", "nq", "--insecure"];
    line.logged(&[&["load", "server", "--rpm", "--streams", "4"], &options[..]].concat())
}

/// When the probes of a direction were under way that counted, by the laboratory's clock: the last four
/// intervals.
fn window(run: &Run, log: &[Value], direction: Direction) -> (f64, f64) {
    let (end_s, result) = result(run, direction);
    // Both clocks are the machine's.
    let zero_ns = log[0]["started_unix_ns"].as_u64().unwrap();
    let started: Timestamp = run.started.parse().unwrap();
    let started_s = (started.as_nanosecond() - i128::from(zero_ns)) as f64 / 1e9;
    let ended_s = started_s + end_s;
    (ended_s - 4.0 * result.interval_s, ended_s)
}

fn within_a_tenth(rpm: f64, truth: f64, result: &ResponsivenessResult) {
    assert!(
        (0.9 * truth..1.1 * truth).contains(&rpm),
        "{rpm} where the link had {truth}: {result:?}"
    );
}

/// What each of the connections that carry the load sent meanwhile: when, in seconds, and how much, in bytes.
fn loaded(log: &[Value], way: &str, window: (f64, f64)) -> Vec<Vec<(f64, u64)>> {
    let mut connections: BTreeMap<(u64, u64), Vec<(f64, u64)>> = BTreeMap::new();
    for line in log.iter().filter(|line| line["way"] == way) {
        let port = |end: &str| line[format!("{end}_port")].as_u64();
        let Some((ports, entered_s)) = port("source")
            .zip(port("destination"))
            .zip(line["entered_s"].as_f64())
        else {
            continue;
        };
        if (window.0..window.1).contains(&entered_s) {
            let bytes = line["bytes"].as_u64().unwrap();
            connections
                .entry(ports)
                .or_default()
                .push((entered_s, bytes));
        }
    }
    // New connections carry some kB.
    let mut loaded: Vec<_> = connections.into_values().collect();
    loaded.retain(|sent| sent.iter().map(|(_, bytes)| bytes).sum::<u64>() > 100_000);
    assert_eq!(loaded.len(), 4);
    loaded
}

/// The mean over connections.
fn mean(connections: &[Vec<(f64, u64)>], of: impl Fn(&[(f64, u64)]) -> f64) -> f64 {
    let each = connections.iter().map(|sent| of(sent));
    each.sum::<f64>() / connections.len() as f64
}

/// From the first packet to the last.
fn lasted_s(sent: &[(f64, u64)]) -> f64 {
    sent[sent.len() - 1].0 - sent[0].0
}

/// How long what is to leave on a connection at any instant waits until the connection sends again: the mean over time.
/// Connections send in clumps, as their windows open.
fn wait_to_send_s(sent: &[(f64, u64)]) -> f64 {
    let gaps = sent.windows(2).map(|w| w[1].0 - w[0].0);
    gaps.map(|gap| gap * gap / 2.0).sum::<f64>() / lasted_s(sent)
}

/// How long a connection takes to send so much.
fn to_send_s(sent: &[(f64, u64)], bytes: f64) -> f64 {
    let all: u64 = sent.iter().map(|(_, bytes)| bytes).sum();
    bytes / (all as f64 / lasted_s(sent))
}

/// The mean without its slowest twentieth of what asking takes on a connection whose round trips are
/// `rtt_s`, and that loses `losses_per_s` segments: all that was sent within a round trip after
/// one waits until it has come again, which takes another round trip from when it was lost.
fn behind_losses_s(rtt_s: f64, losses_per_s: f64) -> f64 {
    const PARTS: u32 = 1000;
    let waiting = (losses_per_s * rtt_s).clamp(f64::MIN_POSITIVE, 1.0);
    let kept = PARTS * 95 / 100;
    let took = (0..kept).map(|part| {
        let beyond = f64::from(part) / f64::from(PARTS) - (1.0 - waiting);
        rtt_s + (beyond / waiting).max(0.0) * rtt_s
    });
    took.sum::<f64>() / f64::from(kept)
}

/// What a direction must come to, computed from what the link did: new connections take its round trips, and
/// loaded ones wait besides to send, and for what was lost.
fn truth(run: &Run, log: &[Value], direction: Direction) -> (f64, f64) {
    let window = window(run, log, direction);
    let way = direction.name();
    let rtt_s = mean_transit_s(log, "down", window) + mean_transit_s(log, "up", window);
    let lost = log.iter().filter(|line| {
        let entered_s = line["entered_s"].as_f64();
        line["way"] == way
            && line["cell"] == "periodic_loss"
            && entered_s.is_some_and(|t| (window.0..window.1).contains(&t))
    });
    let each_s = lost.count() as f64 / (window.1 - window.0) / 4.0;
    // New connections lose as many, which is among the slowest twentieth.
    let wait_s = mean(&loaded(log, way, window), wait_to_send_s);
    let in_band_s = behind_losses_s(rtt_s, each_s) + wait_s;
    ((60.0 / rtt_s + 60.0 / in_band_s) / 2.0, rtt_s)
}

#[test]
fn round_trips_a_minute_are_those_of_the_link() {
    // Each has some Mbit/s to carry, and 30 s to wait.
    side_by_side(&[&|| on_a_bloated_line(&measured(&bloated())), &|| {
        at_another_rate_and_with_losses(&measured(&lossy()))
    }]);
}

#[test]
fn round_trips_a_minute_over_http2_are_those_of_the_link() {
    let (run, log) = measured_over_http2(&bloated());
    let (_, down) = result(&run, Direction::Down);
    let (_, rtt_s) = truth(&run, &log, Direction::Down);
    assert_eq!(down.rpm_method, "ietf");
    assert!(rtt_s > 0.15, "{rtt_s}");
    // New connections wait in the link's queue, and in no buffer of the server.
    within_a_tenth(down.foreign_rpm.expect("a number"), 60.0 / rtt_s, down);
    // On a loaded one an answer waits besides to be sent, and behind what a web server has before it, in records of 16 KiB: two
    // in HTTP/2, of which one is being written and one has the next turn, one in TLS, and two in the socket, which takes
    // another while less than its limit waits. Connections share a queue unevenly.
    let connections = loaded(&log, "down", window(&run, &log, Direction::Down));
    let records_s = mean(&connections, |sent| to_send_s(sent, 5.0 * 16384.0));
    let wait_s = mean(&connections, wait_to_send_s);
    let most_s = rtt_s + wait_s + records_s;
    let in_band_s = down.trimmed_mean_s.in_band.unwrap();
    assert!(
        (rtt_s..1.05 * most_s).contains(&in_band_s),
        "{in_band_s} of {rtt_s} to {wait_s} and {records_s} more"
    );
    let halfway = (down.foreign_rpm.unwrap() + down.in_band_rpm.unwrap()) / 2.0;
    assert!((down.rpm.unwrap() / halfway - 1.0).abs() < 1e-9);
    assert_eq!((down.connections, down.probes.failed), (4, 0));
}

fn on_a_bloated_line((run, log): &(Run, Vec<Value>)) {
    let (_, down) = result(run, Direction::Down);
    let (expected, rtt_s) = truth(run, log, Direction::Down);
    let rpm = down.rpm.expect("a number");
    within_a_tenth(rpm, expected, down);
    // Four windows of 65 kB at 10 Mbit/s.
    assert!(rtt_s > 0.15, "{rtt_s}");
    assert_eq!(down.rpm_method, "native-tls-records");
    assert_eq!(down.goodput_confidence, RpmConfidence::High);
    assert_eq!((down.connections, down.probes.failed), (4, 0));
    let is_high = down.confidence == RpmConfidence::High;
    assert_eq!(down.spread_ratio.unwrap() < 0.05, is_high, "{down:?}");

    // A new connection meets no queue upwards: 20 ms, and what computing a handshake takes.
    let (_, up) = result(run, Direction::Up);
    let connect_s = up.trimmed_mean_s.connect.unwrap();
    assert!((0.020..0.040).contains(&connect_s), "{up:?}");
    assert!(up.rpm.unwrap() > 2.0 * rpm, "{rpm} and {up:?}");

    let loaded = run.measurements.iter().find_map(|m| match &m.outcome {
        Outcome::LoadedLatency(l) if l.direction == Direction::Down => Some(l),
        _ => None,
    });
    assert_eq!(loaded.unwrap().rpm, Some(rpm));
}

fn at_another_rate_and_with_losses((run, log): &(Run, Vec<Value>)) {
    let (_, down) = result(run, Direction::Down);
    let (expected, rtt_s) = truth(run, log, Direction::Down);
    within_a_tenth(down.rpm.expect("a number"), expected, down);
    // Four windows of about 170 kB at 20 Mbit/s.
    assert!((0.2..0.35).contains(&rtt_s), "{rtt_s}");

    let (_, up) = result(run, Direction::Up);
    let (expected, _) = truth(run, log, Direction::Up);
    within_a_tenth(up.rpm.expect("a number"), expected, up);
    let lost = log.iter().filter(|line| line["cell"] == "periodic_loss");
    assert!(lost.count() > 10);
}

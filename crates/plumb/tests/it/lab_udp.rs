//! `plumb rate --udp` against emulated links that say what became of each packet.

use std::collections::BTreeMap;

use crate::common::network::Network;
use crate::common::{logged_by, measured_in, words};
use plumb_model::results::udp::UdpResult;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::LabClock;
use plumb_model::run::{Measurement, Run};
use serde_json::Value;

/// Bytes of the IP packets that carry the payload of these tests.
const PACKET_BYTES: u64 = 1028;

/// `plumb rate server --udp` with these options.
fn rate<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["rate", "server", "--udp", "--size", "1000"], options].concat()
}

/// No line of the log is missing.
fn complete((run, log): (Run, Vec<Value>)) -> (Run, Vec<Value>) {
    assert!(log.iter().all(|line| line.get("missed").is_none()));
    (run, log)
}

fn stream(run: &Run, direction: Direction) -> (&Measurement, &UdpResult) {
    let mut streams = run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Udp(udp) if udp.direction == direction => Some((m, udp.as_ref())),
        _ => None,
    });
    let (measurement, udp) = streams.next().unwrap();
    assert_eq!((streams.count(), &udp.error), (0, &None));
    (measurement, udp)
}

fn result(run: &Run, direction: Direction) -> &UdpResult {
    stream(run, direction).1
}

/// What became of the packets of one direction.
#[derive(Debug, PartialEq)]
struct Fate {
    sent: u64,
    lost: u64,
    duplicates: u64,
    reordered: u64,
    longest_extent: u64,
    loss_periods: u64,
}

/// The truth: what the link did with each packet, in the order in which they left it.
fn truth(log: &[Value], way: &str) -> Fate {
    let ours = |line: &&Value| line["way"] == way && line["bytes"] == PACKET_BYTES;
    // Numbers of the link, which counts other packets too, as those of the stream.
    let mut entered: Vec<u64> = log.iter().filter(ours).map(number).collect();
    entered.sort_unstable();
    entered.dedup();
    let sequence: BTreeMap<u64, u64> = entered.iter().copied().zip(0..).collect();
    let mut left: Vec<(f64, u64)> = log
        .iter()
        .filter(ours)
        .filter_map(|line| Some((line["left_s"].as_f64()?, sequence[&number(line)])))
        .collect();
    left.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen: Vec<u64> = Vec::new();
    let mut came = vec![false; sequence.len()];
    let (mut duplicates, mut reordered, mut longest_extent, mut highest) = (0, 0, 0, None);
    for (_, packet) in left {
        if std::mem::replace(&mut came[packet as usize], true) {
            duplicates += 1;
            continue;
        }
        if highest.is_some_and(|highest| packet < highest) {
            reordered += 1;
            let overtaken_at = seen.iter().position(|s| *s > packet).unwrap();
            longest_extent = longest_extent.max(seen.len() - overtaken_at);
        }
        highest = highest.max(Some(packet));
        seen.push(packet);
    }
    let lost = |packet: usize| !came[packet];
    Fate {
        sent: sequence.len() as u64,
        lost: (0..came.len()).filter(|p| lost(*p)).count() as u64,
        duplicates,
        reordered,
        longest_extent: longest_extent as u64,
        loss_periods: (0..came.len())
            .filter(|p| lost(*p) && (*p == 0 || !lost(p - 1)))
            .count() as u64,
    }
}

fn number(line: &Value) -> u64 {
    line["packet"].as_u64().unwrap()
}

fn measured(udp: &UdpResult) -> Fate {
    let receiver = udp.receiver.as_ref().unwrap();
    assert_eq!((receiver.too_late, receiver.dropped_here), (0, 0));
    Fate {
        sent: udp.sender.as_ref().unwrap().sent,
        lost: receiver.lost,
        duplicates: receiver.duplicates,
        reordered: receiver.reordering.reordered,
        longest_extent: receiver.reordering.extent.map_or(0, |d| d.max as u64),
        loss_periods: receiver.losses.periods,
    }
}

#[test]
fn loss_duplicates_and_reordering_are_exact_by_packet() {
    let line = Network::served_line(
        r#"{ type = "gilbert_elliott", p = "1%", r = "30%" }, { type = "delay", delay = "10ms" }"#,
        r#"
    { type = "loss", ratio = "2%" },
    { type = "reorder", ratio = "10%", extent = 3 },
    { type = "duplicate", ratio = "5%" },
    { type = "delay", delay = "10ms" },
"#,
    );
    let command = rate(&["--both", "--rate", "8mbit", "--duration", "3s"]);
    let (run, log) = complete(line.logged(&command));
    for (direction, way) in [(Direction::Up, "up"), (Direction::Down, "down")] {
        let (truth, measured) = (truth(&log, way), measured(result(&run, direction)));
        assert_eq!(measured, truth, "{way}");
        // The link did what it is there for.
        assert!(truth.sent > 1000 && truth.lost > 10, "{truth:?}");
        let more = (truth.duplicates > 20, truth.reordered > 50);
        assert_eq!(more, (way == "down", way == "down"), "{truth:?}");
    }
}

#[test]
fn one_way_delay_is_within_its_uncertainty_where_ways_differ() {
    let command = rate(&["--rate", "1mbit", "--duration", "2s"]);
    let (run, log) = complete(logged_by(LabClock::Virtual, "asymmetric-route", &command));
    // What goes up takes 5 ms, and what comes down 25 ms over another link; both ends have one
    // clock here, which is how the truth is known.
    for (direction, way) in [(Direction::Up, "up"), (Direction::Down, "down")] {
        let crossed: Vec<f64> = log
            .iter()
            .filter(|line| line["way"] == way && line["bytes"] == PACKET_BYTES)
            .filter_map(|line| Some(line["left_s"].as_f64()? - line["entered_s"].as_f64()?))
            .collect();
        // The least of each, to which a busy machine adds nothing.
        let truth_s = crossed.iter().copied().fold(f64::INFINITY, f64::min);
        let delay = result(&run, direction).one_way_delay.unwrap();
        let off_s = (delay.delay_s.min - truth_s).abs();
        assert!(
            off_s <= delay.uncertainty_s,
            "{way}: {truth_s} s, measured {delay:?}"
        );
        // Half of 30 ms, and a few system calls.
        assert!((0.015..0.0152).contains(&delay.uncertainty_s), "{delay:?}");
    }
}

#[test]
fn a_slow_line_shows_its_rate_and_not_what_was_asked() {
    let queue =
        r#"{ type = "shaper", rate = "5mbit", queue = { type = "fifo", limit = "100ms" } }"#;
    let command = rate(&["--rate", "8mbit", "--duration", "3s"]);
    let (run, log) = complete(Network::served_line(queue, queue).logged(&command));
    for (direction, way) in [(Direction::Up, "up"), (Direction::Down, "down")] {
        let udp = result(&run, direction);
        let goodput = 5e6 * 1000.0 / PACKET_BYTES as f64;
        let off = udp.bps.unwrap() / goodput - 1.0;
        assert!(off.abs() < 0.02, "{way}: {:?}", udp.bps);
        assert_eq!(measured(udp), truth(&log, way), "{way}");
        let pdv = udp.receiver.as_ref().unwrap().pdv_s.unwrap();
        // The queue: nothing, and then all of it.
        let most = 0.103;
        assert!((0.090..most).contains(&pdv.max), "{pdv:?}");
    }
}

/// The line is dead for half a second of every two, and then carries half of what is sent.
#[test]
fn losses_and_delays_are_told_when_they_are() {
    let line = Network::served_line(
        r#"{ type = "outage", at = "0s", lasts = "500ms", every = "2s" }, { type = "delay", delay = "10ms" }"#,
        r#"{ type = "shaper", rate = "1mbit", queue = { type = "fifo", limit = "10s" } }"#,
    );
    let command = rate(&["--both", "--rate", "1600kbit", "--duration", "4s"]);
    let (run, log) = complete(line.logged(&command));

    // 200 packets a second: 20 in each tenth, also while nothing comes.
    let (up, result) = stream(&run, Direction::Up);
    let lost: Vec<f64> = up.series["loss_ratio"].points().map(|(_, v)| v).collect();
    let all_lost = truth(&log, "up").lost as f64;
    assert_eq!(result.receiver.as_ref().unwrap().lost as f64, all_lost);
    let told = lost.iter().sum::<f64>() * 20.0;
    assert!((told / all_lost - 1.0).abs() < 0.01, "{told} of {all_lost}");
    let dead = lost.iter().filter(|ratio| **ratio == 1.0).count();
    // Of 500 ms at least three tenths whole, twice, and never more than five.
    assert!((6..=10).contains(&dead), "{lost:?}");
    let silent = up.series["bps"].values.iter().filter(|v| **v == Some(0.0));
    assert_eq!(silent.count(), dead);

    // Of 1.64 Mbit/s with headers one passes: what comes a second later has waited 0.39 s longer.
    let (down, result) = stream(&run, Direction::Down);
    let delays: Vec<(f64, f64)> = down.series["pdv_s"].points().collect();
    let at = |t_s: f64| delays.iter().find(|(t, _)| *t >= t_s).unwrap().1;
    let grown = at(3.0) - at(1.0);
    assert!((0.75..0.85).contains(&grown), "{grown}");
    let greatest = down.series["pdv_max_s"].points().map(|(_, v)| v);
    let most = result.receiver.as_ref().unwrap().pdv_s.unwrap().max;
    assert!((greatest.fold(0.0, f64::max) - most).abs() < 1e-6);
    assert!(down.series["loss_ratio"].points().all(|(_, v)| v == 0.0));
}

#[test]
fn what_may_not_be_cut_and_does_not_fit_is_not_sent() {
    // The way up takes 1400 bytes, and says so to who sends more.
    let command = "rate server --udp --size 1400 --up --rate 1mbit --duration 1s --dont-fragment";
    let run = measured_in("mtu-with-icmp", &words(command)).run;
    let udp = run.measurements.iter().find_map(|m| match &m.outcome {
        Outcome::Udp(udp) => Some(udp),
        _ => None,
    });
    let udp = udp.unwrap();
    // Some leave before this host hears of it, and none arrives.
    let sender = udp.sender.as_ref().unwrap();
    assert!(sender.sent < 20, "{sender:?}");
    assert_eq!(udp.receiver.as_ref().unwrap().received, 0);
    let why = udp.error.as_ref().unwrap();
    assert!(
        why.contains("the largest --size that fits is 1372"),
        "{why}"
    );
}

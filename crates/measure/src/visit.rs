//! The Run of a browser's visit to the page of a responder: what the browser measured, and what this host's TCP saw meanwhile.
//!
//! The browser is the near end, and this host the far one, as in every other Run.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use plumb_host::facts::facts;
use plumb_load::logs::DirectionLogs;
use plumb_load::summary::{DirectionOutcome, summarise};
use plumb_load::web::visited::{Connection, Echoes, Loaded, Seen};
use plumb_model::context::{Context, Load, Phase};
use plumb_model::distribution::Distribution;
use plumb_model::protocol::Protocol;
use plumb_model::results::{CpuUse, Direction, Outcome, ramp_end_s};
use plumb_model::run::{Ended, HostFacts, Run};
use plumb_model::series::{Series, Unit};
use plumb_model::units::human_seconds;
use plumb_wire::native::control::flow::{Flow, TcpFlow};
use plumb_wire::native::control::report::{Count, ReceiverLog, SenderLog};
use plumb_wire::web::visit::{Part, Visit};

use crate::phase::{Plain, asked, plain};
use crate::probes::counted;
use crate::record::{Judgement, Measured, Record};

/// What must be known of every such Run.
const LIMITS: &str = "A browser measured this, from the near end. Its round trips went over one TCP connection: a lost packet shows as a \
     late one, and the losses given are segments that this server's TCP retransmitted. Rates count framing and encryption, 0.5 % at most. \
     Other programs of the device, and its Wi-Fi, are part of what was measured. What else `plumb check` would find is not known.";

/// A step of the browser's clock above which its round trips are said to be uncertain, in seconds.
const COARSE_S: f64 = 0.5e-3;

/// What a browser may say to have had above what this host's TCP knew to be acknowledged when it last looked: what passes in an
/// eighth of the time, and in bytes what a short test may have beside that. The looks are 100 ms apart.
const UNACKNOWLEDGED_PART: u64 = 8;
const UNACKNOWLEDGED_BYTES: u64 = 1 << 20;

/// The Run of a visit from that address, judged. `command` is the command of this responder.
pub fn run(command: Vec<String>, visitor: IpAddr, visit: &Visit, seen: &Seen) -> Run {
    let took_s = visit.took_s();
    let browser = HostFacts {
        kernel: format!("browser at {visitor}: {}", visit.agent),
        ..HostFacts::default()
    };
    let here = facts();
    let mut record = Record::begin(command, &visit.server, None).of_another(
        Duration::try_from_secs_f64(took_s).unwrap_or_default(),
        browser,
    );
    record.note(LIMITS);
    if visit.resolution_s > COARSE_S {
        record.note(format!(
            "The browser's clock goes in steps of {}: round trips are uncertain by as much.",
            human_seconds(visit.resolution_s)
        ));
    }
    let Some(idle) = Distribution::of(visit.idle.rtt_s.iter().copied()) else {
        record.note("No echo came back on the idle line: latency was not measured.");
        return record.finish(Judgement::Whole);
    };
    record.add_at(visit.idle.began_s, ping(visitor, &visit.idle, idle, seen));
    let mut path_mtu_bytes = None;
    for (direction, part, loaded) in [
        (Direction::Down, &visit.down, &seen.down),
        (Direction::Up, &visit.up, &seen.up),
    ] {
        let Some(part) = part.as_ref().filter(|_| !loaded.connections.is_empty()) else {
            continue;
        };
        let mtus = loaded
            .connections
            .values()
            .map(|connection| connection.path_mtu_bytes);
        path_mtu_bytes = path_mtu_bytes.max(mtus.max());
        let (carried, notes) = throughput(direction, part, loaded);
        notes.into_iter().for_each(|note| record.note(note));
        let measured = |outcome, series| Measured {
            ended: Ended::Complete,
            ..Measured::of(0, part.duration_s, outcome)
                .within(context(direction, part, loaded))
                .with_series(series)
        };
        if let Some(outcome) = loaded_latency(direction, part, idle, &carried, seen) {
            let series = BTreeMap::from([("rtt".to_owned(), round_trips(part))]);
            record.add_at(part.began_s, measured(outcome, series));
        }
        record.add_at(
            part.began_s,
            measured(carried.result.into(), carried.series),
        );
    }
    if let Some(bytes) = path_mtu_bytes.filter(|bytes| *bytes > 0) {
        record.note(format!(
            "This server sends the browser packets of at most {bytes} bytes: its TCP takes that for the largest that the path carries."
        ));
    }
    record.far_host(here);
    record.finish(Judgement::Whole)
}

fn context(direction: Direction, part: &Part, loaded: &Loaded) -> Context {
    let streams = loaded.connections.len() as u32;
    Context {
        phase: Some(Phase::from(direction)),
        load: Some(Load {
            streams,
            duration_s: part.duration_s,
            flows: vec![asked(streams, &Flow::Tcp(TcpFlow::default()))],
            ..Load::default()
        }),
        ..Context::default()
    }
}

/// Echoes as this host's TCP sent them in the part that begins with that letter.
fn echoes(seen: &Seen, part: u8) -> Echoes {
    seen.echoes.get(&part).copied().unwrap_or_default()
}

/// Share of the segments with echoes that were lost on their way to the browser.
fn loss_ratio(echoes: Echoes) -> f64 {
    let sent = echoes.sent + echoes.lost;
    match sent {
        0 => 0.0,
        sent => echoes.lost as f64 / sent as f64,
    }
}

fn ping(visitor: IpAddr, part: &Part, rtt_s: Distribution, seen: &Seen) -> Measured {
    let echoes = echoes(seen, b'i');
    let received = part.rtt_s.len() as u64;
    let counts = [received + echoes.lost, received];
    let outcome = counted(Protocol::WebSocket, visitor, counts, Some(rtt_s));
    let series = BTreeMap::from([("rtt".to_owned(), round_trips(part))]);
    Measured::of(0, part.duration_s, outcome)
        .within(Context::phase(Phase::Idle))
        .with_series(series)
}

fn round_trips(part: &Part) -> Series {
    let mut trips: Vec<(f64, f64)> = part
        .sent_s
        .iter()
        .copied()
        .zip(part.rtt_s.iter().copied())
        .collect();
    trips.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut series = Series::new(Unit::Seconds);
    for (t_s, rtt_s) in trips {
        series.push(t_s, Some(rtt_s));
    }
    series
}

/// What was carried, and what must be known of it.
fn throughput(
    direction: Direction,
    part: &Part,
    loaded: &Loaded,
) -> (DirectionOutcome, Vec<String>) {
    let connections = || loaded.connections.values();
    let (mut senders, mut receivers, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    match direction {
        Direction::Up | Direction::Both => {
            receivers.extend(connections().map(|connection| connection.receiver.clone()));
        }
        Direction::Down => {
            for connection in connections() {
                let came = came(connection, part);
                let acked = acknowledged(&connection.sender);
                let counted = came.counts.last().map_or(0, |count| count.bytes);
                let most =
                    (acked + acked / UNACKNOWLEDGED_PART).saturating_add(UNACKNOWLEDGED_BYTES);
                match counted > most {
                    true => notes.push(
                        "What the browser says that it received cannot be: it is more than was sent. This server's own count stands."
                            .to_owned(),
                    ),
                    false => receivers.push(came),
                }
                senders.push(connection.sender.clone());
            }
        }
    }
    let streams = loaded.connections.len() as u32;
    let all = 0..streams;
    let logs = DirectionLogs {
        direction,
        senders: &senders,
        receivers: &receivers,
        groups: std::slice::from_ref(&all),
        duration_s: part.duration_s,
        receiver_shift_s: 0.0,
        all_arrived: false,
        cpu: CpuUse::default(),
        tls: None,
    };
    let mut outcome = summarise(&logs);
    // What a lost segment held up in this host's TCP is read later: in the sums of a whole phase that does not show.
    if senders.is_empty() {
        outcome.result.steady_bps = None;
    }
    // HTTP/2 has all streams on one connection.
    if streams < 2 {
        outcome.result.sharing = None;
    }
    (outcome, notes)
}

/// What the browser counted of the streams of a connection.
fn came(connection: &Connection, part: &Part) -> ReceiverLog {
    let streams = || {
        let numbers = connection.streams.iter();
        numbers.filter_map(|number| part.streams.get(*number as usize))
    };
    let count = |(at, t_s): (usize, &f64)| Count {
        t_s: *t_s,
        bytes: streams()
            .filter_map(|bytes| bytes.get(at))
            .fold(0, |all, bytes| all.saturating_add(*bytes)),
        ..Count::default()
    };
    ReceiverLog {
        tail: connection.receiver.tail.clone(),
        counts: part.counted_s.iter().enumerate().map(count).collect(),
    }
}

/// Payload that was acknowledged on a connection while it was looked at.
fn acknowledged(sender: &SenderLog) -> u64 {
    match (sender.samples.first(), sender.samples.last()) {
        (Some(first), Some(last)) => last.bytes_acked.saturating_sub(first.bytes_acked),
        _ => 0,
    }
}

/// Round trips beside the load, where some came back after slow start.
fn loaded_latency(
    direction: Direction,
    part: &Part,
    idle: Distribution,
    carried: &DirectionOutcome,
    seen: &Seen,
) -> Option<Outcome> {
    let from_s = ramp_end_s(idle.min, part.duration_s);
    let trips = part.sent_s.iter().zip(&part.rtt_s);
    let loaded = trips.filter(|(sent, _)| **sent >= from_s);
    let bps = Some(carried.result.bps);
    let (letter, carried_bps) = match direction {
        Direction::Down => (b'd', [bps, None]),
        Direction::Up | Direction::Both => (b'u', [None, bps]),
    };
    let mut result = plain(Plain {
        direction,
        protocol: Protocol::WebSocket,
        idle,
        rtt: Distribution::of(loaded.map(|(_, rtt)| *rtt))?,
        loss_ratio: loss_ratio(echoes(seen, letter)),
        carried_bps,
    });
    if carried.result.bytes == 0 {
        result.grade = None;
    }
    Some(result.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::finding::Clearance;
    use plumb_wire::native::control::report::TcpSample;
    use plumb_wire::web::visit;

    /// Echoes every 50 ms, each of which took what `rtt` says.
    fn echoed(began_s: f64, duration_s: f64, rtt: impl Fn(f64) -> f64) -> Part {
        let sent_s: Vec<f64> = (0..(duration_s * 20.0) as u64)
            .map(|n| n as f64 * 0.05)
            .collect();
        Part {
            began_s,
            duration_s,
            rtt_s: sent_s.iter().map(|t| rtt(*t)).collect(),
            sent_s,
            ..Part::default()
        }
    }

    /// So many bytes a second, every 100 ms.
    fn counts(bytes_per_s: f64, seconds: f64) -> Vec<Count> {
        let at = |n: u64| n as f64 * 0.1;
        let count = |n| Count {
            t_s: at(n),
            bytes: (at(n) * bytes_per_s) as u64,
            ..Count::default()
        };
        (0..=(seconds * 10.0) as u64).map(count).collect()
    }

    /// A visit over 100 Mbit/s down, and 20 up with a queue of 600 ms.
    fn bloated() -> (Visit, Seen) {
        let json = r#"{"id":"0123456789abcdef","server":"s:4043","agent":"B","resolution_s":1e-3,
            "idle":{"began_s":0,"duration_s":0,"sent_s":[],"rtt_s":[]},"down":null,"up":null}"#;
        let mut visit = visit::parse(json.as_bytes()).unwrap();
        visit.idle = echoed(0.0, 5.0, |t| 0.020 + 0.001 * (t * 7.0).sin().abs());
        let mut down = echoed(5.0, 15.0, |t| 0.025 + 0.001 * (t * 7.0).sin().abs());
        let came = counts(96.5e6 / 8.0, 15.0);
        down.counted_s = came.iter().map(|count| count.t_s).collect();
        down.streams = vec![came.iter().map(|count| count.bytes).collect()];
        visit.down = Some(down);
        visit.up = Some(echoed(21.0, 15.0, |t| (0.020 + t / 3.0).min(0.6)));

        let mut seen = Seen::default();
        let mut connection = Connection::default();
        connection.streams.extend([0, 1]);
        connection.sender.tail.cc = "cubic".to_owned();
        connection.sender.samples = counts(96.5e6 / 8.0, 15.0)
            .iter()
            .map(|count| TcpSample {
                t_s: count.t_s,
                bytes_acked: count.bytes,
                ..TcpSample::default()
            })
            .collect();
        seen.down.connections.insert(50_000, connection);
        let mut connection = Connection::default();
        connection.receiver.counts = counts(19.3e6 / 8.0, 15.0);
        seen.up.connections.insert(50_001, connection);
        (visit, seen)
    }

    fn judged(visit: &Visit, seen: &Seen) -> Run {
        run(
            vec!["serve".to_owned()],
            IpAddr::from([192, 0, 2, 1]),
            visit,
            seen,
        )
    }

    fn bps(run: &Run, direction: Direction) -> f64 {
        let mut carried = run
            .measurements
            .iter()
            .filter_map(|m| m.outcome.throughput());
        carried
            .find(|result| result.direction == direction)
            .unwrap()
            .bps
    }

    #[test]
    fn a_queue_is_named_and_the_rates_are_those_of_both_ends() {
        let (visit, seen) = bloated();
        let run = judged(&visit, &seen);
        let first = run.findings.first().unwrap();
        assert_eq!(first.cause.name(), "bufferbloat-up", "{}", first.summary);
        assert!((bps(&run, Direction::Down) / 96.5e6 - 1.0).abs() < 0.01);
        assert!((bps(&run, Direction::Up) / 19.3e6 - 1.0).abs() < 0.01);
        assert!(run.notes.iter().any(|note| note.contains("steps of 1")));
        let at: Vec<f64> = run.measurements.iter().map(|m| m.at_s).collect();
        assert_eq!(at, [0.0, 5.0, 5.0, 21.0, 21.0]);
    }

    #[test]
    fn a_browser_is_not_believed_more_than_was_sent() {
        let (mut visit, seen) = bloated();
        let down = visit.down.as_mut().unwrap();
        let came = down.streams.remove(0);
        let times = |factor: f64| {
            came.iter()
                .map(|bytes| (*bytes as f64 * factor) as u64)
                .collect()
        };
        for wrong in [times(1.3), times(10.0), vec![u64::MAX; came.len()]] {
            // Several streams of as many: their sum has an end.
            visit.down.as_mut().unwrap().streams = vec![wrong.clone(), wrong];
            let run = judged(&visit, &seen);
            assert!((bps(&run, Direction::Down) / 96.5e6 - 1.0).abs() < 0.01);
            assert!(run.notes.iter().any(|note| note.contains("cannot be")));
        }
    }

    #[test]
    fn a_line_without_a_fault_is_not_cleared_by_a_browser() {
        let (mut visit, seen) = bloated();
        visit.up = Some(echoed(21.0, 15.0, |t| {
            0.025 + 0.001 * (t * 7.0).sin().abs()
        }));
        let run = judged(&visit, &seen);
        let verdict = run.verdict.unwrap();
        assert_ne!(verdict.clearance, Some(Clearance::Cleared), "{verdict:?}");
        assert!(!verdict.not_measured.is_empty());
    }

    #[test]
    fn what_was_not_seen_clears_nothing() {
        let (mut visit, _) = bloated();
        let run = judged(&visit, &Seen::default());
        assert!(
            run.verdict
                .is_some_and(|verdict| !verdict.not_measured.is_empty())
        );
        visit.idle = Part::default();
        let run = judged(&visit, &Seen::default());
        assert!(run.measurements.is_empty());
        assert!(
            run.verdict
                .is_some_and(|verdict| !verdict.not_measured.is_empty())
        );
    }
}

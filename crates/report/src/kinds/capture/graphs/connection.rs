//! The graphs of one connection: sequence numbers, rates, round trips, and what was on its way.

use plumb_model::results::capture::{ConnectionGraph, ConnectionResult, HalfGraph};
use plumb_model::series::{Series, Unit};

use super::columns::{held, largest, marked, prefix, rates, sparse};
use crate::number;
use crate::show::{Chart, ChartGroup};
use crate::svg::canvas::Drawing;
use crate::svg::series::{self, Line, Marks, Scale, Subject, Written};

/// A direction that carries a smaller share than this of the other's payload is not drawn: it is the requests.
const LEAST_SHARE: f64 = 0.1;
/// A window that lies so many times above what was sent would press that flat, and held nothing back: it is not drawn.
const FAR_ABOVE: f64 = 2.0;

/// All of them, of each direction that carries something.
pub(super) fn charts(connection: &ConnectionResult, graph: &ConnectionGraph) -> Vec<Chart> {
    let ends = (connection.client.as_str(), connection.server.as_str());
    let halves = [
        (&graph.up, connection.up.payload_bytes, ends),
        (&graph.down, connection.down.payload_bytes, (ends.1, ends.0)),
    ];
    let most = connection
        .up
        .payload_bytes
        .max(connection.down.payload_bytes) as f64;
    let drawn = halves
        .into_iter()
        .filter(|(_, bytes, _)| *bytes as f64 >= LEAST_SHARE * most);
    drawn
        .filter_map(|(half, _, ends)| Some((half.as_ref()?, ends)))
        .flat_map(|(half, ends)| of_half(half, graph.bin_s, ends))
        .collect()
}

fn of_half(half: &HalfGraph, bin_s: f64, (sender, receiver): (&str, &str)) -> Vec<Chart> {
    let all = [
        ("sequence numbers", sequence(half, bin_s)),
        ("throughput and goodput", throughput(half, bin_s)),
        ("round trips", round_trips(half, bin_s)),
        ("bytes in flight", in_flight(half, bin_s)),
    ];
    let charts = all.into_iter().filter_map(|(what, svg)| {
        Some(Chart {
            group: ChartGroup::Connections,
            of: Some(format!("{sender} to {receiver}: {what}")),
            svg: svg?,
        })
    });
    charts.collect()
}

fn line<'a>(name: &'a str, colour: &'static str, values: &'a Series) -> Line<'a> {
    Line {
        name,
        colour,
        values,
    }
}

/// What was sent, acknowledged and allowed, with marks.
fn sequence(half: &HalfGraph, bin_s: f64) -> Option<Drawing> {
    let sent = held(&half.sent_bytes, bin_s, f64::INFINITY);
    let acked = held(&half.acked_bytes, bin_s, f64::INFINITY);
    let most = largest([&sent, &acked]);
    let allowed = held(&half.allowed_bytes, bin_s, FAR_ABOVE * most);
    let (factor, prefix) = prefix(largest([&sent, &acked, &allowed]));
    let subject = Subject {
        title: &format!("seconds; sequence number in {prefix}bytes from the initial one"),
        description: "Highest sequence number sent, acknowledged, and allowed by the window, over time",
        scale: Scale::FromZero,
        written: Written {
            factor,
            words: number::bytes,
        },
    };
    let mark = |name, colour, counts: &[u64], of: &Series| Marks {
        name,
        colour,
        at: marked(counts, of),
    };
    let marks = [
        mark("SACK", "both", &half.sacks, &sent),
        mark("retransmission", "lost", &half.retransmissions, &acked),
        mark("window of zero", "idle", &half.zero_windows, &acked),
    ];
    let mut lines = vec![
        line("sent", "up", &sent),
        line("acknowledged", "down", &acked),
    ];
    if allowed.points().next().is_some() {
        lines.insert(0, line("allowed by the window", "idle", &allowed));
    }
    series::render_marked(&subject, &lines, &marks)
}

/// What was on the wire, and what of it was new payload.
fn throughput(half: &HalfGraph, bin_s: f64) -> Option<Drawing> {
    /// Bits of a byte.
    const BITS: f64 = 8.0;
    let wire = rates(&half.wire_bytes, bin_s, BITS);
    let payload = rates(&half.payload_bytes, bin_s, BITS);
    let scale = number::Scale::rates([largest([&wire])].into_iter());
    let subject = Subject {
        title: &format!("seconds; {}", scale.unit),
        description: "Throughput on the wire and goodput, over time",
        scale: Scale::FromZero,
        written: Written {
            factor: scale.factor(),
            words: number::rate,
        },
    };
    let lines = [
        line("throughput", "up", &wire),
        line("goodput", "down", &payload),
    ];
    series::render(&subject, &lines)
}

/// The shortest and the longest round trip of each bin.
fn round_trips(half: &HalfGraph, bin_s: f64) -> Option<Drawing> {
    let of = |values: &[Option<f64>]| {
        sparse(values.iter().copied(), Unit::Seconds, bin_s, f64::INFINITY)
    };
    let (least, most) = (of(&half.min_rtt_s), of(&half.max_rtt_s));
    let subject = Subject {
        title: "seconds; round trip from the place of the capture to the receiver in ms",
        description: "Shortest and longest round trips, over time",
        scale: Scale::FromZero,
        written: Written::TIMES,
    };
    let lines = [
        line("longest", "up", &most),
        line("shortest", "idle", &least),
    ];
    series::render(&subject, &lines)
}

/// What was on its way, and the windows.
fn in_flight(half: &HalfGraph, bin_s: f64) -> Option<Drawing> {
    let of = |values: &[Option<u64>], limit: f64| {
        let values = values.iter().map(|value| value.map(|value| value as f64));
        sparse(values, Unit::Bytes, bin_s, limit)
    };
    let flying = of(&half.max_in_flight_bytes, f64::INFINITY);
    let window = of(&half.min_window_bytes, FAR_ABOVE * largest([&flying]));
    let congestion = of(&half.congestion_window_bytes, f64::INFINITY);
    let (factor, prefix) = prefix(largest([&flying, &window, &congestion]));
    let subject = Subject {
        title: &format!("seconds; {prefix}bytes"),
        description: "Most bytes in flight, and the windows of the receiver and of congestion, over time",
        scale: Scale::FromZero,
        written: Written {
            factor,
            words: number::bytes,
        },
    };
    let mut lines = vec![line("in flight", "up", &flying)];
    if window.points().next().is_some() {
        lines.push(line("receiver's window", "idle", &window));
    }
    if congestion.points().next().is_some() {
        lines.push(line("congestion window", "down", &congestion));
    }
    series::render(&subject, &lines)
}

//! A phase of load as iperf3 prints it with `-J` (`iperf_api.c`, version 3.12), for programs that read that. What plumb does
//! not measure is left out. Rates are of payload that reached the receiver, so that what was sent and what was received
//! are the same number.

use std::collections::BTreeMap;

use plumb_model::results::{CpuUse, Direction};
use plumb_model::run::{Measurement, Run};
use plumb_model::series::Series;
use serde_json::{Map, Value, json};

use crate::carried::{Carried, CarriedBy, Datagrams, Segments};
use crate::registry::{phase, shown};

/// How long an interval lasts, in seconds: iperf3's own default.
const INTERVAL_S: f64 = 1.0;

/// What is longer is no phase of load but a damaged file, in seconds.
const LONGEST_S: f64 = 24.0 * 3600.0;

/// iperf3 numbers streams by their sockets, of which the control connection has the first.
const FIRST_SOCKET: u32 = 5;

/// Why a Run cannot be written as iperf3 does.
#[derive(Debug, thiserror::Error)]
pub enum Iperf3Error {
    /// It holds no rate of TCP or UDP.
    #[error("the Run has no rate of TCP or UDP: measure with `plumb rate`")]
    NoLoad,
    /// The phase that was asked for is not there.
    #[error("the Run has no phase '{0}' of load")]
    NoPhase(&'static str),
    /// Its start is no time.
    #[error("the Run's start is no time: {0}")]
    Started(jiff::Error),
}

/// What passed in one direction of the phase.
struct Side<'a> {
    measurement: &'a Measurement,
    carried: Carried<'a>,
}

/// One phase, with both directions where both were loaded: the last one of the wanted direction, or of any without one.
///
/// # Errors
/// When the Run has no such phase.
pub fn export(run: &Run, wanted: Option<Direction>) -> Result<Value, Iperf3Error> {
    let sides: Vec<Side<'_>> = run.measurements.iter().filter_map(side).collect();
    let of_phase = |side: &Side<'_>| phase(side.measurement).direction();
    let last = sides.last().ok_or(Iperf3Error::NoLoad)?;
    let direction = wanted.or(of_phase(last)).unwrap_or(last.carried.direction);
    let begins = sides
        .iter()
        .rev()
        .find(|side| of_phase(side).unwrap_or(side.carried.direction) == direction)
        .map(|side| side.measurement.at_s)
        .ok_or(Iperf3Error::NoPhase(direction.name()))?;
    let mut sides: Vec<_> = sides
        .into_iter()
        .filter(|side| side.measurement.at_s == begins)
        .collect();
    // The client's own data first, as iperf3 has it.
    sides.sort_by_key(|side| side.carried.direction != Direction::Up);
    let first = sides.first().ok_or(Iperf3Error::NoLoad)?;
    Ok(json!({
        "start": start(run, first, direction, begins)?,
        "intervals": intervals(&sides),
        "end": end(&sides),
    }))
}

fn side(measurement: &Measurement) -> Option<Side<'_>> {
    measurement.context.load.as_ref()?;
    let carried = shown(measurement).carried()?;
    Some(Side {
        measurement,
        carried,
    })
}

fn start(
    run: &Run,
    first: &Side<'_>,
    direction: Direction,
    begins_s: f64,
) -> Result<Value, Iperf3Error> {
    let started: jiff::Timestamp = run.started.parse().map_err(Iperf3Error::Started)?;
    let unix_s = started.as_second() as f64 + begins_s;
    let target = run.target.as_ref();
    let load = first.measurement.context.load.as_ref();
    let (protocol, mss, block_bytes, asked_bps) = match &first.carried.by {
        CarriedBy::Tcp(tcp) => ("TCP", Some(tcp.mss_bytes), None, None),
        CarriedBy::Udp(udp) => ("UDP", None, Some(udp.payload_bytes), udp.asked_bps),
    };
    let asked_bps = asked_bps.unwrap_or_default();
    Ok(json!({
        "connected": [],
        "version": format!("plumb {}", run.plumb),
        "system_info": run.local.host.kernel,
        "timestamp": { "time": started.to_string(), "timesecs": unix_s as u64 },
        "connecting_to": { "host": target.map_or("", |target| target.name.as_str()) },
        "tcp_mss": mss,
        "target_bitrate": asked_bps,
        "test_start": {
            "protocol": protocol,
            "num_streams": load.map_or(1, |load| load.streams),
            "blksize": block_bytes,
            "omit": 0,
            "duration": load.map_or(first.measurement.duration_s, |load| load.duration_s),
            "bytes": load.and_then(|load| load.byte_limit_bytes).unwrap_or(0),
            "blocks": 0,
            "reverse": u8::from(direction == Direction::Down),
            "bidir": u8::from(direction == Direction::Both),
            "target_bitrate": asked_bps,
        },
    }))
}

/// Payload of a series of rates within each interval in bytes, and the time of its last sample in seconds.
fn bytes_by_interval(series: &Series) -> BTreeMap<usize, (f64, f64)> {
    let mut of: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    let mut before_s = 0.0;
    for (t_s, bps) in series.points().filter(|(t_s, _)| *t_s < LONGEST_S) {
        // A sample is the rate since the sample before, and belongs to the interval in which that time ends.
        let interval = (t_s / INTERVAL_S).ceil().max(1.0) as usize - 1;
        let (bytes, until_s) = of.entry(interval).or_default();
        *bytes += bps * (t_s - before_s).max(0.0) / 8.0;
        *until_s = t_s;
        before_s = t_s;
    }
    of
}

/// The streams and their sum in each second.
fn intervals(sides: &[Side<'_>]) -> Vec<Value> {
    let mut streams: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    let mut sums: BTreeMap<usize, Map<String, Value>> = BTreeMap::new();
    let mut socket = FIRST_SOCKET;
    for side in sides {
        let sender = side.carried.direction == Direction::Up;
        let row = |interval: usize, (bytes, to_s): (f64, f64), socket: Option<u32>| {
            let from_s = interval as f64 * INTERVAL_S;
            let mut row = span(from_s, to_s, bytes, sender);
            row.insert("omitted".to_owned(), false.into());
            row.extend(socket.map(|socket| ("socket".to_owned(), socket.into())));
            row
        };
        for (name, series) in &side.measurement.series {
            let own = name.strip_prefix("bps_stream").is_some();
            if name != "bps" && !own {
                continue;
            }
            for (interval, carried) in bytes_by_interval(series) {
                match own {
                    true => streams
                        .entry(interval)
                        .or_default()
                        .push(row(interval, carried, Some(socket)).into()),
                    false => {
                        let sum = row(interval, carried, None).into();
                        let name = sum_name(side, sides, "sum");
                        sums.entry(interval).or_default().insert(name, sum);
                    }
                }
            }
            socket += u32::from(own);
        }
    }
    let rows = sums.into_iter().map(|(interval, mut row)| {
        let streams = streams.remove(&interval).unwrap_or_default();
        row.insert("streams".to_owned(), streams.into());
        Value::Object(row)
    });
    rows.collect()
}

/// Of two directions the one towards the client has names of its own.
fn sum_name(side: &Side<'_>, sides: &[Side<'_>], name: &str) -> String {
    let both = sides
        .iter()
        .any(|other| other.carried.direction != side.carried.direction);
    match both && side.carried.direction == Direction::Down {
        true => format!("{name}_bidir_reverse"),
        false => name.to_owned(),
    }
}

fn span(from_s: f64, to_s: f64, bytes: f64, sender: bool) -> Map<String, Value> {
    let seconds = (to_s - from_s).max(0.0);
    let bps = if seconds > 0.0 {
        bytes * 8.0 / seconds
    } else {
        0.0
    };
    let fields = [
        ("start", json!(from_s)),
        ("end", json!(to_s)),
        ("seconds", json!(seconds)),
        ("bytes", json!(bytes.round() as u64)),
        ("bits_per_second", json!(bps)),
        ("sender", json!(sender)),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    fields.into_iter().collect()
}

fn end(sides: &[Side<'_>]) -> Value {
    let mut end = Map::new();
    let mut streams: Vec<Value> = Vec::new();
    let mut datagrams: BTreeMap<String, (Datagrams, f64)> = BTreeMap::new();
    for side in sides {
        let seconds = side.measurement.duration_s;
        let sender = side.carried.direction == Direction::Up;
        match &side.carried.by {
            CarriedBy::Tcp(tcp) => {
                let first_socket = FIRST_SOCKET + streams.len() as u32;
                streams.extend(tcp_streams(tcp, seconds, sender, first_socket));
                let mut sum = span(0.0, seconds, tcp.bytes as f64, sender);
                end.insert(sum_name(side, sides, "sum_received"), sum.clone().into());
                sum.insert("retransmits".to_owned(), tcp.retransmits.into());
                end.insert(sum_name(side, sides, "sum_sent"), sum.into());
                end.insert("sender_tcp_congestion".to_owned(), tcp.cc.into());
            }
            CarriedBy::Udp(udp) => {
                let mut row = datagram_row(udp, seconds, sender);
                let socket = FIRST_SOCKET + streams.len() as u32;
                row.insert("socket".to_owned(), socket.into());
                streams.push(json!({ "udp": row }));
                let sum = datagrams.entry(sum_name(side, sides, "sum")).or_default();
                add(sum, udp);
                let (total, count) = *sum;
                let mean = Datagrams {
                    jitter_s: total.jitter_s / count,
                    ..total
                };
                let row = datagram_row(&mean, seconds, sender);
                end.insert(sum_name(side, sides, "sum"), row.into());
            }
        }
    }
    end.insert("streams".to_owned(), streams.into());
    let cpu = sides.first().map(|side| busy(side.carried.cpu));
    end.extend(cpu.map(|cpu| ("cpu_utilization_percent".to_owned(), cpu)));
    Value::Object(end)
}

/// Adds a stream to a sum over so many.
fn add((sum, count): &mut (Datagrams, f64), udp: &Datagrams) {
    sum.sent = sum.sent.saturating_add(udp.sent);
    sum.received_bytes = sum.received_bytes.saturating_add(udp.received_bytes);
    sum.lost = sum.lost.saturating_add(udp.lost);
    sum.reordered = sum.reordered.saturating_add(udp.reordered);
    sum.jitter_s += udp.jitter_s;
    *count += 1.0;
}

fn tcp_streams(tcp: &Segments<'_>, seconds: f64, sender: bool, first_socket: u32) -> Vec<Value> {
    let is_alone = tcp.streams.len() == 1;
    let rows = tcp
        .streams
        .iter()
        .zip(first_socket..)
        .map(|(stream, socket)| {
            let mut row = span(0.0, seconds, stream.bytes as f64, sender);
            row.insert("socket".to_owned(), socket.into());
            let receiver = row.clone();
            row.insert("retransmits".to_owned(), stream.retransmits.into());
            if is_alone {
                let us = |s: Option<f64>| s.map(|s| (s * 1e6).round() as u64);
                row.insert("min_rtt".to_owned(), us(tcp.min_rtt_s).into());
                row.insert("max_rtt".to_owned(), us(tcp.max_srtt_s).into());
            }
            json!({ "sender": row, "receiver": receiver })
        });
    rows.collect()
}

fn busy(cpu: &CpuUse) -> Value {
    let percent = |ratio: Option<f64>| ratio.map(|ratio| ratio * 100.0);
    json!({ "host_total": percent(cpu.local_ratio), "remote_total": percent(cpu.remote_ratio) })
}

/// What of datagrams arrived: their number, losses, jitter and order. The jitter is the mean of the running estimate, of
/// which iperf3 prints the last.
fn datagram_row(udp: &Datagrams, seconds: f64, sender: bool) -> Map<String, Value> {
    let mut row = span(0.0, seconds, udp.received_bytes as f64, sender);
    let lost_percent = udp.lost as f64 / udp.sent.max(1) as f64 * 100.0;
    let fields = [
        ("jitter_ms", json!(udp.jitter_s * 1e3)),
        ("lost_packets", json!(udp.lost)),
        ("packets", json!(udp.sent)),
        ("lost_percent", json!(lost_percent)),
        ("out_of_order", json!(udp.reordered)),
    ];
    row.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    row
}

//! From the logs of both ends to the result of one direction. Pure.

use std::collections::{BTreeMap, BTreeSet};

use plumb_model::protocol::Protocol;
use plumb_model::results::{
    FileTime, RAMP_S, StreamResult, TcpReceiver, TcpSender, ThroughputResult,
};
use plumb_model::series::Series;
use plumb_wire::native::control::report::{SenderLog, SenderTail, StreamEnd, TcpSample};

use crate::limits::limited_time;
use crate::logs::{DirectionLogs, acknowledged, congestion_controls, count_at};
use crate::series::{series, stream_rates};
use crate::sharing;
use crate::slow_start::slow_start;

/// Shortest phase that has a steady rate: as much of it as is left out.
pub(crate) const STEADY_NEEDS_S: f64 = 4.0;

/// How far the ends' clocks may be apart when a phase ends early: four times the wait in which a
/// stream sees that it is to stop.
const SLACK_S: f64 = 0.1;

/// What one direction of a phase carried.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionOutcome {
    pub result: ThroughputResult,
    /// `bps` (counted by the receivers, over the time since the point before), and of the
    /// sending TCPs, summed over the streams: `cwnd_bytes`, `in_flight_bytes` and `retransmits`
    /// (so far), `pacing_bps`, `delivery_bps`; `srtt_s` is their mean. `rwnd_limited_ratio`,
    /// `sndbuf_limited_ratio`, `app_limited_ratio` and `network_limited_ratio` are shares of the
    /// time since the point before. Of several streams, `jain_index` of each second. Seconds from
    /// the start of the phase.
    pub series: BTreeMap<String, Series>,
    /// `bps` of each stream by itself, by its number.
    pub stream_bps: BTreeMap<u32, Series>,
}

/// Result and series of one direction.
pub fn summarise(logs: &DirectionLogs<'_>) -> DirectionOutcome {
    let duration_s = logs.duration_s.max(f64::MIN_POSITIVE);
    let streams_of = numbers(logs);
    let until = |t_s: f64| {
        streams_of
            .iter()
            .map(|stream| reached(logs, *stream, t_s))
            .sum::<f64>()
    };
    let bytes = until(end_s(logs));
    let lasted_s = lasted_s(logs);
    let steady = (duration_s >= STEADY_NEEDS_S)
        .then(|| (bytes - until(RAMP_S)) * 8.0 / (duration_s - RAMP_S));
    let streams = streams(logs, duration_s);
    let result = ThroughputResult {
        direction: logs.direction,
        protocol: if logs.tls.is_some() {
            Protocol::Tls
        } else {
            Protocol::Tcp
        },
        bps: bytes * 8.0 / lasted_s,
        steady_bps: steady,
        bytes: bytes as u64,
        cc: congestion_controls(logs.senders.iter()),
        slow_start: slow_start(logs.senders, duration_s, until),
        zero_copy_send: of_all(logs.senders, |tail| Some(tail.zero_copy)) == Some(true),
        discard_receive: logs.receivers.iter().any(|log| log.tail.discard),
        files: files(logs, duration_s),
        sharing: sharing::sharing(logs, &streams),
        streams,
        tcp: tcp_sender(logs.senders, duration_s),
        tcp_receiver: TcpReceiver {
            receive_buffer_bytes: logs
                .receivers
                .iter()
                .filter_map(|log| log.tail.receive_buffer_bytes)
                .max(),
            max_window_bytes: samples(logs.senders)
                .filter_map(|sample| sample.snd_wnd_bytes)
                .max(),
        },
        cpu: logs.cpu,
        tls: logs.tls.cloned(),
    };
    let mut series = series(logs);
    series.extend(sharing::index_series(logs));
    DirectionOutcome {
        result,
        series,
        stream_bps: stream_rates(logs),
    }
}

/// When the last byte of the phase has come.
fn end_s(logs: &DirectionLogs<'_>) -> f64 {
    if logs.all_arrived {
        f64::INFINITY
    } else {
        logs.duration_s
    }
}

/// For how long payload came, in seconds: what waited in a queue when the senders had nothing more came after the phase.
fn lasted_s(logs: &DirectionLogs<'_>) -> f64 {
    let duration_s = logs.duration_s.max(f64::MIN_POSITIVE);
    if !logs.all_arrived {
        return duration_s;
    }
    let last_s = logs.receivers.iter().filter_map(|log| {
        let all = log.counts.last()?.bytes;
        let last = log.counts.iter().find(|count| count.bytes >= all)?;
        Some(last.t_s - logs.receiver_shift_s)
    });
    last_s.fold(duration_s, f64::max)
}

/// Payload of a stream that had reached the receiving host by `t_s` of the phase.
///
/// A receiving program sees nothing that is behind a lost segment, which with a long queue is a
/// good part of a second's data when the phase ends. What its TCP had acknowledged, in order
/// and out of order, arrived all the same; the sender knows, one way's delay later. Neither
/// count holds anything that did not arrive, so the larger one is nearer to the truth.
fn reached(logs: &DirectionLogs<'_>, stream: u32, t_s: f64) -> f64 {
    let receiver = logs.receivers.iter().find(|log| log.tail.stream == stream);
    let read = receiver.map_or(0.0, |log| {
        count_at(&log.counts, t_s + logs.receiver_shift_s)
    });
    let sender = logs.senders.iter().find(|log| log.tail.stream == stream);
    let acknowledged = sender.map_or(0.0, |log| count_at(&acknowledged(&log.samples), t_s));
    // TCP acknowledges records, and how much of them is payload depends on how full they are.
    if logs.tls.is_some() {
        read
    } else {
        read.max(acknowledged)
    }
}

/// The numbers of the streams, in order. Where an end's record is missing the other's will do.
fn numbers(logs: &DirectionLogs<'_>) -> BTreeSet<u32> {
    let sent = logs.senders.iter().map(|log| log.tail.stream);
    let received = logs.receivers.iter().map(|log| log.tail.stream);
    sent.chain(received).collect()
}

fn streams(logs: &DirectionLogs<'_>, duration_s: f64) -> Vec<StreamResult> {
    // What ended when the phase did was ended by the phase. One that ended because all had arrived
    // ended a moment ago for the far end, whose clock is some milliseconds apart.
    let over_s = duration_s - if logs.all_arrived { SLACK_S } else { 0.0 };
    let early = |end: &Option<StreamEnd>, shift_s: f64| {
        end.as_ref()
            .filter(|end| end.t_s - shift_s < over_s)
            .map(|end| end.error.clone())
    };
    let lasted_s = lasted_s(logs);
    let stream = |id: u32| {
        let bytes = reached(logs, id, end_s(logs));
        let sender = logs.senders.iter().find(|log| log.tail.stream == id);
        let receiver = logs.receivers.iter().find(|log| log.tail.stream == id);
        let sender_error = sender.and_then(|log| early(&log.tail.ended, 0.0));
        StreamResult {
            id,
            bytes: bytes as u64,
            bps: bytes * 8.0 / lasted_s,
            retransmits: sender.map_or(0, |log| retransmits(&log.samples)),
            error: sender_error
                .or_else(|| receiver.and_then(|log| early(&log.tail.ended, logs.receiver_shift_s))),
        }
    };
    numbers(logs).into_iter().map(stream).collect()
}

/// Shares of time in which the streams waited for their files.
fn files(logs: &DirectionLogs<'_>, duration_s: f64) -> Option<FileTime> {
    let share = |waits: Vec<u64>| {
        let all_s = waits.len() as f64 * duration_s;
        let waited_s = waits.iter().map(|us| *us as f64 / 1e6).sum::<f64>();
        (!waits.is_empty()).then(|| (waited_s / all_s).min(1.0))
    };
    let read = logs.senders.iter().filter_map(|log| log.tail.file_wait_us);
    let written = logs
        .receivers
        .iter()
        .filter_map(|log| log.tail.file_wait_us);
    let times = FileTime {
        read_wait_ratio: share(read.collect()),
        write_wait_ratio: share(written.collect()),
    };
    (times.read_wait_ratio.or(times.write_wait_ratio)).map(|_| times)
}

fn samples(senders: &[SenderLog]) -> impl Iterator<Item = &TcpSample> {
    senders.iter().flat_map(|log| &log.samples)
}

fn tcp_sender(senders: &[SenderLog], duration_s: f64) -> TcpSender {
    let seconds = |us: u64| us as f64 / 1e6;
    TcpSender {
        retransmits: senders
            .iter()
            .map(|log| retransmits(&log.samples))
            .fold(0, u64::saturating_add),
        spurious_retransmits: senders
            .iter()
            .map(|log| twice(&log.samples))
            .reduce(|all, one| Some(all?.saturating_add(one?)))
            .flatten(),
        min_rtt_s: samples(senders)
            .filter_map(|s| s.min_rtt_us)
            .min()
            .map(seconds),
        max_srtt_s: samples(senders)
            .map(|s| s.srtt_us)
            .filter(|us| *us > 0)
            .max()
            .map(seconds),
        mss_bytes: senders
            .iter()
            .map(|log| log.tail.mss_bytes)
            .max()
            .unwrap_or(0),
        send_buffer_bytes: samples(senders).filter_map(|s| s.sndbuf_bytes).max(),
        max_in_flight_bytes: samples(senders)
            .map(|s| s.in_flight_bytes)
            .max()
            .unwrap_or(0),
        ecn: of_all(senders, |tail| Some(tail.ecn)),
        fast_open: of_all(senders, |tail| Some(tail.fast_open)),
        mptcp: of_all(senders, |tail| Some(tail.mptcp)),
        window_scaling: of_all(senders, |tail| tail.window_scaling),
        sack: of_all(senders, |tail| tail.sack),
        timestamps: of_all(senders, |tail| tail.timestamps),
        limited: limited_time(senders, duration_s),
    }
}

/// Whether something holds of every stream; nothing without streams, or where it is not known of one.
fn of_all(senders: &[SenderLog], holds: fn(&SenderTail) -> Option<bool>) -> Option<bool> {
    let each = senders.iter().map(|log| holds(&log.tail));
    each.reduce(|all, one| Some(all? && one?)).flatten()
}

fn retransmits(samples: &[TcpSample]) -> u64 {
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.retransmits.saturating_sub(first.retransmits),
        _ => 0,
    }
}

/// Segments that the receiver had twice.
fn twice(samples: &[TcpSample]) -> Option<u64> {
    let (first, last) = (samples.first()?, samples.last()?);
    Some(last.twice?.saturating_sub(first.twice?))
}

#[cfg(test)]
mod tests;

//! From the logs of both ends to the result of one direction. Pure.

use std::collections::BTreeMap;

use plumb_model::results::{
    CpuUse, Direction, LimitedTime, RAMP_S, StreamResult, TcpReceiver, TcpSender, ThroughputResult,
    TlsResult,
};
use plumb_model::series::Series;
use plumb_wire::native::control::report::{
    Count, ReceiverLog, SenderLog, SenderTail, StreamEnd, TcpSample,
};

use crate::series::{count_at, series, stream_rates};
use crate::tls::{RECORD_BYTES, RECORD_OVERHEAD_BYTES};

/// Shortest phase that has a steady rate: as much of it as is left out.
const STEADY_NEEDS_S: f64 = 4.0;

/// What one direction of a phase carried.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionOutcome {
    /// Its result.
    pub result: ThroughputResult,
    /// `bps` (counted by the receivers, over the time since the point before), and of the
    /// sending TCPs, summed over the streams: `cwnd_bytes`, `in_flight_bytes` and `retransmits`
    /// (so far); `srtt_s` is their mean. Seconds from the start of the phase.
    pub series: BTreeMap<String, Series>,
    /// `bps` of each stream by itself, by its number.
    pub stream_bps: BTreeMap<u32, Series>,
}

/// The logs of one direction, and which part of them is the phase.
#[derive(Debug, Clone, Copy)]
pub struct DirectionLogs<'a> {
    /// Direction of the data.
    pub direction: Direction,
    /// The sending end.
    pub senders: &'a [SenderLog],
    /// The receiving end.
    pub receivers: &'a [ReceiverLog],
    /// How long the phase took.
    pub duration_s: f64,
    /// What the receiver's clock shows when the first byte can come: zero for a download, and
    /// one round trip for an upload, whose server starts its clock as it says "started".
    pub receiver_shift_s: f64,
    /// The phase ended because all its payload had arrived, so all that was counted belongs to
    /// it, even where the clocks of the ends are some milliseconds apart.
    pub all_arrived: bool,
    /// Processor use of both ends.
    pub cpu: CpuUse,
    /// Set when the streams are encrypted: records are what TCP carries.
    pub tls: Option<&'a TlsResult>,
}

/// Result and series of one direction.
pub fn summarise(logs: &DirectionLogs<'_>) -> DirectionOutcome {
    let duration_s = logs.duration_s.max(f64::MIN_POSITIVE);
    let until = |t_s: f64| {
        logs.receivers
            .iter()
            .map(|log| reached(logs, log, t_s))
            .sum::<f64>()
    };
    let bytes = until(end_s(logs));
    let steady = (duration_s >= STEADY_NEEDS_S)
        .then(|| (bytes - until(RAMP_S)) * 8.0 / (duration_s - RAMP_S));
    let result = ThroughputResult {
        direction: logs.direction,
        protocol: if logs.tls.is_some() { "tls" } else { "tcp" }.to_owned(),
        bps: bytes * 8.0 / duration_s,
        steady_bps: steady,
        bytes: bytes as u64,
        cc: congestion_controls(logs.senders),
        streams: streams(logs, duration_s),
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
    DirectionOutcome {
        result,
        series: series(logs),
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

/// Payload of a stream that had reached the receiving host by `t_s` of the phase.
///
/// A receiving program sees nothing that is behind a lost segment, which with a long queue is a
/// good part of a second's data when the phase ends. What its TCP had acknowledged, in order
/// and out of order, arrived all the same; the sender knows, one way's delay later. Neither
/// count holds anything that did not arrive, so the larger one is nearer to the truth.
fn reached(logs: &DirectionLogs<'_>, receiver: &ReceiverLog, t_s: f64) -> f64 {
    let read = count_at(&receiver.counts, t_s + logs.receiver_shift_s);
    let sender = logs
        .senders
        .iter()
        .find(|log| log.tail.stream == receiver.tail.stream);
    let acknowledged = sender.map_or(0.0, |log| count_at(&acknowledged(&log.samples), t_s));
    read.max(if logs.tls.is_some() {
        payload_of_records(acknowledged)
    } else {
        acknowledged
    })
}

/// Payload in so many bytes of TLS records, which are full but for the last. It counts one full
/// record too few, so that neither that one nor the end of the handshake is taken for payload.
fn payload_of_records(bytes: f64) -> f64 {
    let full = RECORD_BYTES as f64;
    (bytes * full / (full + RECORD_OVERHEAD_BYTES as f64) - full).max(0.0)
}

/// Payload that the receiver had acknowledged since the first sample, out of order included.
fn acknowledged(samples: &[TcpSample]) -> Vec<Count> {
    let first = samples.first().map_or(0, |sample| sample.bytes_acked);
    let count = |sample: &TcpSample| Count {
        t_s: sample.t_s,
        bytes: sample
            .bytes_acked
            .saturating_sub(first)
            .saturating_add(sample.sacked_bytes),
    };
    samples.iter().map(count).collect()
}

/// The algorithms that ran, in practice one.
fn congestion_controls(senders: &[SenderLog]) -> String {
    let names: std::collections::BTreeSet<_> = senders
        .iter()
        .map(|log| log.tail.cc.as_str())
        .filter(|cc| !cc.is_empty())
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn streams(logs: &DirectionLogs<'_>, duration_s: f64) -> Vec<StreamResult> {
    // What ended when the phase did was ended by the phase.
    let early = |end: &Option<StreamEnd>, shift_s: f64| {
        end.as_ref()
            .filter(|end| end.t_s - shift_s < duration_s)
            .map(|end| end.error.clone())
    };
    let mut streams: Vec<_> = logs
        .receivers
        .iter()
        .map(|receiver| {
            let id = receiver.tail.stream;
            let bytes = reached(logs, receiver, end_s(logs));
            let sender = logs.senders.iter().find(|log| log.tail.stream == id);
            let sender_error = sender.and_then(|log| early(&log.tail.ended, 0.0));
            StreamResult {
                id,
                bytes: bytes as u64,
                bps: bytes * 8.0 / duration_s,
                retransmits: sender.map_or(0, |log| retransmits(&log.samples)),
                error: sender_error.or_else(|| early(&receiver.tail.ended, logs.receiver_shift_s)),
            }
        })
        .collect();
    // A server knows them in the order in which they came.
    streams.sort_by_key(|stream| stream.id);
    streams
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
        ecn: of_all(senders, |tail| tail.ecn),
        fast_open: of_all(senders, |tail| tail.fast_open),
        mptcp: of_all(senders, |tail| tail.mptcp),
        limited: limited_time(senders, duration_s),
    }
}

/// Whether something holds of every stream; nothing without streams.
fn of_all(senders: &[SenderLog], holds: fn(&SenderTail) -> bool) -> Option<bool> {
    (!senders.is_empty()).then(|| senders.iter().all(|log| holds(&log.tail)))
}

fn retransmits(samples: &[TcpSample]) -> u64 {
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.retransmits.saturating_sub(first.retransmits),
        _ => 0,
    }
}

/// Shares of the senders' time, from the first sample to the last one of the phase. The
/// counters tick in milliseconds and are read one after the other, so what they leave over or
/// exceed goes to the application or is cut.
fn limited_time(senders: &[SenderLog], duration_s: f64) -> LimitedTime {
    let (mut elapsed, mut busy, mut rwnd, mut sndbuf) = (0.0, 0.0, 0.0, 0.0);
    for log in senders {
        let within = log
            .samples
            .partition_point(|sample| sample.t_s <= duration_s);
        // A phase shorter than the interval has only the sample at its end.
        let last = log
            .samples
            .get(within.saturating_sub(1))
            .filter(|_| within > 1)
            .or(log.samples.last());
        let (Some(first), Some(last)) = (log.samples.first(), last) else {
            continue;
        };
        let since = |counter: fn(&TcpSample) -> u64| {
            counter(last).saturating_sub(counter(first)) as f64 / 1e6
        };
        elapsed += last.t_s - first.t_s;
        busy += since(|s| s.busy_us);
        rwnd += since(|s| s.rwnd_limited_us);
        sndbuf += since(|s| s.sndbuf_limited_us);
    }
    let network = (busy - rwnd - sndbuf).max(0.0);
    let app = (elapsed - busy).max(0.0);
    let whole = rwnd + sndbuf + network + app;
    if whole <= 0.0 {
        return LimitedTime {
            rwnd_ratio: 0.0,
            sndbuf_ratio: 0.0,
            app_ratio: 1.0,
            network_ratio: 0.0,
        };
    }
    LimitedTime {
        rwnd_ratio: rwnd / whole,
        sndbuf_ratio: sndbuf / whole,
        app_ratio: app / whole,
        network_ratio: network / whole,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_wire::native::control::report::{Count, ReceiverTail};
    use proptest::prelude::*;

    const CPU: CpuUse = CpuUse {
        local_ratio: 0.5,
        remote_ratio: None,
    };

    /// `mbps` megabits a second of one stream in samples of 100 ms, from `from_s` on.
    fn counted(stream: u32, mbps: f64, from_s: f64, until_s: f64) -> ReceiverLog {
        let bytes_at = |t_s: f64| ((t_s - from_s).max(0.0) * mbps * 1e6 / 8.0) as u64;
        let times = (0..)
            .map(|k| f64::from(k) / 10.0)
            .take_while(|t_s| *t_s <= until_s);
        ReceiverLog {
            tail: ReceiverTail {
                stream,
                receive_buffer_bytes: Some(1000),
                ..Default::default()
            },
            counts: times
                .map(|t_s| Count {
                    t_s,
                    bytes: bytes_at(t_s),
                })
                .collect(),
        }
    }

    /// Counters that grow by the given shares of time.
    fn sent(stream: u32, seconds: u32, busy: f64, rwnd: f64, sndbuf: f64) -> SenderLog {
        let us = |share: f64, t_s: f64| (share * t_s * 1e6).round() as u64;
        let samples = (0..=10 * seconds)
            .map(|k| {
                let t_s = f64::from(k) / 10.0;
                TcpSample {
                    t_s,
                    // The connection was busy before the phase.
                    busy_us: 700 + us(busy, t_s),
                    rwnd_limited_us: us(rwnd, t_s),
                    sndbuf_limited_us: us(sndbuf, t_s),
                    retransmits: 3 + u64::from(k),
                    srtt_us: 20_000,
                    min_rtt_us: Some(18_000 + u64::from(k)),
                    cwnd_bytes: 14_480,
                    in_flight_bytes: u64::from(k % 7),
                    snd_wnd_bytes: Some(65_536),
                    ..Default::default()
                }
            })
            .collect();
        SenderLog {
            tail: SenderTail {
                stream,
                cc: "cubic".into(),
                mss_bytes: 1448,
                ended: None,
                ..SenderTail::default()
            },
            samples,
        }
    }

    fn logs<'a>(senders: &'a [SenderLog], receivers: &'a [ReceiverLog]) -> DirectionLogs<'a> {
        DirectionLogs {
            direction: Direction::Down,
            senders,
            receivers,
            duration_s: 5.0,
            receiver_shift_s: 0.0,
            all_arrived: false,
            cpu: CPU,
            tls: None,
        }
    }

    #[test]
    fn rates_are_the_receivers() {
        let senders = [sent(0, 5, 1.0, 0.0, 0.0), sent(1, 5, 1.0, 0.0, 0.0)];
        let receivers = [counted(0, 10.0, 0.0, 5.0), counted(1, 30.0, 3.0, 5.0)];
        let DirectionOutcome {
            result,
            series,
            stream_bps,
        } = summarise(&logs(&senders, &receivers));
        assert!((result.bps - 22e6).abs() < 1e3, "{}", result.bps);
        assert!(
            (result.steady_bps.unwrap() - 30e6).abs() < 1e3,
            "{:?}",
            result.steady_bps
        );
        assert_eq!(
            result.bytes,
            result.streams.iter().map(|s| s.bytes).sum::<u64>()
        );
        assert_eq!(
            (result.tcp.retransmits, result.streams[1].retransmits),
            (100, 50)
        );
        assert_eq!(
            (result.tcp.min_rtt_s, result.tcp.max_in_flight_bytes),
            (Some(0.018), 6)
        );
        assert_eq!(
            (result.cc.as_str(), result.tcp_receiver.max_window_bytes),
            ("cubic", Some(65_536))
        );
        assert_eq!(series["bps"].values.len(), 50);
        assert!(
            series["bps"]
                .points()
                .all(|(t, v)| (v - if t < 3.05 { 10e6 } else { 40e6 }).abs() < 1e3)
        );
        let of_stream = |n: u32| stream_bps[&n].points().last().unwrap().1;
        assert!((of_stream(0) - 10e6).abs() < 1e3 && (of_stream(1) - 30e6).abs() < 1e3);
        assert_eq!(series["cwnd_bytes"].points().next(), Some((0.0, 28_960.0)));
        assert_eq!(series["retransmits"].points().last(), Some((5.0, 100.0)));
        assert_eq!(series["srtt_s"].points().next(), Some((0.0, 0.02)));
    }

    #[test]
    fn an_upload_is_counted_one_round_trip_later() {
        // 10 Mbit/s that arrive from 0.7 s on, and go on after the phase.
        let (senders, receivers) = ([sent(0, 5, 1.0, 0.0, 0.0)], [counted(0, 10.0, 0.7, 7.0)]);
        let shifted = DirectionLogs {
            receiver_shift_s: 0.7,
            ..logs(&senders, &receivers)
        };
        let outcome = summarise(&shifted);
        assert!(
            (outcome.result.bps - 10e6).abs() < 1e3,
            "{}",
            outcome.result.bps
        );
        let (first, last) = (
            outcome.series["bps"].t_s[0],
            outcome.series["bps"].t_s.last().unwrap(),
        );
        assert!(first > 0.0 && first < 0.2 && *last <= 5.0, "{first} {last}");
    }

    #[test]
    fn what_arrived_belongs_to_a_phase_that_ended_for_it() {
        let (senders, receivers) = ([sent(0, 5, 1.0, 0.0, 0.0)], [counted(0, 8.0, 0.0, 5.5)]);
        let late = DirectionLogs {
            all_arrived: true,
            ..logs(&senders, &receivers)
        };
        let result = summarise(&late).result;
        assert_eq!(
            (result.bytes, result.streams[0].bytes),
            (5_500_000, 5_500_000)
        );
    }

    #[test]
    fn limits_are_shares_of_elapsed_time() {
        let senders = [sent(0, 5, 0.9, 0.5, 0.1), sent(1, 5, 0.7, 0.1, 0.1)];
        let limited = summarise(&logs(&senders, &[])).result.tcp.limited;
        for (ratio, expected) in [
            (limited.rwnd_ratio, 0.3),
            (limited.sndbuf_ratio, 0.1),
            (limited.app_ratio, 0.2),
            (limited.network_ratio, 0.4),
        ] {
            assert!((ratio - expected).abs() < 1e-6, "{limited:?}");
        }
    }

    #[test]
    fn only_early_ends_are_errors() {
        let end = |t_s| {
            Some(StreamEnd {
                t_s,
                error: "reset".into(),
            })
        };
        let senders = [sent(0, 5, 1.0, 0.0, 0.0)];
        let mut receivers = [counted(0, 10.0, 0.0, 5.0)];
        receivers[0].tail.ended = end(5.001);
        assert_eq!(
            summarise(&logs(&senders, &receivers)).result.streams[0].error,
            None
        );
        receivers[0].tail.ended = end(1.0);
        assert_eq!(
            summarise(&logs(&senders, &receivers)).result.streams[0]
                .error
                .as_deref(),
            Some("reset")
        );
    }

    #[test]
    fn nothing_comes_to_nothing() {
        let empty = [SenderLog::default()];
        for senders in [&[] as &[SenderLog], &empty] {
            let result = summarise(&DirectionLogs {
                duration_s: 0.0,
                ..logs(senders, &[ReceiverLog::default()])
            })
            .result;
            assert_eq!(
                (
                    result.bytes,
                    result.bps,
                    result.steady_bps,
                    result.tcp.min_rtt_s
                ),
                (0, 0.0, None, None)
            );
        }
    }

    proptest! {
        #[test]
        fn what_the_far_end_says_gives_finite_numbers(
            records in proptest::collection::vec((0.0..1e3_f64, any::<[u64; 7]>()), 0..40), duration_s in 0.0..200.0_f64,
        ) {
            let samples = records.iter().map(|(t_s, [acked, busy, rwnd, sndbuf, again, cwnd, srtt])| TcpSample {
                t_s: *t_s, bytes_acked: *acked, busy_us: *busy, rwnd_limited_us: *rwnd, sndbuf_limited_us: *sndbuf,
                retransmits: *again, cwnd_bytes: *cwnd, srtt_us: *srtt, ..Default::default()
            });
            let counts = records.iter().map(|(t_s, values)| Count { t_s: *t_s, bytes: values[0] }).collect();
            let senders = [SenderLog { samples: samples.collect(), ..Default::default() }];
            let receivers = [ReceiverLog { counts, ..Default::default() }];
            let outcome = summarise(&DirectionLogs { duration_s, ..logs(&senders, &receivers) });
            let l = outcome.result.tcp.limited;
            let shares = [l.rwnd_ratio, l.sndbuf_ratio, l.app_ratio, l.network_ratio];
            prop_assert!(outcome.result.bps.is_finite());
            prop_assert!(shares.iter().all(|s| (0.0..=1.0).contains(s)), "{:?}", shares);
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{:?}", shares);
        }
    }
}

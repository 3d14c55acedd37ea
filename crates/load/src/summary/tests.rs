#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::*;
use plumb_model::results::{CpuUse, Direction};
use plumb_wire::native::control::report::{Count, ReceiverLog, ReceiverTail};
use proptest::prelude::*;

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
                ..Count::default()
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
        groups: &[],
        duration_s: 5.0,
        receiver_shift_s: 0.0,
        all_arrived: false,
        cpu: CpuUse::default(),
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
    // The rate is of the time in which it arrived, and no more than the line carries.
    assert!((result.bps - 8e6).abs() < 1e5, "{}", result.bps);
    assert_eq!(result.streams[0].bps, result.bps);
}

#[test]
fn a_stream_is_held_back_by_nothing_before_its_first_byte() {
    let mut late = sent(1, 5, 1.0, 0.0, 0.0);
    let mut never = sent(2, 5, 1.0, 0.0, 0.0);
    for sample in &mut late.samples {
        sample.busy_us = 700 + ((sample.t_s - 4.0).max(0.0) * 1e6) as u64;
    }
    for sample in &mut never.samples {
        sample.busy_us = 700;
    }
    let limited = |senders: &[SenderLog]| summarise(&logs(senders, &[])).result.tcp.limited;
    let of = limited(&[sent(0, 5, 1.0, 0.0, 0.0), late, never.clone()]);
    assert!(of.network_ratio > 0.999, "{of:?}");
    // Where none sent anything, the programs are what held them back.
    assert!(limited(&[never]).app_ratio > 0.999);
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
        let counts = records.iter().map(|(t_s, values)| Count { t_s: *t_s, bytes: values[0], ..Count::default() }).collect();
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

//! From both ends' logs to what QUIC carried in each direction. Pure.

use std::collections::BTreeMap;

use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol;
use plumb_model::results::quic::{QuicResult, QuicStream};
use plumb_model::results::{CpuUse, RAMP_S};
use plumb_model::series::{Series, Unit};
use plumb_wire::native::control::flow::{self, Flows};
use plumb_wire::native::control::report::StreamEnd;
use plumb_wire::native::control::report::quic::{
    QuicReceiverLog, QuicReport, QuicSample, QuicSenderLog,
};

use crate::logs::count_at;
use crate::summary::STEADY_NEEDS_S;

/// What QUIC carried in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct QuicOutcome {
    pub result: QuicResult,
    /// `bps` received; of the senders `cwnd_bytes` and `lost_packets` of all, and the mean `rtt_s`.
    pub series: BTreeMap<String, Series>,
}

/// What there is to summarise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends<'a> {
    /// The streams, as asked for.
    pub(crate) flows: &'a [Flows],
    pub(crate) local: &'a QuicReport,
    /// The far host's; nothing when it was lost.
    pub(crate) remote: &'a QuicReport,
    /// How long the phase took.
    pub(crate) duration_s: f64,
    /// It ended because everything had arrived.
    pub(crate) all_arrived: bool,
    /// Processor use of both ends.
    pub(crate) cpu: CpuUse,
}

/// Downloads first; nothing where there were none.
pub(crate) fn summarise(ends: &Ends<'_>) -> Vec<QuicOutcome> {
    let down = one_way(
        ends,
        OneDirection::Down,
        &ends.remote.senders,
        &ends.local.receivers,
    );
    let up = one_way(
        ends,
        OneDirection::Up,
        &ends.local.senders,
        &ends.remote.receivers,
    );
    down.into_iter().chain(up).collect()
}

fn one_way(
    ends: &Ends<'_>,
    role: OneDirection,
    senders: &[QuicSenderLog],
    receivers: &[QuicReceiverLog],
) -> Option<QuicOutcome> {
    let numbers: Vec<u32> = flow::streams(ends.flows, role)
        .filter(|(_, flow)| flow.quic().is_some())
        .map(|(number, _)| number)
        .collect();
    if numbers.is_empty() {
        return None;
    }
    let duration_s = ends.duration_s.max(f64::MIN_POSITIVE);
    // The server's clock started a round trip before what the client sent could come.
    let shift_s = match role {
        OneDirection::Down => 0.0,
        OneDirection::Up => {
            let idle = senders.iter().filter_map(|log| log.sender.min_rtt_s);
            idle.fold(f64::INFINITY, f64::min)
        }
    };
    let shift_s = if shift_s.is_finite() { shift_s } else { 0.0 };
    let until = |log: &QuicReceiverLog, t_s: f64| count_at(&log.counts, t_s + shift_s);
    let all_until = |t_s: f64| receivers.iter().map(|log| until(log, t_s)).sum::<f64>();
    let known = !receivers.is_empty();
    let end_s = match ends.all_arrived {
        true => f64::INFINITY,
        false => duration_s,
    };
    let bytes = all_until(end_s);
    let stream = |id: &u32| {
        let sender = senders.iter().find(|log| log.stream == *id);
        let receiver = receivers.iter().find(|log| log.stream == *id);
        let bytes = receiver.map_or(0.0, |log| until(log, end_s));
        let early = |end: Option<&StreamEnd>| {
            end.filter(|end| end.t_s < duration_s)
                .map(|end| end.error.clone())
        };
        QuicStream {
            id: *id,
            bytes: bytes as u64,
            bps: bytes * 8.0 / duration_s,
            handshake_s: sender
                .and_then(|log| log.handshake_s)
                .or_else(|| receiver.and_then(|log| log.handshake_s)),
            sender: sender.map(|log| log.sender.clone()),
            dropped_here: receiver.and_then(|log| log.dropped_here),
            corrupted: receiver.and_then(|log| log.corrupted),
            error: early(sender.and_then(|log| log.ended.as_ref()))
                .or_else(|| early(receiver.and_then(|log| log.ended.as_ref()))),
        }
    };
    let mut ccs: Vec<&str> = senders.iter().map(|log| log.cc.as_str()).collect();
    ccs.sort_unstable();
    ccs.dedup();
    let result = QuicResult {
        direction: role.into(),
        protocol: Protocol::Quic,
        bps: known.then(|| bytes * 8.0 / duration_s),
        steady_bps: (known && duration_s >= STEADY_NEEDS_S)
            .then(|| (bytes - all_until(RAMP_S)) * 8.0 / (duration_s - RAMP_S)),
        bytes: known.then_some(bytes as u64),
        cc: ccs.join(", "),
        streams: numbers.iter().map(stream).collect(),
        cpu: ends.cpu,
    };
    let mut series = of_senders(senders, duration_s);
    if let Some(longest) = receivers.iter().max_by_key(|log| log.counts.len()) {
        let mut rate = Series::new(Unit::BitsPerSecond);
        let times: Vec<f64> = longest.counts.iter().map(|count| count.t_s).collect();
        for pair in times.windows(2) {
            let [before, now] = [pair.first(), pair.last()].map(|t| t.map(|t| t - shift_s));
            let (Some(before), Some(now)) = (before, now) else {
                continue;
            };
            // Half an interval: the rate of a few packets says nothing.
            if before >= 0.0 && now <= duration_s && now - before >= 0.05 {
                let bits = (all_until(now) - all_until(before)) * 8.0;
                rate.push((now * 1e6).round() / 1e6, Some(bits / (now - before)));
            }
        }
        series.insert("bps".to_owned(), rate);
    }
    Some(QuicOutcome { result, series })
}

/// What the sending ends saw over time; their threads sample alike.
fn of_senders(senders: &[QuicSenderLog], duration_s: f64) -> BTreeMap<String, Series> {
    let mut cwnd = Series::new(Unit::Bytes);
    let mut rtt = Series::new(Unit::Seconds);
    let mut lost = Series::new(Unit::Count);
    let rounds = senders.iter().map(|log| log.samples.len()).max();
    for round in 0..rounds.unwrap_or(0) {
        let at: Vec<&QuicSample> = senders
            .iter()
            .filter_map(|log| log.samples.get(round))
            .collect();
        let Some(t_s) = at.first().map(|s| s.t_s).filter(|t_s| *t_s <= duration_s) else {
            continue;
        };
        let sum = |of: fn(&QuicSample) -> u64| at.iter().map(|s| of(s) as f64).sum::<f64>();
        cwnd.push(t_s, Some(sum(|s| s.cwnd_bytes)));
        rtt.push(t_s, Some(sum(|s| s.rtt_us) / 1e6 / at.len() as f64));
        lost.push(t_s, Some(sum(|s| s.lost_packets)));
    }
    BTreeMap::from([
        ("cwnd_bytes".to_owned(), cwnd),
        ("rtt_s".to_owned(), rtt),
        ("lost_packets".to_owned(), lost),
    ])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plumb_wire::native::control::flow::Flow;

    use super::*;
    use plumb_model::results::quic::QuicSender;
    use plumb_wire::native::control::flow::quic::QuicFlow;
    use plumb_wire::native::control::report::Count;

    #[test]
    fn what_is_sent_counts_when_it_has_come() {
        let flows = [Flows {
            count: 1,
            role: OneDirection::Up,
            flow: Flow::Quic(QuicFlow::default()),
        }];
        let local = QuicReport {
            senders: vec![QuicSenderLog {
                cc: "cubic".to_owned(),
                sender: QuicSender {
                    min_rtt_s: Some(0.5),
                    ..QuicSender::default()
                },
                ..QuicSenderLog::default()
            }],
            ..QuicReport::default()
        };
        // A megabyte a second, from half a second on.
        let counts = (0..=60).map(|k| Count {
            t_s: f64::from(k) * 0.1,
            bytes: (k as u64).saturating_sub(5) * 100_000,
            ..Count::default()
        });
        let remote = QuicReport {
            receivers: vec![QuicReceiverLog {
                counts: counts.collect(),
                ..QuicReceiverLog::default()
            }],
            ..QuicReport::default()
        };
        let cpu = CpuUse::default();
        let ends = Ends {
            flows: &flows,
            local: &local,
            remote: &remote,
            duration_s: 5.0,
            all_arrived: false,
            cpu,
        };
        let [up] = summarise(&ends).try_into().unwrap();
        assert_eq!(up.result.bytes, Some(5_000_000));
        assert_eq!(
            (up.result.bps, up.result.steady_bps),
            (Some(8e6), Some(8e6))
        );
        let rates = up.series.get("bps").unwrap();
        assert!(rates.points().all(|(_, bps)| (bps - 8e6).abs() < 1.0));
        let lost = QuicReport::default();
        let [up] = summarise(&Ends {
            remote: &lost,
            ..ends
        })
        .try_into()
        .unwrap();
        assert_eq!((up.result.bps, up.result.streams.len()), (None, 1));
    }
}

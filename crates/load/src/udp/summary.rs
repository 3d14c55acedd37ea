//! From both ends' logs to the result of each UDP stream. Pure.

use std::collections::BTreeMap;

use plumb_model::direction::OneDirection;
use plumb_model::results::CpuUse;
use plumb_model::results::udp::{UdpReceiver, UdpResult, UdpSender};
use plumb_model::series::{Series, Unit};
use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};
use plumb_wire::native::control::flow::{self, Flows};
use plumb_wire::native::control::report::udp::{UdpReceiverLog, UdpReport, UdpSenderLog};
use plumb_wire::native::control::report::{Count, StreamEnd};
use plumb_wire::native::spec::SAMPLE_INTERVAL;

/// What one UDP stream came to.
#[derive(Debug, Clone, PartialEq)]
pub struct UdpOutcome {
    /// Its result, without the one-way delay: that takes a comparison of the clocks.
    pub result: UdpResult,
    /// Every 100 ms, by the receiver's clock, of what came since the point before: `bps`, payload received;
    /// `loss_ratio`, of the packets that were due; `pdv_s` and `pdv_max_s`, mean and greatest delay above the
    /// smallest of the stream.
    pub series: BTreeMap<String, Series>,
    /// Smallest delay by the two hosts' clocks, in nanoseconds; absent when nothing came.
    pub min_delay_ns: Option<i64>,
    /// Whether the clock of either host was stepped meanwhile.
    pub clock_stepped: bool,
}

impl UdpOutcome {
    /// Payload that it carried: what arrived, or what was sent where that is not known.
    pub fn bytes(&self) -> u64 {
        let came = self.result.receiver.as_ref().map(|r| r.received_bytes);
        let sent = self.result.sender.as_ref().map(|s| s.sent_bytes);
        came.or(sent).unwrap_or(0)
    }
}

/// What there is to summarise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends<'a> {
    /// The streams, as asked for.
    pub(crate) flows: &'a [Flows],
    pub(crate) local: &'a UdpReport,
    /// The far host's; nothing when it was lost.
    pub(crate) remote: &'a UdpReport,
    /// How long the phase took.
    pub(crate) duration_s: f64,
    /// Whether it ended because all that was to be sent had been.
    pub(crate) all_arrived: bool,
    /// Processor use of both ends.
    pub(crate) cpu: CpuUse,
}

/// The UDP streams of a phase, downloads first.
pub(crate) fn summarise(ends: &Ends<'_>) -> Vec<UdpOutcome> {
    let of = |role, senders: &UdpReport, receivers: &UdpReport| -> Vec<_> {
        let udp = flow::streams(ends.flows, role)
            .filter_map(|(number, flow)| Some((number, flow.udp()?)));
        udp.map(|(number, flow)| {
            let sender = senders.senders.iter().find(|log| log.stream == number);
            let receiver = receivers.receivers.iter().find(|log| log.stream == number);
            outcome(ends, (role, number, flow), sender, receiver)
        })
        .collect()
    };
    let mut all = of(OneDirection::Down, ends.remote, ends.local);
    all.extend(of(OneDirection::Up, ends.local, ends.remote));
    all
}

fn outcome(
    ends: &Ends<'_>,
    (role, number, flow): (OneDirection, u32, &UdpFlow),
    sender: Option<&UdpSenderLog>,
    receiver: Option<&UdpReceiverLog>,
) -> UdpOutcome {
    let duration_s = ends.duration_s.max(f64::MIN_POSITIVE);
    let lasted_s = receiver.map(|log| {
        let slots = sender.map_or(log.known, |log| slots(&log.sender));
        let scheduled_s = match (scheduled_s(flow, slots, duration_s), ends.all_arrived) {
            (Some(scheduled_s), true) => scheduled_s,
            (scheduled_s, false) => scheduled_s.unwrap_or(0.0).max(duration_s),
            (None, true) if log.span_s > 0.0 => log.span_s,
            (None, true) => duration_s,
        };
        // Through a queue packets come for longer than they were sent.
        scheduled_s.max(log.span_s).max(f64::MIN_POSITIVE)
    });
    let bps = receiver
        .zip(lasted_s)
        .map(|(log, lasted_s)| log.receiver.received_bytes as f64 * 8.0 / lasted_s);
    let early = |end: &Option<StreamEnd>| {
        let end = end.as_ref().filter(|end| end.t_s < duration_s);
        end.map(|end| end.error.clone())
    };
    let error = sender
        .and_then(|log| early(&log.ended))
        .or_else(|| receiver.and_then(|log| early(&log.ended)));
    let result = UdpResult {
        direction: role.into(),
        stream: number,
        pattern: flow.pattern.name().to_owned(),
        payload_bytes: u32::from(flow.largest_bytes()),
        asked_bps: flow.mean_bps(),
        gso_segments: u32::from(flow.gso.unwrap_or(1)),
        gro: flow.gro,
        bps,
        sender: sender.map(|log| log.sender.clone()),
        receiver: receiver.map(|log| whole(log, sender.map(|log| &log.sender))),
        one_way_delay: None,
        standing_s: None,
        probe_wait_s: None,
        cpu: ends.cpu,
        error,
    };
    let series = receiver.map(|log| {
        // Where no word of the end came either, nothing came of what was sent later.
        let is_cut_off = sender.is_some_and(|sender| sender.sender.sent > log.known);
        let until_s = duration_s.min(lasted_s.unwrap_or(duration_s));
        over_time(&log.counts, until_s, is_cut_off)
    });
    UdpOutcome {
        result,
        series: series.unwrap_or_default(),
        min_delay_ns: receiver.and_then(|log| log.min_delay_ns),
        clock_stepped: sender.is_some_and(|log| log.clock_stepped)
            || receiver.is_some_and(|log| log.clock_stepped),
    }
}

/// What the receiver saw, with what only the sender knows: packets after the last that came,
/// when no word of the end came either.
fn whole(log: &UdpReceiverLog, sender: Option<&UdpSender>) -> UdpReceiver {
    let mut receiver = log.receiver.clone();
    let more = sender.map_or(0, |sender| sender.sent.saturating_sub(log.known));
    if more > 0 {
        receiver.lost += more;
        receiver.lost_on_path = receiver.lost_on_path.map(|lost| lost + more);
        receiver.losses.periods = receiver.losses.periods.saturating_add(1);
    }
    // Worked out here: a far end may say anything.
    let sent = log.known + more;
    if sent > 0 {
        receiver.loss_ratio = receiver.lost as f64 / sent as f64;
    }
    receiver
}

/// Packets that were due to be sent.
fn slots(sender: &UdpSender) -> u64 {
    let left_out = sender.missed.saturating_add(sender.refused);
    sender.sent.saturating_add(left_out)
}

/// The time for which packets at even intervals stand, each for the interval after it: the third of them, two
/// seconds apart, is of a sixth second, also where the phase was over after `duration_s` of five.
fn scheduled_s(flow: &UdpFlow, slots: u64, duration_s: f64) -> Option<f64> {
    let Pattern::Constant { pps } = flow.pattern else {
        return None;
    };
    let last_s = f64::from(flow.gso.unwrap_or(1)) / pps;
    Some((slots as f64 / pps).min(duration_s + last_s))
}

/// Shortest time that a point is of: the rate of a few packets says nothing.
const SHORTEST_S: f64 = SAMPLE_INTERVAL.as_secs_f64() / 2.0;

/// The series of a stream of which so much came; nothing comes any more of one that `is_cut_off`.
fn over_time(counts: &[Count], duration_s: f64, is_cut_off: bool) -> BTreeMap<String, Series> {
    let mut bps = Series::new(Unit::BitsPerSecond);
    let mut loss = Series::new(Unit::Ratio);
    let mut pdv = [Series::new(Unit::Seconds), Series::new(Unit::Seconds)];
    for pair in counts.windows(2) {
        let [before, now] = pair else { continue };
        let since_s = now.t_s - before.t_s;
        if since_s >= SHORTEST_S {
            let bytes = now.bytes.saturating_sub(before.bytes);
            bps.push(now.t_s, Some(bytes as f64 * 8.0 / since_s));
        }
        if let Some(datagrams) = now.datagrams {
            let before = before.datagrams.unwrap_or_default();
            let due = datagrams.due.saturating_sub(before.due);
            let lost = datagrams.lost.saturating_sub(before.lost).min(due);
            loss.push(now.t_s, (due > 0).then(|| lost as f64 / due as f64));
            let [mean, max] = &mut pdv;
            let seconds = |ns: u64| ns as f64 / 1e9;
            mean.push(now.t_s, datagrams.delay.map(|d| seconds(d.mean_ns)));
            max.push(now.t_s, datagrams.delay.map(|d| seconds(d.max_ns)));
        }
    }
    // Silence until the end.
    let mut t_s = counts.last().map_or(0.0, |count| count.t_s);
    let per_s = SAMPLE_INTERVAL.as_secs_f64().recip();
    while duration_s - t_s >= SHORTEST_S {
        t_s = (((t_s + SHORTEST_S) * per_s).ceil() / per_s).min(duration_s);
        bps.push(t_s, Some(0.0));
        if is_cut_off {
            loss.push(t_s, Some(1.0));
        }
    }
    let [mean, max] = pdv;
    let all = [
        ("bps", bps),
        ("loss_ratio", loss),
        ("pdv_s", mean),
        ("pdv_max_s", max),
    ];
    let known = all.into_iter().filter(|(_, series)| !series.t_s.is_empty());
    known
        .map(|(name, series)| (name.to_owned(), series))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use plumb_wire::native::control::flow::Flow;

    use super::*;
    use plumb_wire::native::control::report::{DatagramCount, DelayAbove};

    fn summary(sender: Option<UdpSenderLog>, receiver: Option<UdpReceiverLog>) -> UdpOutcome {
        summary_of(sender, receiver, false)
    }

    fn summary_of(
        sender: Option<UdpSenderLog>,
        receiver: Option<UdpReceiverLog>,
        all_arrived: bool,
    ) -> UdpOutcome {
        let flows = [Flows {
            count: 1,
            role: OneDirection::Down,
            flow: Flow::Udp(UdpFlow::new(1250, Pattern::Constant { pps: 1000.0 })),
        }];
        let remote = UdpReport {
            senders: sender.into_iter().collect(),
            ..UdpReport::default()
        };
        let local = UdpReport {
            receivers: receiver.into_iter().collect(),
            ..UdpReport::default()
        };
        let mut all = summarise(&Ends {
            flows: &flows,
            local: &local,
            remote: &remote,
            duration_s: 2.0,
            all_arrived,
            cpu: CpuUse::default(),
        });
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn sent(packets: u64) -> Option<UdpSenderLog> {
        Some(UdpSenderLog {
            sender: UdpSender {
                sent: packets,
                ..UdpSender::default()
            },
            ..UdpSenderLog::default()
        })
    }

    fn received(known: u64, lost: u64, span_s: f64) -> Option<UdpReceiverLog> {
        let receiver = UdpReceiver {
            received: known - lost,
            received_bytes: (known - lost) * 1250,
            lost,
            lost_on_path: Some(lost),
            ..UdpReceiver::default()
        };
        Some(UdpReceiverLog {
            receiver,
            known,
            span_s,
            ..UdpReceiverLog::default()
        })
    }

    #[test]
    fn what_was_lost_after_the_last_is_known_from_the_sender() {
        let result = summary(sent(2000), received(1900, 100, 1.9)).result;
        let receiver = result.receiver.unwrap();
        assert_eq!((receiver.lost, receiver.loss_ratio), (200, 0.1));
        assert_eq!(receiver.lost_on_path, Some(200));
        assert_eq!((result.bps, result.asked_bps), (Some(9e6), Some(1e7)));
        let result = summary(sent(2000), received(2000, 0, 4.0)).result;
        assert_eq!(result.bps, Some(5e6), "a queue stretched it");
        assert_eq!(result.receiver.unwrap().lost, 0);
    }

    #[test]
    fn a_packet_at_even_intervals_is_of_the_interval_after_it() {
        let of = |pattern, gso| UdpFlow {
            gso,
            ..UdpFlow::new(1250, pattern)
        };
        let lasts_s = |flow: &UdpFlow, slots| scheduled_s(flow, slots, 5.0);
        let constant = |pps| Pattern::Constant { pps };
        let sparse = of(constant(0.5), None);
        assert_eq!(lasts_s(&sparse, 3), Some(6.0));
        assert_eq!(lasts_s(&of(constant(10.0), Some(4)), 52), Some(5.2));
        // What no sender had.
        assert_eq!(lasts_s(&sparse, u64::MAX), Some(7.0));
        assert_eq!(lasts_s(&of(Pattern::Poisson { pps: 0.5 }, None), 3), None);
    }

    #[test]
    fn what_was_sent_early_is_of_the_time_in_which_it_was() {
        // Of two seconds one was left when all 10 Mbit that were allowed had come.
        let log = || received(1000, 0, 0.999);
        let bps = |all_arrived| summary_of(sent(1000), log(), all_arrived).result.bps;
        assert_eq!((bps(false), bps(true)), (Some(5e6), Some(1e7)));
    }

    #[test]
    fn what_came_is_told_over_time() {
        let count = |t_s: f64, bytes, due, lost, delay_ms: u64| Count {
            t_s,
            bytes,
            datagrams: Some(DatagramCount {
                due,
                lost,
                delay: (delay_ms > 0).then(|| DelayAbove {
                    mean_ns: delay_ms * 1_000_000,
                    max_ns: delay_ms * 2_000_000,
                }),
            }),
        };
        let counts = vec![
            Count::default(),
            count(0.1, 125_000, 100, 0, 1),
            count(0.2, 125_000, 100, 0, 0),
            count(0.3, 187_500, 300, 150, 4),
            count(0.32, 190_000, 302, 150, 4),
        ];
        let log = received(302, 150, 0.3).map(|log| UdpReceiverLog { counts, ..log });
        let series = |packets| summary(sent(packets), log.clone()).series;
        let all = series(302);
        let values = |name: &str| all[name].values[..4].to_vec();
        // The last is too short to have a rate, and then nothing comes.
        let rates = values("bps").into_iter().map(|bps| bps.map(f64::round));
        assert_eq!(rates.collect::<Vec<_>>(), [1e7, 0.0, 5e6, 0.0].map(Some));
        assert_eq!(all["bps"].t_s.len(), 3 + 17);
        assert_eq!(all["bps"].t_s[3..6], [0.4, 0.5, 0.6]);
        assert_eq!(all["bps"].t_s.last(), Some(&2.0));
        let lost = [Some(0.0), None, Some(0.75), Some(0.0)];
        assert_eq!(values("loss_ratio"), lost);
        assert_eq!(all["loss_ratio"].t_s.len(), 4);
        assert_eq!(
            values("pdv_s"),
            [Some(0.001), None, Some(0.004), Some(0.004)]
        );
        assert_eq!(values("pdv_max_s")[2], Some(0.008));
        // Of what was sent after the last that came nothing arrived.
        let cut = series(2000);
        assert_eq!(cut["loss_ratio"].values[5], Some(1.0));
        assert_eq!(cut["loss_ratio"].t_s.last(), Some(&2.0));
    }

    #[test]
    fn what_no_end_told_is_absent() {
        let result = summary(None, received(10, 0, 1.0)).result;
        assert_eq!(
            (result.sender, result.receiver.unwrap().received),
            (None, 10)
        );
        let result = summary(sent(10), None).result;
        assert!(result.receiver.is_none() && result.bps.is_none());
    }
}

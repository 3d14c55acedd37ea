//! From both ends' logs to the result of each UDP stream. Pure.

use std::collections::BTreeMap;

use plumb_model::results::udp::{UdpReceiver, UdpResult, UdpSender};
use plumb_model::results::{CpuUse, Direction};
use plumb_model::series::{Series, Unit};
use plumb_wire::native::control::flow::udp::UdpFlow;
use plumb_wire::native::control::flow::{self, Flow, Flows};
use plumb_wire::native::control::frame::Role;
use plumb_wire::native::control::report::udp::{UdpReceiverLog, UdpReport, UdpSenderLog};
use plumb_wire::native::control::report::{Count, StreamEnd};

/// What one UDP stream came to.
#[derive(Debug, Clone, PartialEq)]
pub struct UdpOutcome {
    /// Its result, without the one-way delay: that takes a comparison of the clocks.
    pub result: UdpResult,
    /// `bps`: payload received, over the time since the point before, by the receiver's clock.
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
    /// This host's record.
    pub(crate) local: &'a UdpReport,
    /// The far host's; nothing when it was lost.
    pub(crate) remote: &'a UdpReport,
    /// How long the phase took.
    pub(crate) duration_s: f64,
    /// Processor use of both ends.
    pub(crate) cpu: CpuUse,
}

/// The UDP streams of a phase, downloads first.
pub(crate) fn summarise(ends: &Ends<'_>) -> Vec<UdpOutcome> {
    let of = |role, senders: &UdpReport, receivers: &UdpReport| -> Vec<_> {
        let udp = flow::streams(ends.flows, role).filter_map(|(number, flow)| match flow {
            Flow::Udp(flow) => Some((number, flow)),
            Flow::Tcp(_) | Flow::Quic(_) | Flow::Transactions(_) => None,
        });
        udp.map(|(number, flow)| {
            let sender = senders.senders.iter().find(|log| log.stream == number);
            let receiver = receivers.receivers.iter().find(|log| log.stream == number);
            outcome(ends, (role, number, flow), sender, receiver)
        })
        .collect()
    };
    let mut all = of(Role::Down, ends.remote, ends.local);
    all.extend(of(Role::Up, ends.local, ends.remote));
    all
}

fn outcome(
    ends: &Ends<'_>,
    (role, number, flow): (Role, u32, &UdpFlow),
    sender: Option<&UdpSenderLog>,
    receiver: Option<&UdpReceiverLog>,
) -> UdpOutcome {
    let duration_s = ends.duration_s.max(f64::MIN_POSITIVE);
    // Through a queue packets come for longer than they were sent.
    let bps =
        receiver.map(|log| log.receiver.received_bytes as f64 * 8.0 / duration_s.max(log.span_s));
    let early = |end: &Option<StreamEnd>| {
        let end = end.as_ref().filter(|end| end.t_s < duration_s);
        end.map(|end| end.error.clone())
    };
    let error = sender
        .and_then(|log| early(&log.ended))
        .or_else(|| receiver.and_then(|log| early(&log.ended)));
    let result = UdpResult {
        direction: match role {
            Role::Down => Direction::Down,
            Role::Up => Direction::Up,
        },
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
        cpu: ends.cpu,
        error,
    };
    let mut series = BTreeMap::new();
    if let Some(log) = receiver {
        series.insert("bps".to_owned(), rate(&log.counts));
    }
    UdpOutcome {
        result,
        series,
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
    if more == 0 {
        return receiver;
    }
    receiver.lost += more;
    receiver.lost_on_path = receiver.lost_on_path.map(|lost| lost + more);
    receiver.losses.periods += 1;
    let sent = log.known + more;
    receiver.loss_ratio = receiver.lost as f64 / sent as f64;
    receiver
}

fn rate(counts: &[Count]) -> Series {
    let mut series = Series::new(Unit::BitsPerSecond);
    for pair in counts.windows(2) {
        let [before, now] = pair else { continue };
        let since_s = now.t_s - before.t_s;
        // Half an interval: the rate of a few packets says nothing.
        if since_s >= 0.05 {
            let bytes = now.bytes.saturating_sub(before.bytes);
            series.push(now.t_s, Some(bytes as f64 * 8.0 / since_s));
        }
    }
    series
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_wire::native::control::flow::udp::Pattern;

    fn summary(sender: Option<UdpSenderLog>, receiver: Option<UdpReceiverLog>) -> UdpOutcome {
        let flows = [Flows {
            count: 1,
            role: Role::Down,
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

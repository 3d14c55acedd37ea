//! What of the far end's record can be: nothing arrives that was not sent, and no processor works longer
//! than it is there. Pure.
//!
//! The record comes from the network, and the host that made it may err or lie. What contradicts what
//! this end saw itself is left out and named; this end's own record stays.

use std::cmp::max;

use plumb_model::direction::OneDirection;
use plumb_wire::native::control::report::udp::UdpReceiverLog;
use plumb_wire::native::control::report::{Count, ReceiverLog, Report, SenderLog, TcpSample};

use crate::logs::acknowledged;

/// What may have passed between the last looks of the two ends and still be true: more than any
/// socket takes in one call.
const SLACK_BYTES: u64 = 4 << 20;

/// Most processors that Linux knows (CONFIG_NR_CPUS of its largest builds).
const MOST_PROCESSORS: f64 = 8192.0;

/// Takes out of the far end's record what cannot be, and says so.
pub(crate) fn without_the_impossible(local: &Report, remote: &mut Report) -> Vec<String> {
    let mut notes = Vec::new();
    let mut no = |stream: u32, direction: OneDirection, why: &str| {
        notes.push(format!(
            "what the far host says of stream {stream} {direction} cannot be ({why}): its record of that stream is left out"
        ));
        false
    };
    remote.receivers.retain(|log| {
        let stream = log.tail.stream;
        let sent = local.senders.iter().find(|sent| sent.tail.stream == stream);
        match sent.and_then(written) {
            Some(sent) if read(&log.counts) > sent => {
                no(stream, OneDirection::Up, "it received more than was sent")
            }
            _ => true,
        }
    });
    remote.senders.retain(|log| {
        let stream = log.tail.stream;
        let came = local
            .receivers
            .iter()
            .find(|came| came.tail.stream == stream);
        let acked = acknowledged(&log.samples)
            .iter()
            .map(|count| count.bytes)
            .max();
        match came {
            Some(came) if !log.tail.mptcp && acked.unwrap_or(0) > taken(came) => no(
                stream,
                OneDirection::Down,
                "it had more acknowledged than arrived",
            ),
            _ => true,
        }
    });
    remote.udp.receivers.retain(|log| {
        let sent = local
            .udp
            .senders
            .iter()
            .find(|sent| sent.stream == log.stream);
        let came = &log.receiver;
        match sent.map(|sent| &sent.sender) {
            Some(sent) if came.received > sent.sent || came.received_bytes > sent.sent_bytes => no(
                log.stream,
                OneDirection::Up,
                "it received more than was sent",
            ),
            Some(sent) if log.known > sent.sent => no(
                log.stream,
                OneDirection::Up,
                "it knows of more than was sent",
            ),
            Some(_) if !adds_up(log) => no(
                log.stream,
                OneDirection::Up,
                "what it received and what it lost do not add up",
            ),
            _ => true,
        }
    });
    remote.udp.senders.retain(|log| {
        let came = local
            .udp
            .receivers
            .iter()
            .find(|came| came.stream == log.stream);
        match came.map(|came| &came.receiver) {
            Some(came) if came.received > log.sender.sent => {
                no(log.stream, OneDirection::Down, "more arrived than it sent")
            }
            _ => true,
        }
    });
    remote.quic.receivers.retain(|log| {
        let sent = local
            .quic
            .senders
            .iter()
            .find(|sent| sent.stream == log.stream);
        match sent.map(|sent| sent.sender.sent_bytes) {
            Some(sent) if read(&log.counts) > sent.saturating_add(SLACK_BYTES) => no(
                log.stream,
                OneDirection::Up,
                "it received more than was sent",
            ),
            _ => true,
        }
    });
    let used = remote.cpu_s / remote.elapsed_s;
    if remote.elapsed_s > 0.0 && !(0.0..=MOST_PROCESSORS).contains(&used) {
        notes.push(
            "what the far host says of its processor use cannot be: it is left out".to_owned(),
        );
        (remote.elapsed_s, remote.cpu_s) = (0.0, 0.0);
    }
    notes
}

/// Whether every packet that a receiver knows of came or was lost.
fn adds_up(log: &UdpReceiverLog) -> bool {
    let came = &log.receiver;
    came.received.checked_add(came.lost) == Some(log.known)
        && came.corrupted <= came.lost
        && came.lost_on_path.is_none_or(|lost| lost <= came.lost)
}

/// Payload that a receiver counted.
fn read(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.bytes).max().unwrap_or(0)
}

/// All that can have arrived of a stream that this end sent; `None` where no sample was taken, or where TCP's counters
/// are of one of several subflows.
fn written(log: &SenderLog) -> Option<u64> {
    let held = |sample: &TcpSample| {
        let under_way = max(sample.in_flight_bytes, sample.sacked_bytes);
        sample
            .bytes_acked
            .saturating_add(under_way)
            .saturating_add(sample.notsent_bytes)
    };
    let most = log.samples.iter().map(held).max()?;
    (!log.tail.mptcp).then(|| most.saturating_add(SLACK_BYTES))
}

/// All that can have been acknowledged of a stream that this end received: what was read, and what waits.
fn taken(log: &ReceiverLog) -> u64 {
    let waits = log.tail.receive_buffer_bytes.unwrap_or(0);
    read(&log.counts)
        .saturating_add(waits)
        .saturating_add(SLACK_BYTES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::udp::{UdpReceiver, UdpSender};
    use plumb_wire::native::control::report::udp::UdpSenderLog;
    use plumb_wire::native::control::report::{ReceiverTail, SenderTail};
    use proptest::prelude::*;

    fn sent(bytes_acked: u64) -> SenderLog {
        SenderLog {
            tail: SenderTail::default(),
            samples: vec![
                TcpSample::default(),
                TcpSample {
                    t_s: 1.0,
                    bytes_acked,
                    ..TcpSample::default()
                },
            ],
        }
    }

    fn received(bytes: u64) -> ReceiverLog {
        ReceiverLog {
            tail: ReceiverTail::default(),
            counts: vec![Count {
                t_s: 1.0,
                bytes,
                ..Count::default()
            }],
        }
    }

    fn believed(local: &Report, remote: &Report) -> (Report, Vec<String>) {
        let mut left = remote.clone();
        let notes = without_the_impossible(local, &mut left);
        (left, notes)
    }

    #[test]
    fn tcp_that_arrived_without_being_sent_is_left_out() {
        let up = Report {
            senders: vec![sent(1_000_000_000)],
            ..Report::default()
        };
        let down = Report {
            receivers: vec![received(1_000_000_000)],
            ..Report::default()
        };
        for (bytes, believable) in [
            (1_000_100_000, true),
            (2_000_000_000, false),
            (u64::MAX, false),
        ] {
            let claimed = Report {
                receivers: vec![received(bytes)],
                ..Report::default()
            };
            let (left, notes) = believed(&up, &claimed);
            assert_eq!(
                (left.receivers.len() == 1, notes.is_empty()),
                (believable, believable)
            );
            let claimed = Report {
                senders: vec![sent(bytes)],
                ..Report::default()
            };
            let (left, notes) = believed(&down, &claimed);
            assert_eq!(
                (left.senders.len() == 1, notes.is_empty()),
                (believable, believable)
            );
        }
    }

    #[test]
    fn so_are_datagrams() {
        let sent = |sent| UdpSenderLog {
            sender: UdpSender {
                sent,
                sent_bytes: sent * 100,
                ..UdpSender::default()
            },
            ..UdpSenderLog::default()
        };
        let received = |received| UdpReceiverLog {
            receiver: UdpReceiver {
                received,
                received_bytes: received * 100,
                ..UdpReceiver::default()
            },
            known: received,
            ..UdpReceiverLog::default()
        };
        for (more, believable) in [(0, true), (1, false)] {
            let (mut local, mut remote) = (Report::default(), Report::default());
            local.udp.senders.push(sent(50));
            remote.udp.receivers.push(received(50 + more));
            local.udp.receivers.push(received(50));
            remote.udp.senders.push(sent(50 - more));
            let (left, notes) = believed(&local, &remote);
            assert_eq!(notes.is_empty(), believable, "{notes:?}");
            let kept = (left.udp.receivers.len(), left.udp.senders.len());
            assert_eq!(kept == (1, 1), believable, "{kept:?}");
        }
        // Of fifty sent, what it lost is what it knows of and did not get.
        for (came, lost, lost_on_path, known, believable) in [
            (40, 8, Some(3), 48, true),
            (40, 10, None, 50, true),
            (40, 8, None, 50, false),
            (40, 11, None, 51, false),
            (40, 10, Some(11), 50, false),
            (1, u64::MAX, None, 0, false),
        ] {
            let (mut local, mut remote) = (Report::default(), Report::default());
            local.udp.senders.push(sent(50));
            let mut log = received(came);
            (log.receiver.lost, log.receiver.lost_on_path) = (lost, lost_on_path);
            log.known = known;
            remote.udp.receivers.push(log);
            let (left, notes) = believed(&local, &remote);
            let kept = (left.udp.receivers.len() == 1, notes.is_empty());
            assert_eq!(kept, (believable, believable), "{came} {lost} {known}");
        }
    }

    proptest! {
        #[test]
        fn no_processor_use_makes_a_number_that_is_none(cpu_s: f64, elapsed_s: f64) {
            let claimed = Report { cpu_s, elapsed_s, ..Report::default() };
            let (left, _) = believed(&Report::default(), &claimed);
            if left.elapsed_s > 0.0 {
                prop_assert!((0.0..=MOST_PROCESSORS).contains(&(left.cpu_s / left.elapsed_s)));
            }
        }
    }
}

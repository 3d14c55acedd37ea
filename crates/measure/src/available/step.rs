//! One step of the search: a short stream of UDP at a constant rate, and what it showed.

use std::time::Duration;

use plumb_load::PhaseOutcome;
use plumb_wire::native::control::flow::udp::{MAX_PAYLOAD_BYTES, Pattern, UdpFlow};

use super::search::Seen;

/// UDP payload of a packet: large, so that headers count little, and small enough for the tunnels
/// of most paths.
const PAYLOAD_BYTES: u16 = 1400;

/// The shortest step: with it, a queue that grows by 1 % holds 15 ms, which shows above what packets
/// wait on an ordinary path.
const SHORTEST: Duration = Duration::from_millis(1500);

/// The longest: the guide's.
const LONGEST: Duration = Duration::from_secs(10);

/// Packets of a step: so many show 0.5 % of random loss to be no more than 1 %, at two standard
/// deviations.
const PACKETS: f64 = 1000.0;

/// Packets of so long are handed to the kernel together, so that a sender need not wake up for
/// each of them; iperf3 sends what is due in the same steps (its --pacing-timer, 1000 µs).
const TRAIN: Duration = Duration::from_millis(1);

/// Packets of a train up to 1 Gbit/s: 22 kB, which the queues of fast links hold many times.
const TRAIN_PACKETS: f64 = 16.0;

/// Above, packets of so long, as many as fit into one send: a sender leaves out what it is a train late
/// for, and one that had to be on time to 36 µs, as at 5 Gbit/s, would leave out much wherever
/// something else runs on its processor.
const FAST_TRAIN: Duration = Duration::from_micros(180);

/// Packets that one send takes.
const MOST_TRAIN_PACKETS: f64 = (MAX_PAYLOAD_BYTES / PAYLOAD_BYTES) as f64;

/// From this rate on the receiver takes trains from its kernel: packet by packet would take a
/// processor.
const TRAINS_RECEIVED_FROM_BPS: f64 = 1e9;

/// The least of a step that would take more than its part of what may still be transferred: a queue
/// that grows by 1 % holds 5 ms then, which shows on paths so fast.
const LEAST: Duration = Duration::from_millis(500);

/// The part of what may still be transferred that a step is to take at most, so that others can follow.
const PART_OF_BUDGET: f64 = 0.25;

/// How long a step at that rate has to be, where `most` is allowed and `left` bytes may be transferred.
pub(super) fn duration(bps: f64, most: Duration, left: u64) -> Duration {
    let packets_per_s = bps / 8.0 / f64::from(PAYLOAD_BYTES);
    let wanted =
        Duration::from_secs_f64((PACKETS / packets_per_s.max(1.0)).min(LONGEST.as_secs_f64()))
            .max(SHORTEST);
    let affordable_s = left as f64 * PART_OF_BUDGET * 8.0 / bps.max(1.0);
    let affordable = Duration::from_secs_f64(affordable_s.min(LONGEST.as_secs_f64()));
    wanted.min(affordable.max(LEAST)).min(most)
}

/// The packets of a step.
pub(super) fn flow(bps: f64) -> UdpFlow {
    let pps = bps / 8.0 / f64::from(PAYLOAD_BYTES);
    let slow = (pps * TRAIN.as_secs_f64()).min(TRAIN_PACKETS);
    let fast = (pps * FAST_TRAIN.as_secs_f64()).min(MOST_TRAIN_PACKETS);
    let train = slow.max(fast) as u16;
    UdpFlow {
        gso: (train > 1).then_some(train),
        gro: bps >= TRAINS_RECEIVED_FROM_BPS,
        ..UdpFlow::new(PAYLOAD_BYTES, Pattern::Constant { pps })
    }
}

/// What a step at `asked_bps` showed; none where an end lost its record of it.
pub(super) fn seen(asked_bps: f64, outcome: &PhaseOutcome) -> Option<Seen> {
    let result = &outcome.udp.first()?.result;
    let (sender, receiver) = (result.sender.as_ref()?, result.receiver.as_ref()?);
    let duration_s = outcome.duration_s.max(f64::MIN_POSITIVE);
    let known = (receiver.received + receiver.lost).max(1) as f64;
    // The smallest possible number: a far end of an earlier version does not report how many packets were in the trains
    // that its socket dropped.
    let on_path = receiver
        .lost_on_path
        .unwrap_or(match receiver.dropped_here {
            0 => receiver.lost,
            _ => 0,
        });
    let sent_bps = sender.sent_bytes as f64 * 8.0 / duration_s;
    let received_bps = result.bps.unwrap_or(0.0);
    let arrived_ratio = receiver.received as f64 / known;
    // A growing queue shows in two ways, each of which a few late packets can feign: delays
    // spread evenly from none to the last, and what comes takes longer than it was sent for.
    let spread = receiver
        .pdv_s
        .as_ref()
        .map_or(0.0, |pdv| 2.0 * (pdv.p75 - pdv.p25) / duration_s);
    let stretched = if received_bps > 0.0 {
        (sent_bps * arrived_ratio / received_bps - 1.0).max(0.0)
    } else {
        0.0
    };
    Some(Seen {
        asked_bps,
        duration_s,
        sent_bps,
        received_bps,
        loss_ratio: on_path as f64 / known,
        dropped_here_ratio: receiver.lost.saturating_sub(on_path) as f64 / known,
        queued_ratio: spread.min(stretched),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn slow_lines_get_longer_steps() {
        let most = Duration::from_secs(60);
        let plenty = 1_000_000_000_000;
        assert_eq!(duration(50e6, most, plenty), SHORTEST);
        assert_eq!(duration(0.5e6, most, plenty), LONGEST);
        // 178.6 packets a second at 2 Mbit/s.
        assert!((duration(2e6, most, plenty).as_secs_f64() - 5.6).abs() < 0.01);
        assert_eq!(
            duration(0.5e6, Duration::from_secs(3), plenty),
            Duration::from_secs(3)
        );
    }

    #[test]
    fn fast_lines_get_shorter_ones_where_little_may_be_transferred() {
        let most = Duration::from_secs(60);
        // A quarter of 8 GB at 20 Gbit/s.
        let fast = duration(20e9, most, 8_000_000_000);
        assert!((fast.as_secs_f64() - 0.8).abs() < 1e-6, "{fast:?}");
        assert_eq!(duration(20e9, most, 1_000_000_000), LEAST);
        assert_eq!(duration(50e6, most, 8_000_000_000), SHORTEST);
    }

    #[test]
    fn a_step_is_the_rate_that_was_asked_for() {
        for (bps, train, gro) in [
            (1e6, None, false),
            (50e6, Some(4), false),
            (1e9, Some(16), true),
            (2e9, Some(32), true),
            (5e9, Some(46), true),
        ] {
            let flow = flow(bps);
            assert!((flow.mean_bps().unwrap() - bps).abs() < 1.0);
            assert_eq!((flow.gso, flow.gro), (train, gro));
        }
    }
}

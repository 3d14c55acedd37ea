//! COBALT: CoDel for flows that answer to its signals, BLUE beside it for those that do not.
//! Follows sch_cake.c, whose CoDel differs from RFC 8289: it has one schedule for the first signal and the later ones,
//! and lets its count decay step by step after the congestion.

use std::time::Duration;

use rand::RngExt;

use crate::packet::Packet;
use crate::queue::codel::control_law;
use crate::random::Random;
use crate::stats::DropCause;
use crate::time::Time;

/// BLUE's steps as shares of 2^32: 1/256 up when the queue overflowed, 1/4096 down when it was
/// found empty.
const UP: u32 = 1 << 24;
const DOWN: u32 = 1 << 20;
/// The largest packet of the line, in bytes: an Ethernet's with its header.
pub(super) const MTU: u64 = 1514;

/// The settings of one tin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameters {
    /// The acceptable standing delay, and the shortest time between two steps of BLUE.
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// The time that the tin needs for the largest packet.
    pub(super) mtu_time: Duration,
}

impl Parameters {
    /// For a tin of `rate` bytes a second; slow ones must be allowed the time that a packet or
    /// two take.
    pub(super) fn new(rate: u64, rtt: Duration) -> Self {
        let mtu_time = Duration::from_nanos(MTU * 1_000_000_000 / rate.max(1));
        // 5 to 10 % of the interval, says RFC 8289 section 4.3.
        let wanted = rtt / 20;
        let target = wanted.max(mtu_time * 3 / 2);
        Self {
            target,
            interval: (rtt + (target - wanted)).max(target * 2),
            mtu_time,
        }
    }
}

/// The state of one queue.
#[derive(Debug, Default)]
pub(super) struct Cobalt {
    /// Signals in this congestion; the next comes an interval divided by its square root later.
    count: u32,
    /// When to signal next; when the count next decays; or how long the queue is kept in mind.
    drop_next: Time,
    dropping: bool,
    /// Whether the interval was ever divided by the root of a count. Before that the kernel's
    /// root is zero, so that the first congestion of a queue is signalled without the interval's
    /// grace, at the second packet above target.
    counted: bool,
    /// BLUE's probability of dropping, as a share of 2^32.
    p_drop: u32,
    /// When BLUE last made a step.
    blue_step: Option<Time>,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    pub(super) marked: bool,
    /// Why it should be dropped.
    pub(super) drop: Option<DropCause>,
}

impl Cobalt {
    /// A packet of the queue was dropped because there was no more room.
    pub(super) fn queue_full(&mut self, now: Time, parameters: &Parameters) {
        if self.blue_may_step(now, parameters) {
            self.p_drop = self.p_drop.saturating_add(UP);
            self.blue_step = Some(now);
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// It was the queue's turn, and it had nothing.
    pub(super) fn queue_empty(&mut self, now: Time, parameters: &Parameters) {
        if self.p_drop > 0 && self.blue_may_step(now, parameters) {
            self.p_drop = self.p_drop.saturating_sub(DOWN);
            self.blue_step = Some(now);
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.postpone(parameters);
        }
    }

    /// Whether its state has not yet decayed to rest.
    pub(super) fn is_decaying(&self, now: Time) -> bool {
        self.p_drop > 0 || self.count > 0 || now < self.drop_next
    }

    /// Judges the packet that leaves the queue, and marks it where that is the signal.
    pub(super) fn judge(
        &mut self,
        now: Time,
        parameters: &Parameters,
        packet: &mut Packet,
        random: &mut Random,
    ) -> Verdict {
        let sojourn = now - packet.entered;
        let mut due = self.count > 0 && now >= self.drop_next;
        let mut late = now > self.drop_next;
        let mut verdict = Verdict::default();
        self.dropping = if sojourn > parameters.target && sojourn > parameters.mtu_time * 4 {
            if !self.dropping {
                self.drop_next = self.scheduled(now, parameters);
            }
            self.count = self.count.max(1);
            true
        } else {
            false
        };
        if due && self.dropping {
            verdict.marked = packet.mark();
            verdict.drop = (!verdict.marked).then_some(DropCause::Codel);
            self.count = self.count.saturating_add(1);
            self.postpone(parameters);
            late = now > self.drop_next;
        } else {
            while due {
                self.count -= 1;
                self.postpone(parameters);
                late = now > self.drop_next;
                due = self.count > 0 && now >= self.drop_next;
            }
        }
        // No marks here: BLUE is for those who do not listen.
        if self.p_drop > 0
            && verdict.drop.is_none()
            && random.generator().random::<u32>() < self.p_drop
        {
            verdict.drop = Some(DropCause::Blue);
        }
        if self.count == 0 {
            // Kept in mind for an interval more.
            self.drop_next = now + parameters.interval;
        } else if late && verdict.drop.is_none() {
            self.drop_next = now;
        }
        verdict
    }

    /// One whose BLUE drops practically everything.
    #[cfg(test)]
    pub(super) fn certain() -> Self {
        Self {
            p_drop: u32::MAX,
            ..Default::default()
        }
    }

    fn blue_may_step(&self, now: Time, parameters: &Parameters) -> bool {
        self.blue_step
            .is_none_or(|before| now - before > parameters.target)
    }

    fn postpone(&mut self, parameters: &Parameters) {
        self.counted = true;
        self.drop_next = self.scheduled(self.drop_next, parameters);
    }

    fn scheduled(&self, from: Time, parameters: &Parameters) -> Time {
        if self.counted {
            control_law(from, parameters.interval, self.count)
        } else {
            from
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    const RTT: Duration = Duration::from_millis(100);
    /// 20 Mbit/s in bytes a second.
    const RATE: u64 = 2_500_000;

    fn parameters() -> Parameters {
        Parameters::new(RATE, RTT)
    }

    /// A packet that came at `ms` leaves at `now`.
    fn judge(cobalt: &mut Cobalt, ms: u64, now: u64, ecn: u8) -> Verdict {
        let mut packet = udp(1000, 1, ecn);
        packet.entered = us(ms * 1000);
        cobalt.judge(
            us(now * 1000),
            &parameters(),
            &mut packet,
            &mut Random::new(1),
        )
    }

    /// Serves a queue that stands from `start` ms on once a millisecond; after how many
    /// milliseconds `event` happened.
    fn events(cobalt: &mut Cobalt, start: u64, ecn: u8, event: fn(Verdict) -> bool) -> Vec<u64> {
        (0..380)
            .filter(|ms| event(judge(cobalt, start, start + ms, ecn)))
            .collect()
    }

    #[test]
    fn target_and_interval_leave_room_for_a_packet_and_a_half() {
        let at = |rate_bps: u64, rtt_us| {
            let p = Parameters::new(rate_bps / 8, Duration::from_micros(rtt_us));
            [p.target, p.interval, p.mtu_time].map(|time| time.as_nanos() as u64)
        };
        // 1514 bytes take 12.112 ms at 1 Mbit/s: 1.5 of them, and 100 ms + 18.168 ms − 5 ms.
        assert_eq!(
            at(1_000_000, 100_000),
            [18_168_000, 113_168_000, 12_112_000]
        );
        assert_eq!(at(20_000_000, 100_000), [5_000_000, 100_000_000, 605_600]);
        // Two targets are more than the round trip and what was added to the target.
        assert_eq!(
            at(100_000, 100_000),
            [181_680_000, 363_360_000, 121_120_000]
        );
        assert_eq!(at(1_000_000_000, 1000), [50_000, 1_000_000, 12_112]);
        assert_eq!(at(100_000_000, 1000), [181_680, 1_131_680, 121_120]);
    }

    /// By hand: above 5 ms at 6 ms, where the schedule of a new queue starts; signalled at the
    /// next packet; then 6 + 100/√2 = 76.71, + 100/√3 = 134.45, + 50 = 184.45, + 100/√5 =
    /// 229.17, + 100/√6 = 269.99, + 100/√7 = 307.79, + 100/√8 = 343.14, + 100/3 = 376.48.
    const NEW_MS: [u64; 9] = [7, 77, 135, 185, 230, 270, 308, 344, 377];
    /// With the interval's grace: 6 + 100, + 100/√2 = 176.71, + 100/√3 = 234.45, and so on.
    const LATER_MS: [u64; 6] = [106, 177, 235, 285, 330, 370];

    #[test]
    fn signals_as_computed_by_hand() {
        let dropped = |verdict: Verdict| verdict.drop == Some(DropCause::Codel);
        for ecn in [0, 2] {
            let cobalt = &mut Cobalt::default();
            let signalled = |verdict: Verdict| verdict.marked || verdict.drop.is_some();
            assert_eq!(events(cobalt, 0, ecn, signalled), NEW_MS);
        }
        let cobalt = &mut Cobalt::default();
        assert_eq!(events(cobalt, 0, 0, |verdict| verdict.marked), [0; 0]);
        let cobalt = &mut Cobalt::default();
        assert_eq!(events(cobalt, 0, 2, dropped), [0; 0]);

        let cobalt = &mut Cobalt::default();
        assert_eq!(events(cobalt, 0, 0, dropped), NEW_MS);
        assert_eq!(cobalt.count, 10);
        // The next is at 376.48 + 100/√10 = 408.10; then one a step until the state is at rest:
        // + 100/3 + 100/√8 + 100/√7 + … + 100 + 100 = 978.58.
        for ms in 409..=1100 {
            cobalt.queue_empty(us(ms * 1000), &parameters());
        }
        assert!(!cobalt.is_decaying(us(1_100_000)));
        assert_eq!(events(cobalt, 5000, 0, dropped), LATER_MS);
    }

    #[test]
    fn a_slow_line_is_allowed_four_packets() {
        // 4 · 12.112 ms are 48.448 ms, more than the target of 18.168 ms.
        let slow = Parameters::new(125_000, RTT);
        let mut cobalt = Cobalt::default();
        let mut above = |at| {
            let mut packet = udp(1000, 1, 0);
            cobalt.judge(us(at), &slow, &mut packet, &mut Random::new(1));
            cobalt.dropping
        };
        assert!(!above(30_000));
        assert!(!above(48_448));
        assert!(above(48_449));
    }

    #[test]
    fn the_count_decays_while_the_queue_is_short() {
        let mut cobalt = Cobalt::default();
        events(&mut cobalt, 0, 0, |_| false);
        // 408.10, + 33.33 = 441.43, + 35.36 = 476.79, + 37.80 = 514.58, + 40.82 = 555.41.
        judge(&mut cobalt, 500, 500, 0);
        assert_eq!((cobalt.count, cobalt.dropping), (7, false));
        assert_eq!(cobalt.drop_next.as_nanos() / 10_000, 51_458);
    }

    #[test]
    fn blue_steps_once_a_target_at_most() {
        let (mut cobalt, parameters) = (Cobalt::default(), parameters());
        let share = |cobalt: &Cobalt| f64::from(cobalt.p_drop) / 4_294_967_296.0;
        cobalt.queue_full(us(10_000), &parameters);
        assert_eq!(share(&cobalt), 1.0 / 256.0);
        cobalt.queue_full(us(12_000), &parameters);
        cobalt.queue_full(us(15_000), &parameters);
        assert_eq!(share(&cobalt), 1.0 / 256.0);
        cobalt.queue_full(us(15_001), &parameters);
        assert_eq!(share(&cobalt), 2.0 / 256.0);
        cobalt.queue_empty(us(20_001), &parameters);
        assert_eq!(share(&cobalt), 2.0 / 256.0);
        for step in 1..=32 {
            cobalt.queue_empty(us(15_001 + step * 5_001), &parameters);
            assert_eq!(share(&cobalt), (32 - step) as f64 / 4096.0);
        }
        for step in 0..300 {
            cobalt.queue_full(us(1_000_000 + step * 5_001), &parameters);
        }
        assert_eq!(cobalt.p_drop, u32::MAX);
    }

    #[test]
    fn blue_drops_its_share_and_never_marks() {
        let mut cobalt = Cobalt {
            p_drop: 1 << 30,
            ..Default::default()
        };
        let mut random = Random::new(3);
        let mut dropped = 0;
        for _ in 0..10_000 {
            let mut packet = udp(1000, 1, 2);
            let verdict = cobalt.judge(Time::ZERO, &parameters(), &mut packet, &mut random);
            assert!(!verdict.marked && !packet.marked);
            dropped += u32::from(verdict.drop == Some(DropCause::Blue));
        }
        // A quarter of 10000; the standard deviation is 43, the bound five of it.
        assert!(dropped.abs_diff(2500) < 217, "{dropped}");
    }
}

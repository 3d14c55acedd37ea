//! CoDel (RFC 8289): drops when packets have waited too long for too long. The pseudo-code of
//! section 5, with the marking of the kernel's codel_impl.h.

use std::time::Duration;

use plumb_model::units::{BitRate, duration, duration_text};
use serde::{Deserialize, Serialize};

use super::list::PacketList;
use super::single::{Algorithm, Bounded, Buffer, Single};
use crate::backlog::Backlog;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "codel" }`; the defaults are from RFC 8289 and tc-codel(8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodelSpec {
    pub limit: Limit,
    /// The acceptable standing delay.
    #[serde(with = "duration_text")]
    pub target: Duration,
    /// On the order of a worst-case round trip.
    #[serde(with = "duration_text")]
    pub interval: Duration,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelSpec {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
            target: TARGET,
            interval: INTERVAL,
            ecn: false,
        }
    }
}

impl Settings for CodelSpec {
    fn check(&self) -> Result<(), String> {
        check_times(self.target, self.interval)
    }
}

impl Bounded for CodelSpec {
    fn limit(&self) -> Limit {
        self.limit
    }
}

/// A delay that lasts for an interval is judged against the target, so the interval is the longer
/// (RFC 8289 section 4.3 has the target at 5 to 10 % of it).
pub(crate) fn check_times(target: Duration, interval: Duration) -> Result<(), String> {
    if target > interval {
        return Err(format!(
            "the target of {} is above the interval of {}: write a target of 5 to 10 % of it",
            duration(target),
            duration(interval)
        ));
    }
    Ok(())
}

/// RFC 8289 section 4.3 and 4.4.
pub(crate) const TARGET: Duration = Duration::from_millis(5);
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// MAXPACKET: with no more than this left, IP bytes, the line would soon stand idle.
const MAX_PACKET: u64 = 1514;
/// A return to the dropping state within this many intervals continues with the old drop rate (RFC 8289 section 5.4).
const RECENT_INTERVALS: u32 = 16;

/// The settings of the control law.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    pub(crate) target: Duration,
    pub(crate) interval: Duration,
    pub(crate) ecn: bool,
}

/// The control law's state for one queue; the names are from the RFC.
#[derive(Debug, Default)]
pub(crate) struct Codel {
    /// When the sojourn time will have been above target for an interval.
    first_above_time: Option<Time>,
    drop_next: Time,
    pub(crate) count: u32,
    lastcount: u32,
    dropping: bool,
}

impl Codel {
    /// The packet to send at `now` from `queue`, after dropping or marking what the control law
    /// says. `elsewhere` is the IP bytes in queues that share the line.
    pub(crate) fn next(
        &mut self,
        now: Time,
        parameters: &Parameters,
        queue: &mut PacketList,
        elsewhere: u64,
        tally: &mut Tally,
    ) -> Option<Packet> {
        let mut next = |codel: &mut Self| {
            let packet = queue.pop();
            let ok_to_drop = codel.ok_to_drop(
                now,
                parameters,
                packet.as_ref(),
                elsewhere + queue.backlog().ip_bytes,
            );
            (packet, ok_to_drop)
        };
        let (mut packet, mut ok_to_drop) = next(self);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if signal(&mut packet, parameters, tally) {
                    self.drop_next = control_law(self.drop_next, parameters.interval, self.count);
                    break;
                }
                (packet, ok_to_drop) = next(self);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, parameters.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !signal(&mut packet, parameters, tally) {
                (packet, _) = next(self);
            }
            self.dropping = true;
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now - self.drop_next < parameters.interval * RECENT_INTERVALS;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.lastcount = self.count;
            self.drop_next = control_law(now, parameters.interval, self.count);
        }
        packet
    }

    /// `dodequeue` of the RFC: whether the sojourn time has been above target for an interval.
    fn ok_to_drop(
        &mut self,
        now: Time,
        parameters: &Parameters,
        packet: Option<&Packet>,
        bytes: u64,
    ) -> bool {
        let above = packet.is_some_and(|packet| now - packet.entered >= parameters.target)
            && bytes > MAX_PACKET;
        if !above {
            self.first_above_time = None;
            return false;
        }
        let first_above_time = *self
            .first_above_time
            .get_or_insert(now + parameters.interval);
        now >= first_above_time
    }
}

/// Signals congestion to the sender: marks the packet and keeps it (`true`), or drops it.
fn signal(packet: &mut Option<Packet>, parameters: &Parameters, tally: &mut Tally) -> bool {
    let Some(mut signalled) = packet.take() else {
        return false;
    };
    if parameters.ecn && signalled.mark() {
        tally.marked += 1;
        *packet = Some(signalled);
        return true;
    }
    tally.drop(DropCause::Codel, &signalled);
    false
}

/// When to drop next: drops come closer with the square root of their number.
pub(crate) fn control_law(from: Time, interval: Duration, count: u32) -> Time {
    let ns = interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt();
    from + Duration::from_nanos(ns as u64)
}

/// One queue under CoDel.
pub(crate) type CodelQueue = Single<Codel>;

impl CodelQueue {
    pub(crate) fn new(spec: CodelSpec, rate: BitRate) -> Self {
        Self::with(Codel::default(), spec, rate)
    }
}

impl Algorithm for Codel {
    type Spec = CodelSpec;

    fn enqueue(
        &mut self,
        buffer: &mut Buffer<CodelSpec>,
        _: Time,
        packet: Packet,
        _: Backlog,
        tally: &mut Tally,
    ) {
        if buffer.fits(&packet) {
            buffer.list.push(packet);
        } else {
            tally.drop(DropCause::Overflow, &packet);
        }
    }

    fn dequeue(
        &mut self,
        buffer: &mut Buffer<CodelSpec>,
        now: Time,
        tally: &mut Tally,
    ) -> Option<Packet> {
        let CodelSpec {
            target,
            interval,
            ecn,
            ..
        } = buffer.spec;
        let parameters = Parameters {
            target,
            interval,
            ecn,
        };
        self.next(now, &parameters, &mut buffer.list, 0, tally)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::queue::Queue;
    use plumb_model::framing::Framing;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    fn packet(at: Time, size: usize, ecn: u8) -> Packet {
        let mut packet = udp(size, 1, ecn);
        packet.entered = at;
        packet.frame(&Framing::default());
        packet
    }

    fn queue(ecn: bool) -> CodelQueue {
        let spec = CodelSpec {
            limit: crate::limit::Limit::Packets(1 << 20),
            ecn,
            ..Default::default()
        };
        CodelQueue::new(spec, BitRate::from_bps(1_000_000))
    }

    /// Serves a standing queue once a millisecond; the milliseconds in which `event` grew.
    fn events_of_a_standing_queue(ecn: bool, field: u8, event: impl Fn(&Tally) -> u64) -> Vec<u64> {
        let (mut queue, mut tally) = (queue(ecn), Tally::new());
        for _ in 0..2000 {
            queue.enqueue(
                Time::ZERO,
                packet(Time::ZERO, 1000, field),
                Backlog::default(),
                &mut tally,
            );
        }
        let mut events = Vec::new();
        let mut before = 0;
        for ms in 0..500 {
            assert!(queue.dequeue(us(ms * 1000), &mut tally).is_some());
            let now = event(&tally);
            events.extend((before..now).map(|_| ms));
            before = now;
        }
        events
    }

    /// By hand: above target from 5 ms on, so the first drop is at 105 ms and the next 100 ms
    /// later; then 205 + 100/√2 = 275.71, + 100/√3 = 333.45, + 100/√4 = 383.45, + 100/√5 =
    /// 428.17, + 100/√6 = 468.99, each at the next dequeue.
    const BY_HAND_MS: [u64; 7] = [105, 205, 276, 334, 384, 429, 469];

    #[test]
    fn drops_as_computed_by_hand() {
        let drops = |tally: &Tally| tally.stats("", Backlog::default()).dropped_packets();
        assert_eq!(events_of_a_standing_queue(false, 0, drops), BY_HAND_MS);
        // Without ECN on, a capable transport is dropped too; with it, an incapable one.
        assert_eq!(events_of_a_standing_queue(false, 2, drops), BY_HAND_MS);
        assert_eq!(events_of_a_standing_queue(true, 0, drops), BY_HAND_MS);
    }

    #[test]
    fn marks_at_the_same_times_instead_of_dropping() {
        assert_eq!(
            events_of_a_standing_queue(true, 2, |tally| tally.marked),
            BY_HAND_MS
        );
        assert_eq!(
            events_of_a_standing_queue(true, 1, |t| t
                .stats("", Backlog::default())
                .dropped_packets()),
            [0; 0]
        );
    }

    /// The pseudo-code of RFC 8289 sections 5.5 and 5.6 word for word, over (arrival, size).
    #[derive(Default)]
    struct Rfc {
        queue: VecDeque<(u64, u64)>,
        bytes: u64,
        first_above_time: u64,
        drop_next: u64,
        count: u32,
        lastcount: u32,
        dropping: bool,
        drops: Vec<(u64, u64)>,
    }

    const TARGET_NS: u64 = 5_000_000;
    const INTERVAL_NS: u64 = 100_000_000;

    impl Rfc {
        fn dodequeue(&mut self, now: u64) -> (Option<(u64, u64)>, bool) {
            let Some(p) = self.queue.pop_front() else {
                self.first_above_time = 0;
                return (None, false);
            };
            self.bytes -= p.1;
            let mut ok_to_drop = false;
            let sojourn_time = now - p.0;
            if sojourn_time < TARGET_NS || self.bytes <= 1514 {
                self.first_above_time = 0;
            } else if self.first_above_time == 0 {
                self.first_above_time = now + INTERVAL_NS;
            } else if now >= self.first_above_time {
                ok_to_drop = true;
            }
            (Some(p), ok_to_drop)
        }

        fn control_law(t: u64, count: u32) -> u64 {
            t + (INTERVAL_NS as f64 / f64::from(count).sqrt()) as u64
        }

        fn deque(&mut self, now: u64) -> Option<(u64, u64)> {
            let mut r = self.dodequeue(now);
            if self.dropping {
                if !r.1 {
                    self.dropping = false;
                }
                while now >= self.drop_next && self.dropping {
                    self.drops.push((now, r.0.unwrap().0));
                    self.count += 1;
                    r = self.dodequeue(now);
                    if !r.1 {
                        self.dropping = false;
                    } else {
                        self.drop_next = Self::control_law(self.drop_next, self.count);
                    }
                }
            } else if r.1 {
                self.drops.push((now, r.0.unwrap().0));
                r = self.dodequeue(now);
                self.dropping = true;
                let delta = self.count - self.lastcount;
                self.count = 1;
                if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * INTERVAL_NS as i64 {
                    self.count = delta;
                }
                self.drop_next = Self::control_law(now, self.count);
                self.lastcount = self.count;
            }
            r.0
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_the_rfcs_pseudo_code(
            bursts in proptest::collection::vec((0u64..80_000, 1usize..120, 100usize..1500), 1..80),
            service_us in 200u64..1500,
        ) {
            let (mut queue, mut tally, mut rfc) = (queue(false), Tally::new(), Rfc::default());
            let (mut arrivals, mut at) = (VecDeque::new(), 1);
            for (gap, count, size) in bursts {
                at += gap;
                arrivals.extend((0..count).map(|_| (at, size)));
            }
            let mut now = 1;
            while !arrivals.is_empty() || queue.backlog().packets > 0 {
                while let Some((at, size)) = arrivals.pop_front_if(|(at, _)| *at <= now) {
                    queue.enqueue(us(at), packet(us(at), size, 0), Backlog::default(), &mut tally);
                    rfc.queue.push_back((at * 1000, size as u64));
                    rfc.bytes += size as u64;
                }
                let ours = queue.dequeue(us(now), &mut tally).map(|p| (p.entered.as_nanos(), p.ip_bytes()));
                prop_assert_eq!(ours, rfc.deque(now * 1000));
                let drops = tally.stats("", Backlog::default()).dropped_packets();
                prop_assert_eq!(drops, rfc.drops.len() as u64);
                now += service_us;
            }
        }
    }
}

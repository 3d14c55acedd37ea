//! Reordering: some packets are held back until later ones have passed them. How many is the
//! reordering extent of RFC 4737 (section 4.2.1).

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use plumb_model::units::duration_text;
use serde::{Deserialize, Serialize};

use crate::backlog::Backlog;
use crate::cell::departures::Departures;
use crate::cell::order::Order;
use crate::cell::{Adjust, Cell};
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::segment::{self, Crossing};
use crate::settings::Settings;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "reorder", ratio = "1%", extent = 3 }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// The probability that a packet is held back.
    pub ratio: Ratio,
    /// How many packets pass it before it is released; when absent, time alone decides.
    pub extent: Option<NonZeroU64>,
    /// The longest time for which it is held back.
    #[serde(default = "hold", with = "duration_text")]
    pub hold: Duration,
}

/// Half of the shortest retransmission timeout of Linux (TCP_RTO_MIN), so that a packet which
/// nothing follows is late and not taken for lost.
fn hold() -> Duration {
    Duration::from_millis(100)
}

impl Settings for ReorderSpec {}

/// The cell. When its settings change, the packets held back are released.
pub(crate) struct Reorder {
    spec: ReorderSpec,
    random: Random,
    /// The packets held back, in order of arrival, which is also the order of release.
    held: VecDeque<Held>,
    /// How many were not held back.
    passed: u64,
    out: Departures,
    order: Order,
    tally: Tally,
}

struct Held {
    packet: Packet,
    number: u64,
    /// Released at this time at the latest,
    until: Time,
    /// or when `passed` reaches this count.
    passed: u64,
}

impl Reorder {
    pub(crate) fn new(spec: ReorderSpec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
            held: VecDeque::new(),
            passed: 0,
            out: Departures::default(),
            order: Order::default(),
            tally: Tally::new(),
        }
    }

    fn admit(&mut self, now: Time, packet: Packet) {
        let number = self.order.arrive();
        if packet.is_link_multicast() {
            return self.go_on(now, number, packet);
        }
        if self.random.chance(self.spec.ratio.value()) {
            let extent = self.spec.extent.map_or(u64::MAX, NonZeroU64::get);
            return self.held.push_back(Held {
                packet,
                number,
                until: now + self.spec.hold,
                passed: self.passed.saturating_add(extent),
            });
        }
        self.passed += 1;
        self.go_on(now, number, packet);
        let passed = self.passed;
        self.release(|_| now, |held| held.passed <= passed);
    }

    /// Lets go what has been held long enough by `now`.
    fn advance(&mut self, now: Time) {
        self.release(|held| held.until, |held| held.until <= now);
    }

    fn release(&mut self, at: impl Fn(&Held) -> Time, is_free: impl Fn(&Held) -> bool) {
        while let Some(held) = self.held.pop_front_if(|held| is_free(held)) {
            self.go_on(at(&held), held.number, held.packet);
        }
    }

    fn go_on(&mut self, at: Time, number: u64, packet: Packet) {
        if self.order.leave(number) {
            self.tally.reordered += 1;
        }
        self.out.push(at, packet);
    }
}

impl Cell for Reorder {
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.advance(now);
        self.tally.offer(&packet);
        packet.entered = now;
        for single in segment::split(packet, 1) {
            self.admit(now, single);
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.advance(now);
        self.out.pop(now, &mut self.tally)
    }

    fn next_event(&self) -> Option<Time> {
        let held = self.held.front().map(|held| held.until);
        self.out.next().or(held)
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        let held = self.held.iter().map(|held| held.packet.backlog());
        held.fold(self.out.backlog(), |sum, more| sum + more)
    }

    fn crossing(&self) -> Crossing {
        Crossing::Split
    }
}

impl Adjust for Reorder {
    type Spec = ReorderSpec;

    fn reconfigure(&mut self, now: Time, spec: ReorderSpec) {
        self.advance(now);
        self.release(|_| now, |_| true);
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::spec::CellSpec;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Sends a packet a millisecond, with its number as its port, through a cell with the seed
    /// of the test of [`crate::cell::loss::bernoulli`], which chooses 20, 22, 28, 31 and 51.
    fn reordered(pairs: &[(&str, &str)], count: u16) -> (Vec<(u16, Time)>, u64) {
        let mut pairs = pairs.to_vec();
        pairs.push(("ratio", "5%"));
        let mut cell = CellSpec::from_pairs("reorder", &pairs)
            .unwrap()
            .build(7, ms(0))
            .own();
        for port in 0..count {
            cell.enqueue(ms(port.into()), udp(100, port, 0));
        }
        let out = std::iter::from_fn(|| cell.dequeue(Time::MAX))
            .map(|(at, p)| (u16::from_be_bytes([p.data[20], p.data[21]]), at))
            .collect();
        (out, cell.stats(Time::MAX, "reorder").reordered)
    }

    #[test]
    fn by_so_many_packets() {
        let (out, reordered) = reordered(&[("extent", "3")], 60);
        let from_18: Vec<_> = out[18..36].iter().map(|(port, _)| *port).collect();
        // 21, 23 and 24 pass 20; 23, 24 and 25 pass 22.
        let expected = [
            18, 19, 21, 23, 24, 20, 25, 22, 26, 27, 29, 30, 32, 28, 33, 34, 31, 35,
        ];
        assert_eq!(from_18, expected);
        assert_eq!((out[23], out[25]), ((20, ms(24)), (22, ms(25))));
        assert_eq!((out.len(), reordered), (60, 5));
    }

    #[test]
    fn for_so_long() {
        let (out, reordered) = reordered(&[("hold", "1500us")], 60);
        let late = out.iter().filter(|(port, at)| *at != ms(u64::from(*port)));
        let late: Vec<_> = late
            .map(|(port, at)| (*port, at.as_nanos() / 1000))
            .collect();
        let expected = [20, 22, 28, 31, 51].map(|port| (port, u64::from(port) * 1000 + 1500));
        assert_eq!((late, reordered), (expected.to_vec(), 5));
        // Less than the time to the next is a delay and reorders nothing.
        assert_eq!(self::reordered(&[("hold", "999us")], 60).1, 0);
    }

    #[test]
    fn what_nothing_follows_is_held_no_longer_than_that() {
        let (out, reordered) = reordered(&[("extent", "3")], 21);
        assert_eq!((out[20], reordered), ((20, ms(120)), 0));
    }

    #[test]
    fn a_change_lets_go_what_is_held() {
        let spec = CellSpec::from_pairs("reorder", &[("ratio", "1"), ("extent", "9")]).unwrap();
        let mut cell = spec.build(1, ms(0)).own();
        cell.enqueue(ms(0), udp(100, 1, 0));
        cell.enqueue(ms(1), udp(100, 2, 0));
        assert_eq!(
            (cell.next_event(), cell.backlog().packets),
            (Some(ms(100)), 2)
        );
        let changed = spec.with(&[("ratio", "0")]).unwrap();
        cell.set(ms(2), &changed);
        cell.enqueue(ms(2), udp(100, 3, 0));
        let out: Vec<_> = std::iter::from_fn(|| cell.dequeue(ms(2)).map(|(at, _)| at)).collect();
        assert_eq!(out, [ms(2); 3]);
        assert_eq!(cell.stats(ms(2), "reorder").reordered, 0);
    }
}

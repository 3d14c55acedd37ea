//! Propagation delay: every packet leaves as much later as it came.

use std::collections::VecDeque;
use std::time::Duration;

use plumb_model::units::duration_text;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Crossing};
use crate::packet::Packet;
use crate::queue::Backlog;
use crate::settings::Settings;
use crate::spec::CellSpec;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "delay", delay = "9ms" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// The delay.
    #[serde(with = "duration_text")]
    pub delay: Duration,
}

impl Settings for DelaySpec {}

/// A constant delay. When it is changed, packets under way keep the old one, and none leaves
/// before one that came earlier.
pub(crate) struct Delay {
    spec: DelaySpec,
    /// What is under way, with the time when it leaves.
    packets: VecDeque<(Time, Packet)>,
    backlog: Backlog,
    last_departure: Time,
    tally: Tally,
}

impl Delay {
    /// A cell with these settings.
    pub(crate) fn new(spec: DelaySpec) -> Self {
        Self {
            spec,
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            last_departure: Time::ZERO,
            tally: Tally::new(),
        }
    }

    fn left(&mut self, at: Time, packet: &Packet) {
        self.backlog -= packet.backlog();
        self.tally.deliver(packet, packet.entered, at);
    }
}

impl Cell for Delay {
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.tally.offer(&packet);
        self.backlog += packet.backlog();
        packet.entered = now;
        self.last_departure = self.last_departure.max(now + self.spec.delay);
        self.packets.push_back((self.last_departure, packet));
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        let (at, packet) = self.packets.pop_front_if(|(at, _)| *at <= now)?;
        self.left(at, &packet);
        Some((at, packet))
    }

    fn next_event(&self) -> Option<Time> {
        self.packets.front().map(|(at, _)| *at)
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reconfigure(&mut self, _: Time, spec: &CellSpec) {
        if let CellSpec::Delay(spec) = spec {
            self.spec = spec.clone();
        }
    }

    fn drain(&mut self, now: Time) -> Vec<(Time, Packet)> {
        let mut out: Vec<_> = std::mem::take(&mut self.packets).into();
        for (at, packet) in &mut out {
            *at = now.min(*at);
            self.left(*at, packet);
        }
        out
    }

    fn crossing(&self) -> Crossing {
        Crossing::Whole
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn delay(text: &str) -> CellSpec {
        CellSpec::from_pairs("delay", &[("delay", text)]).unwrap()
    }

    #[test]
    fn a_shorter_delay_does_not_reorder() {
        let mut cell = delay("20ms").build(1, ms(0));
        cell.enqueue(ms(0), udp(100, 1, 0));
        cell.reconfigure(ms(1), &delay("5ms"));
        cell.enqueue(ms(2), udp(100, 2, 0));
        cell.enqueue(ms(17), udp(100, 3, 0));
        assert_eq!(cell.next_event(), Some(ms(20)));
        let out: Vec<_> = std::iter::from_fn(|| cell.dequeue(ms(99)))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(out, [ms(20), ms(20), ms(22)]);
        let stats = cell.stats(ms(99), "delay");
        assert_eq!((stats.delivered.packets, stats.backlog.packets), (3, 0));
        assert_eq!(stats.sojourn_s.unwrap().max, 0.020);
    }
}

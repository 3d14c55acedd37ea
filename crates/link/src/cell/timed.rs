//! Cells that decide when a packet comes in when it will leave: delays and outages.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backlog::Backlog;
use crate::cell::order::Order;
use crate::cell::{Adjust, Cell};
use crate::packet::Packet;
use crate::segment::{self, Crossing};
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

pub(crate) trait Timing: Send {
    type Spec;

    /// When a packet leaves that comes in at `now`, or why it never does.
    fn departure(&mut self, now: Time, packet: &Packet) -> Result<Time, DropCause>;

    /// The least time from when a packet comes in until it leaves.
    fn least(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether a packet may leave before one that came earlier; otherwise it leaves with it.
    fn may_overtake(&self) -> bool;

    /// How large segments come: whole, or cut into single packets before.
    fn crossing(&self) -> Crossing;

    /// Takes new settings at `now`; what is under way keeps its time.
    fn reconfigure(&mut self, now: Time, spec: Self::Spec);
}

pub(crate) struct Timed<T> {
    timing: T,
    /// What is under way, in the order in which it leaves.
    packets: VecDeque<UnderWay>,
    backlog: Backlog,
    /// The latest departure of all packets so far.
    last_departure: Time,
    order: Order,
    tally: Tally,
}

struct UnderWay {
    leaves: Time,
    /// Its place in the order in which packets came.
    number: u64,
    packet: Packet,
}

impl<T: Timing> Timed<T> {
    pub(crate) fn new(timing: T) -> Self {
        Self {
            timing,
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            last_departure: Time::ZERO,
            order: Order::default(),
            tally: Tally::new(),
        }
    }

    fn admit(&mut self, now: Time, packet: Packet) {
        let leaves = match self.timing.departure(now, &packet) {
            Ok(leaves) if self.timing.may_overtake() => leaves,
            Ok(leaves) => leaves.max(self.last_departure),
            Err(cause) => return self.tally.drop(cause, &packet),
        };
        self.last_departure = self.last_departure.max(leaves);
        self.backlog += packet.backlog();
        let under_way = UnderWay {
            leaves,
            number: self.order.arrive(),
            packet,
        };
        if self.packets.back().is_none_or(|last| last.leaves <= leaves) {
            return self.packets.push_back(under_way);
        }
        let place = self.packets.partition_point(|p| p.leaves <= leaves);
        self.packets.insert(place, under_way);
    }

    fn left(&mut self, at: Time, gone: UnderWay) -> (Time, Packet) {
        self.backlog -= gone.packet.backlog();
        if self.order.leave(gone.number) {
            self.tally.reordered += u64::from(gone.packet.segments());
        }
        self.tally.deliver(&gone.packet, gone.packet.entered, at);
        (at, gone.packet)
    }
}

impl<T: Timing> Cell for Timed<T> {
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.tally.offer(&packet);
        packet.entered = now;
        if self.timing.crossing() == Crossing::Whole || packet.segments() == 1 {
            return self.admit(now, packet);
        }
        for single in segment::split(packet, 1) {
            self.admit(now, single);
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        let gone = self.packets.pop_front_if(|p| p.leaves <= now)?;
        Some(self.left(gone.leaves, gone))
    }

    fn next_event(&self) -> Option<Time> {
        self.packets.front().map(|p| p.leaves)
    }

    fn keeps_for(&self, beyond: Duration) -> Duration {
        self.timing.least() + beyond
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn crossing(&self) -> Crossing {
        self.timing.crossing()
    }
}

impl<T: Timing> Adjust for Timed<T> {
    type Spec = T::Spec;

    fn reconfigure(&mut self, now: Time, spec: T::Spec) {
        self.timing.reconfigure(now, spec);
    }
}

//! Queues that are one list, first in, first out: their algorithm decides which packets are admitted.

use plumb_model::units::BitRate;

use super::list::PacketList;
use super::{Adjust, Queue};
use crate::backlog::Backlog;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::tally::Tally;
use crate::time::Time;

/// What decides about the packets of one list.
pub(crate) trait Algorithm: Send {
    type Spec: Bounded + Send;

    /// Takes a packet or drops it, as [`Queue::enqueue`] says.
    fn enqueue(
        &mut self,
        buffer: &mut Buffer<Self::Spec>,
        now: Time,
        packet: Packet,
        on_line: Backlog,
        tally: &mut Tally,
    );

    /// The packet to send next, as [`Queue::dequeue`] says.
    fn dequeue(
        &mut self,
        buffer: &mut Buffer<Self::Spec>,
        _now: Time,
        _tally: &mut Tally,
    ) -> Option<Packet> {
        buffer.list.pop()
    }

    /// Whether a packet may be a large segment.
    fn takes_large_segments(_spec: &Self::Spec) -> bool {
        false
    }

    /// The settings are now these.
    fn adjust(&mut self, _spec: &Self::Spec) {}
}

/// Settings with a bound.
pub(crate) trait Bounded {
    fn limit(&self) -> Limit;
}

/// What waits, under which settings, before a line of which rate.
pub(crate) struct Buffer<S> {
    pub(crate) list: PacketList,
    pub(crate) spec: S,
    pub(crate) rate: BitRate,
}

impl<S: Bounded> Buffer<S> {
    /// Whether a queue with these settings may hold this much.
    pub(crate) fn allows(&self, held: Backlog) -> bool {
        self.spec.limit().allows(held, self.rate)
    }

    /// Whether a packet fits beside what waits.
    pub(crate) fn fits(&self, packet: &Packet) -> bool {
        self.allows(self.list.backlog() + packet.backlog())
    }
}

pub(crate) struct Single<A: Algorithm> {
    pub(crate) buffer: Buffer<A::Spec>,
    pub(crate) algorithm: A,
}

impl<A: Algorithm> Single<A> {
    /// An empty queue before a line of this rate.
    pub(crate) fn with(algorithm: A, spec: A::Spec, rate: BitRate) -> Self {
        let list = PacketList::default();
        Self {
            buffer: Buffer { list, spec, rate },
            algorithm,
        }
    }
}

impl<A: Algorithm> Queue for Single<A> {
    fn enqueue(&mut self, now: Time, packet: Packet, on_line: Backlog, tally: &mut Tally) {
        self.algorithm
            .enqueue(&mut self.buffer, now, packet, on_line, tally);
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        self.algorithm.dequeue(&mut self.buffer, now, tally)
    }

    fn backlog(&self) -> Backlog {
        self.buffer.list.backlog()
    }

    fn takes_large_segments(&self) -> bool {
        A::takes_large_segments(&self.buffer.spec)
    }

    fn drain(&mut self) -> Vec<Packet> {
        self.buffer.list.drain().collect()
    }
}

impl<A: Algorithm> Adjust for Single<A> {
    type Spec = A::Spec;

    fn reconfigure(&mut self, spec: A::Spec, rate: BitRate) -> bool {
        self.algorithm.adjust(&spec);
        (self.buffer.spec, self.buffer.rate) = (spec, rate);
        true
    }
}

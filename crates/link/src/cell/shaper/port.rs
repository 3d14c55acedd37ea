//! A queue before a line, which takes the next packet when it is free; the packet leaves when
//! its last bit has.

use std::time::Duration;

use plumb_model::framing::Framing;
use plumb_model::units::BitRate;

use super::backlog_delay::BacklogDelay;
use super::line::Line;
use crate::backlog::Backlog;
use crate::cell::departures::Departures;
use crate::cell::{Adjust, Cell};
use crate::packet::Packet;
use crate::queue::{AnyQueue, QueueKinds, QueueSpec};
use crate::segment::{self, Crossing};
use crate::stats::CellStats;
use crate::tally::Tally;
use crate::time::Time;

/// Settings of a cell that is a port.
pub(crate) trait PortSpec: Send {
    /// What the line adds to each packet.
    fn framing(&self) -> &Framing;
    /// The queue before the line.
    fn queue(&self) -> &QueueSpec;
}

pub(crate) struct Port<L: Line> {
    spec: L::Spec,
    seed: u64,
    queue: Box<dyn AnyQueue<QueueSpec>>,
    /// The rate that the queue was last configured with.
    queue_rate: BitRate,
    line: L,
    on_line: Option<OnLine>,
    /// Packets that have left and were not yet dequeued.
    done: Departures,
    tally: Tally,
    delay: BacklogDelay,
}

/// The packet whose bits are leaving.
struct OnLine {
    packet: Packet,
    began: Time,
    departs: Time,
}

impl OnLine {
    /// What of the packet still occupies the buffer: the segments whose last bit has not left.
    fn occupies(&self, line: &impl Line, now: Time) -> Backlog {
        let whole = self.packet.backlog();
        if whole.packets == 1 {
            return whole;
        }
        let gone = line
            .sent_bytes(now)
            .checked_div(self.packet.wire.segment)
            .unwrap_or(0)
            .min(whole.packets - 1);
        whole
            - Backlog {
                packets: gone,
                ip_bytes: gone * self.packet.segment_ip_bytes(),
                wire_bytes: gone * self.packet.wire.segment,
            }
    }
}

impl<L> Port<L>
where
    L: Line,
    L::Spec: PortSpec,
{
    /// A port that exists from `now` on; `seed` seeds the queue's hash.
    pub(crate) fn with_line(spec: L::Spec, line: L, seed: u64, now: Time) -> Self {
        let queue_rate = line.rate(now);
        Self {
            queue: spec.queue().build(queue_rate, seed),
            queue_rate,
            spec,
            seed,
            line,
            on_line: None,
            done: Departures::default(),
            tally: Tally::new(),
            delay: BacklogDelay::new(now),
        }
    }

    #[cfg(test)]
    pub(crate) fn spec(&self) -> &L::Spec {
        &self.spec
    }

    /// Does what happens up to `now`.
    fn advance(&mut self, now: Time) {
        while let Some(departs) = self.on_line.as_ref().map(|on| on.departs)
            && departs <= now
        {
            self.sample_delay(departs);
            self.line.finish(departs);
            if let Some(on) = self.on_line.take() {
                self.tally.sent(&on.packet, on.began, departs);
                self.done.push(departs, on.packet);
            }
            self.start(departs);
        }
        self.sample_delay(now);
    }

    /// Starts the next packet on the free line.
    fn start(&mut self, now: Time) {
        self.tell_rate(now);
        let Some(packet) = self.queue.dequeue(now, &mut self.tally) else {
            self.line.rest();
            return;
        };
        let departs = self.line.start(now, packet.wire.total);
        self.on_line = Some(OnLine {
            packet,
            began: now,
            departs,
        });
    }

    /// Samples the queue's delay on the grid points before `end`; nothing has changed since the
    /// last time but the clock.
    fn sample_delay(&mut self, end: Time) {
        let Self { line, queue, .. } = self;
        let is_busy = self.on_line.is_some();
        self.delay.sample(end, |at| match is_busy {
            true => line.clears(at, queue.backlog().wire_bytes).nanos_since(at),
            false => 0,
        });
    }

    /// Gives the queue the line's rate, which may change without new settings.
    fn tell_rate(&mut self, now: Time) {
        let rate = self.line.rate(now);
        if rate != std::mem::replace(&mut self.queue_rate, rate) {
            self.reconfigure_queue(now);
        }
    }

    fn reconfigure_queue(&mut self, now: Time) {
        if self.queue.set(self.spec.queue(), self.queue_rate) {
            return;
        }
        let waiting = self.queue.drain();
        self.queue = self.spec.queue().build(self.queue_rate, self.seed);
        for packet in waiting {
            let most = self.whole_segments(packet.wire.segment);
            for piece in segment::split(packet, most) {
                self.admit(now, piece);
            }
        }
    }

    /// How many segments of this size pass as one.
    fn whole_segments(&self, segment_wire_bytes: u64) -> u32 {
        if !self.queue.takes_large_segments() {
            return 1;
        }
        let segments = self.line.whole_bytes().checked_div(segment_wire_bytes);
        u32::try_from(segments.unwrap_or(1))
            .unwrap_or(u32::MAX)
            .max(1)
    }

    fn admit(&mut self, now: Time, packet: Packet) {
        let on_line = self
            .on_line
            .as_ref()
            .map(|on| on.occupies(&self.line, now))
            .unwrap_or_default();
        self.queue.enqueue(now, packet, on_line, &mut self.tally);
        if self.on_line.is_none() {
            self.start(now);
            // What leaves at once makes room at once.
            self.advance(now);
        }
    }
}

impl<L> Cell for Port<L>
where
    L: Line,
    L::Spec: PortSpec,
{
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.advance(now);
        self.tell_rate(now);
        self.tally.offer(&packet);
        packet.entered = now;
        packet.frame(self.spec.framing());
        if packet.segments() == 1 {
            return self.admit(now, packet);
        }
        let most = self.whole_segments(packet.wire.segment);
        for piece in segment::split(packet, most) {
            self.admit(now, piece);
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        if self.done.next().is_none() {
            self.advance(now);
        }
        self.done.pop(now, &mut self.tally)
    }

    fn next_event(&self) -> Option<Time> {
        let departs = self.on_line.as_ref().map(|on| on.departs);
        self.done.next().or(departs)
    }

    fn keeps_for(&self, beyond: Duration) -> Duration {
        beyond
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        let on_line = self.on_line.as_ref().map(|on| on.packet.backlog());
        self.queue.backlog() + on_line.unwrap_or_default() + self.done.backlog()
    }

    fn stats(&mut self, now: Time, kind: &str) -> CellStats {
        self.advance(now);
        let mut stats = self.tally.stats(kind, self.backlog());
        self.delay.report(&mut stats);
        stats
    }

    fn crossing(&self) -> Crossing {
        // Two full packets of an Ethernet are the smallest segment worth building.
        let full = u64::from(self.spec.framing().wire_bytes(1500));
        if self.whole_segments(full) >= 2 {
            Crossing::Whole
        } else {
            Crossing::Split
        }
    }
}

impl<L> Adjust for Port<L>
where
    L: Line,
    L::Spec: PortSpec,
{
    type Spec = L::Spec;

    fn reconfigure(&mut self, now: Time, spec: L::Spec) {
        self.advance(now);
        let departs = self.line.reconfigure(now, &spec);
        self.spec = spec;
        if let (Some(on), Some(departs)) = (&mut self.on_line, departs) {
            on.departs = departs;
        }
        self.queue_rate = self.line.rate(now);
        self.reconfigure_queue(now);
    }
}

//! Cells that decide about each packet at once and keep none back: loss, corruption, filters
//! and rewriters of every kind.

use std::time::Duration;

use crate::backlog::Backlog;
use crate::cell::departures::Departures;
use crate::cell::{Adjust, Cell};
use crate::packet::Packet;
use crate::segment::{self, Crossing};
use crate::stats::{Count, DropCause};
use crate::tally::Tally;
use crate::time::Time;

/// What such a cell does with a packet.
pub(crate) trait Filter: Send {
    type Spec;
    /// How large segments come: whole, or cut into single packets before.
    const CROSSING: Crossing;
    /// Whether it sends packets of its own back.
    const REPLIES: bool = false;

    /// Decides about the packet; one that is not given to `out` is lost without being counted, which is a mistake.
    fn pass(&mut self, now: Time, packet: Packet, out: &mut Outlet<'_>);

    fn reconfigure(&mut self, now: Time, spec: Self::Spec);
}

/// The outputs of a filter.
pub(crate) struct Outlet<'a> {
    now: Time,
    tally: &'a mut Tally,
    out: &'a mut Departures,
}

impl Outlet<'_> {
    /// Forwards the packet to the output.
    pub(crate) fn forward(&mut self, packet: Packet) {
        self.out.push(self.now, packet);
    }

    /// Forwards a packet that the filter has changed.
    pub(crate) fn forward_changed(&mut self, packet: Packet) {
        self.tally.changed += u64::from(packet.segments());
        self.forward(packet);
    }

    /// Ends the packet here.
    pub(crate) fn drop(&mut self, cause: DropCause, packet: &Packet) {
        self.tally.drop(cause, packet);
    }

    /// Forwards a second copy; the first is forwarded or dropped like any packet.
    pub(crate) fn duplicate(&mut self, mut packet: Packet) {
        // A probe's record stays with the first copy.
        packet.record = None;
        self.tally.duplicate(&packet);
        self.forward(packet);
    }

    /// Forwards a packet as fragments.
    pub(crate) fn forward_fragments(&mut self, whole: &Packet, fragments: Vec<Vec<u8>>) {
        let packets = fragments.len() as u64;
        let bytes = fragments.iter().map(|data| data.len() as u64).sum();
        self.tally.fragment(whole, Count { packets, bytes });
        for data in fragments {
            self.forward(whole.with_data(data));
        }
    }

    /// Sends a packet of the cell's own back to where packets come from.
    pub(crate) fn reply(&mut self, mut packet: Packet) {
        packet.back = true;
        self.tally.replied += 1;
        self.out.push(self.now, packet);
    }
}

/// A filter as a cell.
pub(crate) struct Filtered<F> {
    filter: F,
    tally: Tally,
    out: Departures,
}

impl<F: Filter> Filtered<F> {
    pub(crate) fn new(filter: F) -> Self {
        Self {
            filter,
            tally: Tally::new(),
            out: Departures::default(),
        }
    }

    fn decide(&mut self, now: Time, packet: Packet) {
        let mut outlet = Outlet {
            now,
            tally: &mut self.tally,
            out: &mut self.out,
        };
        self.filter.pass(now, packet, &mut outlet);
    }
}

impl<F: Filter> Cell for Filtered<F> {
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.tally.offer(&packet);
        packet.entered = now;
        if F::CROSSING == Crossing::Whole || packet.segments() == 1 {
            return self.decide(now, packet);
        }
        for single in segment::split(packet, 1) {
            self.decide(now, single);
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.out.pop(now, &mut self.tally)
    }

    fn next_event(&self) -> Option<Time> {
        self.out.next()
    }

    fn replies(&self) -> bool {
        F::REPLIES
    }

    fn keeps_for(&self, beyond: Duration) -> Duration {
        beyond
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        self.out.backlog()
    }

    fn crossing(&self) -> Crossing {
        F::CROSSING
    }
}

impl<F: Filter> Adjust for Filtered<F> {
    type Spec = F::Spec;

    fn reconfigure(&mut self, now: Time, spec: F::Spec) {
        self.filter.reconfigure(now, spec);
    }
}

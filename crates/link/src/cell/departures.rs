//! What has left a cell and was not yet asked for.

use std::collections::VecDeque;

use crate::backlog::Backlog;
use crate::packet::Packet;
use crate::tally::Tally;
use crate::time::Time;

/// Packets with the times at which they left, in that order.
#[derive(Default)]
pub(crate) struct Departures(VecDeque<(Time, Packet)>);

impl Departures {
    /// Adds a packet that leaves after all the others, or with the last.
    pub(crate) fn push(&mut self, at: Time, packet: Packet) {
        self.0.push_back((at, packet));
    }

    /// Takes the next out that left at or before `now`, and counts it.
    pub(crate) fn pop(&mut self, now: Time, tally: &mut Tally) -> Option<(Time, Packet)> {
        let (at, packet) = self.0.pop_front_if(|(at, _)| *at <= now)?;
        tally.deliver(&packet, packet.entered, at);
        Some((at, packet))
    }

    /// When the next one left.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.front().map(|(at, _)| *at)
    }

    /// What of it came into the cell: what the cell sent back did not.
    pub(crate) fn backlog(&self) -> Backlog {
        let onward = self.0.iter().filter(|(_, packet)| !packet.back);
        onward.fold(Backlog::default(), |sum, (_, packet)| {
            sum + packet.backlog()
        })
    }
}

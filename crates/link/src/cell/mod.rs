//! What every cell of a chain does. One file a cell, with its settings.

pub mod corrupt;
pub mod delay;
pub(crate) mod departures;
pub mod duplicate;
pub(crate) mod filter;
pub mod loss;
pub mod matching;
pub mod medium;
pub mod middlebox;
pub(crate) mod order;
pub mod outage;
pub mod packet_rate;
pub mod policer;
pub mod reorder;
pub mod shaper;
pub mod sleep;
pub(crate) mod timed;
pub mod trace;
pub mod wifi;

use std::time::Duration;

use crate::backlog::Backlog;
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::stats::CellStats;
use crate::tally::Tally;
use crate::time::Time;

/// A stage that packets pass: a pure state machine.
///
/// Times given to the methods never go back. A departure carries its exact time, so the result
/// does not depend on how often or how late the cell is asked.
pub(crate) trait Cell: Send {
    /// Takes a packet that comes in at `now`.
    fn enqueue(&mut self, now: Time, packet: Packet);

    /// The next departure at or before `now`, with the time when it happened. Times never go
    /// back.
    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)>;

    /// When there will be something to dequeue; `None` while nothing is under way.
    fn next_event(&self) -> Option<Time>;

    /// Whether it sends packets of its own back, which leave the chain as soon as they leave the cell.
    fn replies(&self) -> bool {
        false
    }

    /// The least time until a packet that comes in now leaves the chain, where the cells behind keep every packet for
    /// at least `beyond`. Zero is always a valid answer.
    fn keeps_for(&self, _beyond: Duration) -> Duration {
        Duration::ZERO
    }

    /// What it counted so far.
    fn tally(&mut self) -> &mut Tally;

    /// What came in, was not dropped, and was not dequeued yet.
    fn backlog(&self) -> Backlog;

    /// Reports what the cell did up to `now`; `kind` is what scenarios call it.
    fn stats(&mut self, _now: Time, kind: &str) -> CellStats {
        let backlog = self.backlog();
        self.tally().stats(kind, backlog)
    }

    /// How large segments pass.
    fn crossing(&self) -> Crossing;
}

/// What takes new settings while packets pass.
pub(crate) trait Adjust {
    type Spec;

    /// Takes new settings at `now`. They were checked.
    fn reconfigure(&mut self, now: Time, spec: Self::Spec);
}

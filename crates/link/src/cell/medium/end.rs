//! An end of a medium: the cell of one direction.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{FRAMING, Medium, Terms};
use crate::backlog::Backlog;
use crate::cell::{Adjust, Cell};
use crate::packet::Packet;
use crate::segment::{self, Crossing};
use crate::stats::CellStats;
use crate::tally::Tally;
use crate::time::Time;

/// The two ends of a medium that exists from `now` on: of the first station, and of the second. The seed decides how
/// long they back off.
pub(crate) fn pair(terms: Terms, seed: u64, now: Time) -> [End; 2] {
    let medium = Arc::new(Mutex::new(Medium::new(terms, seed, now)));
    [0, 1].map(|side| End {
        medium: Arc::clone(&medium),
        side,
        tally: Tally::new(),
    })
}

pub(crate) struct End {
    medium: Arc<Mutex<Medium>>,
    side: usize,
    tally: Tally,
}

impl End {
    fn lock(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the medium do something at `now`, and counts what it dropped meanwhile.
    fn at<T>(&mut self, now: Time, work: impl FnOnce(&mut Medium, usize, &mut Tally) -> T) -> T {
        let mut medium = self.medium.lock().unwrap_or_else(PoisonError::into_inner);
        medium.advance(now);
        self.tally.take_drops(&mut medium.sides(self.side).0.drops);
        let result = work(&mut medium, self.side, &mut self.tally);
        self.tally.take_drops(&mut medium.sides(self.side).0.drops);
        result
    }
}

fn backlog(medium: &Medium, side: usize) -> Backlog {
    let (this, _) = medium.side(side);
    let in_flight = medium.in_flight(side).map(Packet::backlog);
    in_flight.fold(this.backlog() + this.done.backlog(), |sum, more| sum + more)
}

impl Cell for End {
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.at(now, |medium, side, tally| {
            tally.offer(&packet);
            packet.entered = medium.clock;
            packet.frame(&FRAMING);
            for single in segment::split(packet, 1) {
                medium.enqueue(side, single);
            }
        });
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.at(now, |medium, side, tally| {
            let (this, _) = medium.sides(side);
            this.done.pop(now, tally)
        })
    }

    fn next_event(&self) -> Option<Time> {
        let medium = self.lock();
        let (this, _) = medium.side(self.side);
        if let Some(at) = this.done.next() {
            return Some(at);
        }
        let is_busy = this.frame.is_some() || medium.in_flight(self.side).next().is_some();
        is_busy.then(|| medium.next()).flatten()
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        backlog(&self.lock(), self.side)
    }

    fn stats(&mut self, now: Time, kind: &str) -> CellStats {
        self.at(now, |medium, side, tally| {
            let mut stats = tally.stats(kind, backlog(medium, side));
            medium.side(side).0.delay.report(&mut stats);
            stats
        })
    }

    /// Every frame contends for itself.
    fn crossing(&self) -> Crossing {
        Crossing::Split
    }
}

impl Adjust for End {
    type Spec = Terms;

    fn reconfigure(&mut self, now: Time, terms: Terms) {
        self.at(now, |medium, _, _| medium.reconfigure(terms));
    }
}

//! An Ethernet segment between two stations at 10 or 100 Mbit/s, at least one of which is half
//! duplex: a medium that both directions of a link share, by CSMA/CD (IEEE 802.3 clause 4).
//!
//! The medium is one state machine; each direction of the link holds one end of it. The clocks
//! of the two may be some 100 µs apart: the later one counts. A driver sleeps until the next
//! event of the medium that it knew; what the other end did meanwhile can bring a departure
//! forward only where it makes a station give up the frame that it was sending, and then by
//! less than that frame's time.

pub mod duplex_mismatch;
mod end;
pub mod half_duplex;
mod station;
#[cfg(test)]
mod tests;

use std::time::Duration;

use plumb_model::framing::{Cells, Framing};
use plumb_model::units::BitRate;

pub(crate) use self::end::pair;
use self::station::{Duplex, Signal, Station};
use crate::packet::Packet;
use crate::queue::{QueueKinds, QueueSpec};
use crate::stats::DropCause;
use crate::time::Time;

/// Rates for which the parameters of CSMA/CD hold that are used here.
const RATES: [BitRate; 2] = [
    BitRate::from_bps(10_000_000),
    BitRate::from_bps(100_000_000),
];
/// 100 m of twisted pair: 11.12 bit times of 100 Mbit/s there and back for each 10 m (IEEE
/// 802.3 table 29-3).
const CABLE: Duration = Duration::from_nanos(556);
/// How far away the other station may be, in bit times: a collision with its frame and the jam
/// come back within a slot.
const FARTHEST: u64 = (station::SLOT - 32) / 2;

/// What both kinds of segment are made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Terms {
    rate: BitRate,
    propagation: Duration,
    queue: QueueSpec,
    duplex: [Duplex; 2],
}

impl Terms {
    fn bit_ns(&self) -> u64 {
        1_000_000_000 / self.rate.bps().max(1)
    }

    fn check(&self) -> Result<(), String> {
        if !RATES.contains(&self.rate) {
            return Err(format!(
                "half duplex at {} is not possible: Ethernet has it at 10mbit and 100mbit",
                self.rate
            ));
        }
        let farthest = Duration::from_nanos(FARTHEST * self.bit_ns());
        if self.propagation.is_zero() || self.propagation > farthest {
            return Err(format!(
                "a propagation of {:?} is not possible: at {} it is above zero and at most {farthest:?}, so that a collision is noticed",
                self.propagation, self.rate
            ));
        }
        Ok(())
    }
}

/// An IP packet in an Ethernet frame, with preamble and gap: `ethernet` of tc-cake(8).
const FRAMING: Framing = Framing {
    overhead_bytes: 38,
    mpu_bytes: 84,
    cells: Cells::None,
};

/// The medium and its stations.
struct Medium {
    terms: Terms,
    seed: u64,
    /// Everything up to then has happened.
    clock: Time,
    stations: [Station; 2],
}

impl Medium {
    fn new(terms: Terms, seed: u64, now: Time) -> Self {
        let station = |side: usize| {
            let duplex = terms.duplex.get(side).copied().unwrap_or(Duplex::Half);
            let queue = terms.queue.build(terms.rate, seed);
            let own_seed = Self::seed_of(seed, side);
            Station::new(duplex, terms.bit_ns(), queue, own_seed, now)
        };
        Self {
            seed,
            clock: now,
            stations: [station(0), station(1)],
            terms,
        }
    }

    /// The seed of a station: two that drew the same numbers would collide for ever.
    fn seed_of(seed: u64, side: usize) -> u64 {
        seed ^ (side as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The station of this side and the other.
    fn sides(&mut self, side: usize) -> (&mut Station, &mut Station) {
        let [first, second] = &mut self.stations;
        if side == 0 {
            (first, second)
        } else {
            (second, first)
        }
    }

    fn side(&self, side: usize) -> (&Station, &Station) {
        let [first, second] = &self.stations;
        if side == 0 {
            (first, second)
        } else {
            (second, first)
        }
    }

    /// When something happens next.
    fn next(&self) -> Option<Time> {
        let next = |station: &Station| station.next(self.clock);
        self.stations.iter().filter_map(next).min()
    }

    /// Lets everything happen up to `now`, or up to what the other end's clock has reached.
    /// Returns the later of the two.
    fn advance(&mut self, now: Time) -> Time {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            self.sample(at);
            self.clock = at;
            self.step();
        }
        self.clock = self.clock.max(now);
        self.sample(self.clock);
        self.clock
    }

    fn sample(&mut self, end: Time) {
        for station in &mut self.stations {
            station.sample_delay(end);
        }
    }

    /// Does what happens at this instant. What one station begins reaches the other later, so
    /// that it does not matter whose turn is first.
    fn step(&mut self) {
        let now = self.clock;
        let propagation = self.terms.propagation;
        for side in [0, 1] {
            let (this, other) = self.sides(side);
            if let Some(sent) = this.end(now)
                && let Some(signal) = other.incoming.back_mut()
            {
                signal.off = Some((sent.at + propagation).max(signal.on));
                signal.packet = sent.packet;
            }
        }
        for side in [0, 1] {
            let (this, other) = self.sides(side);
            while let Some(received) = this.listen(now) {
                if received.damaged {
                    other.drops.drop(DropCause::FcsError, &received.packet);
                } else {
                    other.done.push(received.at, received.packet);
                }
            }
        }
        for side in [0, 1] {
            let (this, other) = self.sides(side);
            if this.begin(now) {
                // A cable that was made shorter does not let frames overtake.
                let before = other.incoming.back().and_then(|signal| signal.off);
                let on = (now + propagation).max(before.unwrap_or(now));
                other.incoming.push_back(Signal::from(on));
            }
        }
    }

    /// Takes a packet, which has been framed, at a time that [`Self::advance`] returned.
    fn enqueue(&mut self, side: usize, packet: Packet) {
        let now = self.clock;
        self.sides(side).0.enqueue(now, packet);
        self.step();
    }

    /// What is still under way from one side.
    fn in_flight(&self, side: usize) -> impl Iterator<Item = &Packet> {
        let (_, other) = self.side(side);
        other
            .incoming
            .iter()
            .filter_map(|signal| signal.packet.as_ref())
    }

    /// Takes new settings; what is being sent keeps its time.
    fn reconfigure(&mut self, terms: Terms) {
        let now = self.clock;
        if self.terms == terms {
            return;
        }
        for (station, duplex) in self.stations.iter_mut().zip(terms.duplex) {
            station.duplex = duplex;
            station.bit_ns = terms.bit_ns();
            if !station.queue.set(&terms.queue, terms.rate) {
                let waiting = station.queue.drain();
                station.queue = terms.queue.build(terms.rate, self.seed);
                for packet in waiting {
                    station.enqueue(now, packet);
                }
            }
        }
        self.terms = terms;
        self.step();
    }
}

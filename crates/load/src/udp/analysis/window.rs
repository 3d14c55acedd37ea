//! The last packets by their numbers: which of them came, when, and when they were overtaken.

use std::ops::Range;

use plumb_model::loss::Losses;

/// Packets in the window: 65 ms at two million a second, three seconds at 500 Mbit/s in packets
/// of 1400 bytes. It bounds the memory to 4 MB, of which a slow stream touches little.
pub(super) const PACKETS: usize = 1 << 17;

/// What is known of one number.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    came: bool,
    /// The stretch of time in which it was due, where it did not come in order.
    due_in: u32,
    /// Its delay, once it came.
    delay_ns: i64,
    /// The arrival with which numbers first reached this one, by its place and time: the one
    /// that overtook the number below.
    reached_place: u64,
    reached_ns: i64,
}

/// A stretch of sequence numbers that moves on as larger ones come.
#[derive(Debug)]
pub(super) struct Window {
    slots: Vec<Slot>,
    /// The smallest number in the window.
    base: u64,
    /// One above the largest that came.
    next: u64,
    /// Packets that came, duplicates not counted.
    place: u64,
}

/// How a packet came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Above all that came before.
    InOrder,
    /// Below one that came before (RFC 4737, section 3.3).
    Reordered {
        /// How many places before the first larger one came (section 4.2).
        extent: u64,
        /// How long before (section 4.3).
        late_ns: u64,
        /// The stretch of time in which it was due.
        due_in: u32,
    },
    Duplicate,
    TooLate,
}

impl Window {
    pub(super) fn new(packets: usize) -> Self {
        Self {
            slots: vec![Slot::default(); packets.max(2)],
            base: 0,
            next: 0,
            place: 0,
        }
    }

    fn slot(&self, sequence: u64) -> Option<&Slot> {
        let inside = (self.base..self.next).contains(&sequence);
        let index = (sequence % self.slots.len() as u64) as usize;
        self.slots.get(index).filter(|_| inside)
    }

    fn slot_mut(&mut self, sequence: u64) -> Option<&mut Slot> {
        let index = (sequence % self.slots.len() as u64) as usize;
        self.slots.get_mut(index)
    }

    /// Whether that number is known to have come.
    pub(super) fn came(&self, sequence: u64) -> bool {
        self.slot(sequence).is_some_and(|slot| slot.came)
    }

    /// The smallest number of which anything is known.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// One above the largest that came.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The delay of that number, where it is known to have come.
    pub(super) fn delay_ns(&self, sequence: u64) -> Option<i64> {
        self.slot(sequence)
            .filter(|slot| slot.came)
            .map(|slot| slot.delay_ns)
    }

    /// Takes a packet in.
    pub(super) fn arrive(
        &mut self,
        sequence: u64,
        received_ns: i64,
        delay_ns: i64,
        losses: &mut Losses,
    ) -> Arrival {
        // The largest number has none above it.
        if sequence < self.base || sequence == u64::MAX {
            return Arrival::TooLate;
        }
        let arrival = if sequence >= self.next {
            self.reach(sequence, received_ns, losses);
            Arrival::InOrder
        } else if self.came(sequence) {
            return Arrival::Duplicate;
        } else {
            let overtaken = self.slot(sequence + 1).copied().unwrap_or_default();
            Arrival::Reordered {
                extent: self.place - overtaken.reached_place,
                late_ns: u64::try_from(received_ns.saturating_sub(overtaken.reached_ns))
                    .unwrap_or(0),
                due_in: self.slot(sequence).map_or(0, |slot| slot.due_in),
            }
        };
        if let Some(slot) = self.slot_mut(sequence) {
            (slot.came, slot.delay_ns) = (true, delay_ns);
        }
        self.place += 1;
        arrival
    }

    /// Notes in which stretch of time numbers were due that were passed.
    pub(super) fn due_in(&mut self, numbers: Range<u64>, stretch: u32) {
        for number in numbers.start.max(self.base)..numbers.end.min(self.next) {
            if let Some(slot) = self.slot_mut(number) {
                slot.due_in = stretch;
            }
        }
    }

    /// Moves on until `sequence` is the largest.
    fn reach(&mut self, sequence: u64, received_ns: i64, losses: &mut Losses) {
        let length = self.slots.len() as u64;
        let base = (sequence + 1).saturating_sub(length).max(self.base);
        self.leave(base, losses);
        let fresh = Slot {
            reached_place: self.place,
            reached_ns: received_ns,
            ..Slot::default()
        };
        for number in self.next.max(base)..=sequence {
            if let Some(slot) = self.slot_mut(number) {
                *slot = fresh;
            }
        }
        self.next = sequence + 1;
    }

    /// Gives up the numbers below `base`: those that did not come are lost.
    fn leave(&mut self, base: u64, losses: &mut Losses) {
        for number in self.base..base.min(self.next) {
            if !self.came(number) {
                losses.lose(number, 1);
            }
        }
        let beyond = self.base.max(self.next);
        losses.lose(beyond, base.saturating_sub(beyond));
        self.base = self.base.max(base);
        self.next = self.next.max(self.base);
    }

    /// Nothing more comes: gives everything up, `announced` packets in all, and returns how many there were as far as
    /// is known.
    pub(super) fn close(&mut self, announced: Option<u64>, losses: &mut Losses) -> u64 {
        let known = announced.unwrap_or(0).max(self.next);
        self.leave(known, losses);
        known
    }
}

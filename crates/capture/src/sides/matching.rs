//! Finds each packet of one capture in the other. Each file is read once; what was read last is remembered, in a limited number and
//! for a limited time.

use std::collections::{HashMap, VecDeque};

use super::fingerprint::Summary;
use super::pairs::FlowId;
use crate::table::Seeded;

/// Packets that are remembered of each file: about 100 MB of memory.
pub(super) const MOST_HELD: usize = 1 << 19;
/// Candidates that are looked at, the latest first: identical packets sent within the time that one is on its way.
const MOST_CANDIDATES: usize = 256;
/// Without an identification, a packet is not taken for one that would have been on its way for so much longer than the one
/// before, in ns: no queue of a path holds that much (RFC 8085, section 3.1.1, takes 2 minutes for the life of a packet; buffers hold seconds).
const MOST_CHANGE_NS: u64 = 3_000_000_000;
/// Matches after which it is known whether identifications of IPv4 pass unchanged.
const ENOUGH: u64 = 8;
/// Means no packet at all.
const NONE: u64 = u64::MAX;

/// A packet that is remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) summary: Summary,
    pub(super) flow: Option<FlowId>,
    /// When the other capture has it.
    pub(super) partner_ns: Option<u64>,
    /// Whether no other packet is like it, so that its order is known.
    pub(super) alone: bool,
    /// Whether the same capture has it more than once.
    pub(super) copy: bool,
    key: u64,
    /// The one before of the same hash.
    older: u64,
}

/// What is remembered of one file, in its order.
#[derive(Debug, Default)]
struct Queue {
    held: VecDeque<Held>,
    /// How many were forgotten.
    gone: u64,
}

impl Queue {
    fn get(&self, serial: u64) -> Option<&Held> {
        let place = serial.checked_sub(self.gone)?;
        self.held.get(usize::try_from(place).ok()?)
    }

    fn get_mut(&mut self, serial: u64) -> Option<&mut Held> {
        let place = serial.checked_sub(self.gone)?;
        self.held.get_mut(usize::try_from(place).ok()?)
    }

    /// The packets of a hash, the latest first.
    fn chain(&self, newest: u64) -> impl Iterator<Item = (u64, &Held)> {
        let mut next = newest;
        let all = std::iter::from_fn(move || {
            let serial = next;
            let held = self.get(serial)?;
            next = held.older;
            Some((serial, held))
        });
        all.take(MOST_CANDIDATES)
    }
}

/// What is remembered of both files.
#[derive(Debug, Default)]
pub(super) struct Matching {
    queues: [Queue; 2],
    /// The latest packet of each hash in each file.
    newest: HashMap<u64, [u64; 2], Seeded>,
    /// Matches with the same identification, and with another one.
    same_ident: u64,
    other_ident: u64,
}

/// A packet that arrives.
pub(super) struct Arrival {
    pub(super) side: usize,
    pub(super) summary: Summary,
    pub(super) key: u64,
    pub(super) flow: Option<FlowId>,
    /// Clock of the second file less the clock of the first for the last packet of the flow, with its time on the path.
    pub(super) expected_ns: Option<i64>,
}

impl Matching {
    pub(super) fn len(&self, side: usize) -> usize {
        self.queues.get(side).map_or(0, |queue| queue.held.len())
    }

    pub(super) fn oldest_ns(&self, side: usize) -> Option<u64> {
        let queue = self.queues.get(side)?;
        queue.held.front().map(|held| held.summary.ns)
    }

    /// Looks for the packet in the other file, and remembers it; the other file's packet where it is found.
    pub(super) fn arrive(&mut self, arrival: &Arrival) -> Option<Held> {
        let newest = *self.newest.get(&arrival.key).unwrap_or(&[NONE; 2]);
        let found = self.candidate(arrival, newest);
        let serial = self.hold(arrival, newest);
        match found {
            Some(other) => self.join(arrival, serial, other),
            None => {
                self.mark_if_copy(arrival, serial, newest);
                None
            }
        }
    }

    /// The same for one that was remembered already and is found by another hash: its sequence number was rewritten.
    pub(super) fn find_by(&mut self, arrival: &Arrival, serial_of_other: u64) -> Option<Held> {
        let serial = self.last_serial(arrival.side)?;
        let other = self.queues.get(1 - arrival.side)?.get(serial_of_other)?;
        if other.partner_ns.is_some() || !other.summary.agrees(&arrival.summary) {
            return None;
        }
        self.join(arrival, serial, serial_of_other)
    }

    /// The number of the packet that was remembered last.
    pub(super) fn last_serial(&self, side: usize) -> Option<u64> {
        let queue = self.queues.get(side)?;
        (queue.gone + queue.held.len() as u64).checked_sub(1)
    }

    /// Forgets the oldest packet of a file.
    pub(super) fn forget(&mut self, side: usize) -> Option<Held> {
        let queue = self.queues.get_mut(side)?;
        let serial = queue.gone;
        let held = queue.held.pop_front()?;
        queue.gone += 1;
        if let Some(newest) = self.newest.get_mut(&held.key) {
            for place in newest.iter_mut().skip(side).take(1) {
                if *place == serial {
                    *place = NONE;
                }
            }
            if *newest == [NONE; 2] {
                self.newest.remove(&held.key);
            }
        }
        Some(held)
    }

    /// Whether identifications of IPv4 pass unchanged, as far as is known.
    fn keeps_ident(&self) -> bool {
        let all = self.same_ident + self.other_ident;
        all >= ENOUGH && self.same_ident * 10 >= all * 9
    }

    /// The packet of the other file that fits best: of the same identification, and else of the most likely time.
    fn candidate(&self, arrival: &Arrival, newest: [u64; 2]) -> Option<u64> {
        let other = 1 - arrival.side;
        let queue = self.queues.get(other)?;
        let strict = self.keeps_ident();
        let mine = &arrival.summary;
        let unmatched = queue
            .chain(*newest.get(other)?)
            .filter(|(_, held)| held.partner_ns.is_none() && held.summary.agrees(mine));
        let scored = unmatched.filter_map(|(serial, held)| {
            let theirs = &held.summary;
            let known = mine.ident != 0 && theirs.ident != 0;
            let differs = known && mine.ident != theirs.ident;
            let apart_ns = difference_ns(arrival.side, mine.ns, theirs.ns);
            let unlikely = arrival
                .expected_ns
                .map_or(0, |expected| apart_ns.abs_diff(expected));
            let vouched = known && !differs;
            let excluded = (differs && strict) || (!vouched && unlikely > MOST_CHANGE_NS);
            let strange = 2 - mine.shared_ends(theirs);
            (!excluded).then_some(((differs, strange, unlikely, serial), serial))
        });
        scored
            .min_by_key(|(score, _)| *score)
            .map(|(_, serial)| serial)
    }

    fn hold(&mut self, arrival: &Arrival, newest: [u64; 2]) -> u64 {
        let Some(queue) = self.queues.get_mut(arrival.side) else {
            return NONE;
        };
        let serial = queue.gone + queue.held.len() as u64;
        queue.held.push_back(Held {
            summary: arrival.summary,
            flow: arrival.flow,
            partner_ns: None,
            alone: false,
            copy: false,
            key: arrival.key,
            older: newest.get(arrival.side).copied().unwrap_or(NONE),
        });
        let places = self.newest.entry(arrival.key).or_insert([NONE; 2]);
        for place in places.iter_mut().skip(arrival.side).take(1) {
            *place = serial;
        }
        serial
    }

    /// Notes that two packets are one.
    fn join(&mut self, arrival: &Arrival, serial: u64, other: u64) -> Option<Held> {
        let [mine, theirs] = [arrival.side, 1 - arrival.side];
        let partner = *self.queues.get(theirs)?.get(other)?;
        let ident = arrival.summary.ident;
        let vouched = ident != 0 && ident == partner.summary.ident;
        let alone = vouched
            || self.is_alone(mine, arrival.key, &arrival.summary)
                && self.is_alone(theirs, partner.key, &arrival.summary);
        let partner = self.queues.get_mut(theirs)?.get_mut(other)?;
        partner.partner_ns = Some(arrival.summary.ns);
        partner.alone = alone;
        let found = *partner;
        if let Some(held) = self.queues.get_mut(mine)?.get_mut(serial) {
            held.partner_ns = Some(found.summary.ns);
            held.alone = alone;
        }
        if found.summary.ident != 0 && arrival.summary.ident != 0 {
            let same = found.summary.ident == arrival.summary.ident;
            self.same_ident += u64::from(same);
            self.other_ident += u64::from(!same);
        }
        // Copies that came before their original was found.
        let newest = *self.newest.get(&found.key)?;
        let queue = self.queues.get_mut(theirs)?;
        let copies: Vec<u64> = queue
            .chain(*newest.get(theirs)?)
            .filter(|(_, held)| held.partner_ns.is_none() && is_copy(&held.summary, &found.summary))
            .map(|(serial, _)| serial)
            .collect();
        for serial in copies {
            if let Some(held) = queue.get_mut(serial) {
                held.copy = true;
            }
        }
        Some(found)
    }

    /// Whether one packet of a file at most may be that one.
    fn is_alone(&self, side: usize, key: u64, summary: &Summary) -> bool {
        let newest = self.newest.get(&key).unwrap_or(&[NONE; 2]);
        let queue = self.queues.get(side).zip(newest.get(side));
        let like = queue
            .into_iter()
            .flat_map(|(queue, newest)| queue.chain(*newest));
        like.filter(|(_, held)| held.summary.agrees(summary))
            .nth(1)
            .is_none()
    }

    /// Marks a packet that was found in the other file already.
    fn mark_if_copy(&mut self, arrival: &Arrival, serial: u64, newest: [u64; 2]) {
        let Some(queue) = self.queues.get_mut(arrival.side) else {
            return;
        };
        let before = newest.get(arrival.side).copied().unwrap_or(NONE);
        let copy = queue
            .chain(before)
            .any(|(_, held)| held.partner_ns.is_some() && is_copy(&held.summary, &arrival.summary));
        if let Some(held) = queue.get_mut(serial) {
            held.copy = copy;
        }
    }
}

/// Clock of the second file less the clock of the first, with the time on the path.
pub(super) fn difference_ns(side: usize, mine_ns: u64, theirs_ns: u64) -> i64 {
    let (first, second) = match side {
        0 => (mine_ns, theirs_ns),
        _ => (theirs_ns, mine_ns),
    };
    i64::try_from(i128::from(second) - i128::from(first)).unwrap_or(i64::MAX)
}

/// Whether two packets of one file are the same one. Acknowledgements that differ in what was received out of order alone differ in
/// their checksums.
fn is_copy(one: &Summary, two: &Summary) -> bool {
    let sums = one.checksum.zip(two.checksum);
    one.ident == two.ident
        && one.agrees(two)
        && one.ends == two.ends
        && sums.is_none_or(|(one, two)| one == two)
}

//! Captures of the same traffic at two places: packets are matched although their clocks differ, which shows what became
//! of them in between.

mod changes;
mod clocks;
mod delays;
mod feed;
mod fingerprint;
mod matching;
mod pairs;
mod result;

use plumb_model::results::capture::sides::CaptureSidesResult;

use crate::analysis::{INTERRUPTED, Named};
use crate::table::Seeded;
use changes::Changes;
use delays::{Delays, Sample};
use feed::{Feed, Keyed};
use fingerprint::Summary;
use matching::{Arrival, Held, MOST_HELD, Matching, difference_ns};
use pairs::Pairs;
use result::Found;

/// How long a packet is waited for in the other file, in ns: ten times what buffers of lines hold.
const WAIT_NS: u64 = 20_000_000_000;
/// So many of the latest matches show how far the two clocks are apart, for reading both files in step.
const LATEST: usize = 32;
/// Matches after which that is reckoned, and reckoned anew.
const ENOUGH: usize = 8;
/// SYNs whose sequence number may have been rewritten, and which wait for their like.
const MOST_SYNS: usize = 1 << 16;

/// Two captures that are being matched: the client's side first.
pub struct Sides {
    seed: Seeded,
    feeds: [Feed; 2],
    pairs: [Pairs; 2],
    matching: Matching,
    /// SYNs by what they are found by when their numbers were rewritten.
    syns: [std::collections::HashMap<u64, u64, Seeded>; 2],
    delays: Delays,
    changes: Changes,
    latest: Vec<i64>,
    matches: usize,
    /// Clock of the second file less the clock of the first, about.
    lag_ns: Option<i64>,
    forgotten: [u64; 2],
}

impl Sides {
    /// Reads both files, the one of the client's side first. `stop` is asked now and then whether to end early.
    pub fn of(files: [Named; 2], stop: &dyn Fn() -> bool) -> CaptureSidesResult {
        /// How many packets come between two looks: a few milliseconds of work.
        const LOOK_EVERY: u64 = 1 << 16;
        let mut sides = Self {
            seed: Seeded::default(),
            feeds: files.map(Feed::new),
            pairs: Default::default(),
            matching: Matching::default(),
            syns: Default::default(),
            delays: Delays::default(),
            changes: Changes::default(),
            latest: Vec::with_capacity(LATEST),
            matches: 0,
            lag_ns: None,
            forgotten: [0; 2],
        };
        let mut count = 0_u64;
        // Ends with both files: each turn reads a packet.
        while let Some(side) = sides.behind() {
            sides.step(side);
            count += 1;
            if count.is_multiple_of(LOOK_EVERY) && stop() {
                for feed in &mut sides.feeds {
                    feed.told.incomplete.get_or_insert(INTERRUPTED.to_owned());
                }
                break;
            }
        }
        sides.finish()
    }

    /// The file to be read on: the one that is behind in time, or while that is not known, in packets.
    fn behind(&mut self) -> Option<usize> {
        let [first, second] = &mut self.feeds;
        let heads = (first.peek_ns(&self.seed), second.peek_ns(&self.seed));
        let (first_ns, second_ns) = match heads {
            (None, None) => return None,
            (Some(_), None) => return Some(0),
            (None, Some(_)) => return Some(1),
            (Some(first_ns), Some(second_ns)) => (first_ns, second_ns),
        };
        let second_behind = match self.lag_ns {
            Some(lag) => difference_ns(0, first_ns, second_ns) < lag,
            None => self.matching.len(1) < self.matching.len(0),
        };
        Some(usize::from(second_behind))
    }

    fn step(&mut self, side: usize) {
        let (Some(feed), Some(pairs)) = (self.feeds.get_mut(side), self.pairs.get_mut(side)) else {
            return;
        };
        let Some(keyed) = feed.next(&self.seed) else {
            return;
        };
        let flow = pairs.flow_of(keyed.summary.ends);
        let last = flow.and_then(|flow| pairs.get(flow)?.last);
        let arrival = Arrival {
            side,
            summary: keyed.summary,
            key: keyed.key,
            flow,
            expected_ns: last.map(|(_, difference)| difference).or(self.lag_ns),
        };
        let found = self.matching.arrive(&arrival);
        let found = found.or_else(|| self.rewritten(&arrival, &keyed));
        if let Some(other) = found {
            self.matched(&arrival, &other);
        }
        for side in [0, 1] {
            self.expire(side);
        }
    }

    /// A SYN is looked for without its sequence number, where it was not found by it.
    fn rewritten(&mut self, arrival: &Arrival, keyed: &Keyed) -> Option<Held> {
        let (side, key) = (arrival.side, keyed.syn_key?);
        let waiting = self.syns.get_mut(1 - side)?;
        if let Some(other) = waiting.remove(&key) {
            let other = self.matching.find_by(arrival, other)?;
            // From here on, numbers of the second file are as in the first.
            let (first, second) = in_order(side, &arrival.summary, &other.summary);
            let ((before, _), (after, _)) = first.syn().zip(second.syn())?;
            let [_, feed] = &mut self.feeds;
            feed.shift(second.ends, after.wrapping_sub(before));
            return Some(other);
        }
        let serial = self.matching.last_serial(side)?;
        let own = self.syns.get_mut(side)?;
        if own.len() >= MOST_SYNS {
            own.clear();
        }
        own.insert(key, serial);
        None
    }

    /// Takes in a packet that both files have.
    fn matched(&mut self, arrival: &Arrival, other: &Held) {
        let side = arrival.side;
        let (first, second) = in_order(side, &arrival.summary, &other.summary);
        let flows = match side {
            0 => [arrival.flow, other.flow],
            _ => [other.flow, arrival.flow],
        };
        let difference = difference_ns(0, first.ns, second.ns);
        for (pairs, flow) in self.pairs.iter_mut().zip(flows) {
            if let Some(flow) = flow {
                pairs.note(flow, first.ns, difference);
            }
        }
        if let [Some(flow), _] = flows {
            self.delays.add(Sample {
                at_ns: first.ns,
                difference_ns: difference,
                flow,
            });
            self.changes.note(flow, first, second);
        }
        // Where one side announces less, segments of the other side are joined of smaller ones too.
        if let (Some((_, one)), Some((_, two))) = (first.syn(), second.syn())
            && let Some(mss) = one.mss.into_iter().chain(two.mss).min()
        {
            for (feed, summary) in self.feeds.iter_mut().zip([first, second]) {
                feed.limit(summary.ends, mss);
            }
        }
        match self.latest.get_mut(self.matches % LATEST) {
            Some(place) => *place = difference,
            None => self.latest.push(difference),
        }
        self.matches += 1;
        if self.matches >= ENOUGH && self.matches.is_multiple_of(ENOUGH) {
            // Packets of both directions are in it: the clocks are apart by what is between them. A few may be wrong.
            let mut sorted = self.latest.clone();
            sorted.sort_unstable();
            let (low, high) = (sorted.len() / 8, sorted.len() - 1 - sorted.len() / 8);
            let ends = sorted.get(low).zip(sorted.get(high));
            self.lag_ns = ends.map(|(least, most)| least / 2 + most / 2);
        }
    }

    /// Forgets what is too old to be found, or too much.
    fn expire(&mut self, side: usize) {
        // Ends with what is remembered: each turn forgets a packet.
        while let Some(oldest) = self.matching.oldest_ns(side) {
            let too_many = self.matching.len(side) > MOST_HELD;
            if !too_many && !self.is_over(side, oldest) {
                return;
            }
            let Some(held) = self.matching.forget(side) else {
                return;
            };
            if too_many && held.partner_ns.is_none() {
                self.forgot(side);
            }
            self.count(side, &held);
        }
    }

    /// Counts a packet of which it is not known what became of it.
    fn forgot(&mut self, side: usize) {
        for forgotten in self.forgotten.iter_mut().skip(side).take(1) {
            *forgotten += 1;
        }
    }

    /// Whether both files were read far beyond a time of one.
    fn is_over(&mut self, side: usize, ns: u64) -> bool {
        let Some(lag) = self.lag_ns else {
            return false;
        };
        let heads = self.feeds.each_mut().map(|feed| feed.peek_ns(&self.seed));
        let over = |(place, head): (usize, Option<u64>)| {
            // A file that has ended is beyond every time.
            head.is_none_or(|head| {
                let same_clock = match place == side {
                    true => i128::from(head),
                    false if side == 0 => i128::from(head) - i128::from(lag),
                    false => i128::from(head) + i128::from(lag),
                };
                same_clock - i128::from(ns) > i128::from(WAIT_NS)
            })
        };
        heads.into_iter().enumerate().all(over) && heads != [None, None]
    }

    /// Counts a packet that is forgotten.
    fn count(&mut self, side: usize, held: &Held) {
        let covered = self.is_covered(side, held);
        let Some(flow) = held.flow else {
            self.forgot(side);
            return;
        };
        let pairs = self.pairs.get_mut(side);
        let Some(flow) = pairs.and_then(|pairs| pairs.get_mut(flow)) else {
            return;
        };
        match held.partner_ns {
            Some(partner) => flow.found(partner, held.alone),
            None if held.copy && held.summary.ident != 0 => flow.copies += 1,
            None if !covered => flow.outside += 1,
            None if held.copy => flow.alike += 1,
            None => flow.missing += 1,
        }
    }

    /// Whether the other capture ran when the packet passed it, however long that took of those that passed both.
    fn is_covered(&self, side: usize, held: &Held) -> bool {
        let range = held.flow.and_then(|flow| {
            let pairs = self.pairs.get(side)?;
            pairs.get(flow)?.range_ns
        });
        let range = range.or(self.lag_ns.map(|lag| [lag, lag]));
        let span = self.feeds.get(1 - side).and_then(|feed| feed.span_ns);
        let (Some([least, most]), Some([from, to])) = (range, span) else {
            return false;
        };
        let ns = i128::from(held.summary.ns);
        let (earliest, latest) = match side {
            0 => (ns + i128::from(least), ns + i128::from(most)),
            _ => (ns - i128::from(most), ns - i128::from(least)),
        };
        earliest >= i128::from(from) && latest <= i128::from(to)
    }

    fn finish(mut self) -> CaptureSidesResult {
        for side in [0, 1] {
            // Ends with what is remembered.
            while let Some(held) = self.matching.forget(side) {
                self.count(side, &held);
            }
        }
        self.delays.finish();
        Found {
            feeds: self.feeds,
            pairs: self.pairs,
            delays: self.delays,
            changes: self.changes,
            forgotten: self.forgotten,
        }
        .result()
    }
}

/// A packet of the first file, and the same of the second.
fn in_order<'a>(side: usize, mine: &'a Summary, theirs: &'a Summary) -> (&'a Summary, &'a Summary) {
    match side {
        0 => (mine, theirs),
        _ => (theirs, mine),
    }
}

#[cfg(test)]
mod changes_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

//! What came in each stretch of time, and what was due in it and never came.
//!
//! It is unknown when a packet was due that never came: the numbers between two that came in order are spread evenly
//! over the time between those. One that comes after all, late, is no loss any more.

use std::ops::Range;

use plumb_wire::native::control::report::Count;
use plumb_wire::native::control::report::{DatagramCount, DelayAbove};
use plumb_wire::native::spec::SAMPLE_INTERVAL;

const STRETCH_NS: i64 = SAMPLE_INTERVAL.as_nanos() as i64;

/// The stretches so far, each [`SAMPLE_INTERVAL`] long.
#[derive(Debug, Default)]
pub(super) struct OverTime {
    started_ns: i64,
    most: usize,
    stretches: Vec<Stretch>,
    last_ns: i64,
}

/// What is known of one.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    bytes: u64,
    due: u64,
    lost: u64,
    came: u64,
    delays_ns: i128,
    max_delay_ns: i64,
}

impl OverTime {
    /// The first begins at `started_ns`; of so many at most anything is kept, of none by default.
    pub(super) fn new(started_ns: i64, most: usize) -> Self {
        Self {
            started_ns,
            most,
            stretches: Vec::new(),
            last_ns: started_ns,
        }
    }

    /// In which of them an instant is; the last that is kept, for what is later.
    fn number(&self, at_ns: i64) -> u32 {
        let stretch = at_ns.saturating_sub(self.started_ns).max(0) / STRETCH_NS;
        let last = self.most.saturating_sub(1);
        usize::try_from(stretch).map_or(last, |s| s.min(last)) as u32
    }

    fn end_ns(&self, number: u32) -> i64 {
        let after_ns = (i64::from(number) + 1) * STRETCH_NS;
        self.started_ns.saturating_add(after_ns)
    }

    fn stretch(&mut self, number: u32) -> Option<&mut Stretch> {
        let place = number as usize;
        if place >= self.stretches.len() && place < self.most {
            self.stretches.resize(place + 1, Stretch::default());
        }
        self.stretches.get_mut(place)
    }

    /// A packet came that is no duplicate.
    pub(super) fn came(&mut self, at_ns: i64, payload_bytes: u32, delay_ns: i64) {
        self.last_ns = at_ns;
        let number = self.number(at_ns);
        if let Some(stretch) = self.stretch(number) {
            stretch.bytes += u64::from(payload_bytes);
            stretch.max_delay_ns = match stretch.came {
                0 => delay_ns,
                _ => stretch.max_delay_ns.max(delay_ns),
            };
            stretch.came += 1;
            stretch.delays_ns += i128::from(delay_ns);
        }
    }

    /// A packet came with the largest number so far.
    pub(super) fn in_order(&mut self, at_ns: i64) {
        let number = self.number(at_ns);
        if let Some(stretch) = self.stretch(number) {
            stretch.due = stretch.due.saturating_add(1);
        }
    }

    /// These numbers were passed between two instants, and did not come: calls `of_stretch` with each stretch and the
    /// numbers that were due in it.
    pub(super) fn passed(
        &mut self,
        numbers: Range<u64>,
        (from_ns, to_ns): (i64, i64),
        of_stretch: &mut dyn FnMut(u32, Range<u64>),
    ) {
        let all = numbers.end.saturating_sub(numbers.start);
        let first = self.number(from_ns);
        let last = self.number(to_ns).max(first);
        let mut next = numbers.start;
        for number in first..=last {
            let until = if number == last {
                numbers.end
            } else {
                let share = |ns: i64| i128::from(ns.saturating_sub(from_ns).max(0));
                let before = i128::from(all) * share(self.end_ns(number)) / share(to_ns).max(1);
                numbers.start + u64::try_from(before).map_or(all, |before| before.min(all))
            };
            if until > next {
                if let Some(stretch) = self.stretch(number) {
                    stretch.due = stretch.due.saturating_add(until - next);
                    stretch.lost = stretch.lost.saturating_add(until - next);
                }
                of_stretch(number, next..until);
                next = until;
            }
        }
    }

    /// A packet came after all that was due in that stretch.
    pub(super) fn came_late(&mut self, number: u32) {
        if let Some(stretch) = self.stretch(number) {
            stretch.lost = stretch.lost.saturating_sub(1);
        }
    }

    /// What had come at the end of each, and of the last of them when its last packet came. The
    /// smallest delay of the stream is known by now.
    pub(super) fn counts(&self, min_delay_ns: i64) -> Vec<Count> {
        let above = |delay_ns: i128| {
            u64::try_from(delay_ns.saturating_sub(min_delay_ns.into())).unwrap_or(0)
        };
        let mut bytes = 0;
        let mut datagrams = DatagramCount::default();
        let mut counts = vec![Count::default()];
        for (number, stretch) in (0..).zip(&self.stretches) {
            bytes += stretch.bytes;
            datagrams.due = datagrams.due.saturating_add(stretch.due);
            datagrams.lost = datagrams.lost.saturating_add(stretch.lost);
            datagrams.delay = (stretch.came > 0).then(|| DelayAbove {
                mean_ns: above(stretch.delays_ns / i128::from(stretch.came.max(1))),
                max_ns: above(stretch.max_delay_ns.into()),
            });
            let end_ns = self.end_ns(number);
            let is_last = number as usize + 1 == self.stretches.len();
            let at_ns = match is_last && stretch.came > 0 {
                true => end_ns.min(self.last_ns),
                false => end_ns,
            };
            counts.push(Count {
                t_s: at_ns.saturating_sub(self.started_ns).max(0) as f64 / 1e9,
                bytes,
                datagrams: Some(datagrams),
            });
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    const MS: i64 = 1_000_000;

    /// Due, lost, mean and greatest delay of a stretch, in milliseconds.
    type Row = (u64, u64, Option<(u64, u64)>);

    fn rows(over_time: &OverTime) -> Vec<Row> {
        let counts = over_time.counts(10 * MS);
        let pairs = counts.windows(2).map(|pair| {
            let [before, now] = [pair[0], pair[1]].map(|c| c.datagrams.unwrap_or_default());
            let ms = |ns| ns / MS as u64;
            (
                now.due - before.due,
                now.lost - before.lost,
                now.delay.map(|d| (ms(d.mean_ns), ms(d.max_ns))),
            )
        });
        pairs.collect()
    }

    #[test]
    fn what_never_came_was_due_between_those_around_it() {
        let mut over_time = OverTime::new(1000 * MS, 100);
        for at_ms in [1000, 1099] {
            over_time.in_order(at_ms * MS);
            over_time.came(at_ms * MS, 100, 12 * MS);
        }
        // An outage of 250 ms, and a packet every 10 ms before and after.
        let mut told = Vec::new();
        let of = (1099 * MS, 1349 * MS);
        over_time.passed(2..27, of, &mut |number, range| told.push((number, range)));
        over_time.in_order(1349 * MS);
        over_time.came(1349 * MS, 100, 30 * MS);
        assert_eq!(told, [(1, 2..12), (2, 12..22), (3, 22..27)]);
        let silent = (10, 10, None);
        assert_eq!(
            rows(&over_time),
            [(2, 0, Some((2, 2))), silent, silent, (6, 5, Some((20, 20)))]
        );
        over_time.came_late(2);
        assert_eq!(rows(&over_time)[2], (10, 9, None));
        // The last ends with its last packet.
        let last = *over_time.counts(0).last().unwrap();
        assert_eq!((last.t_s, last.bytes), (0.349, 300));
    }

    #[test]
    fn a_clock_that_goes_mad_takes_no_memory() {
        let mut over_time = OverTime::new(0, 3);
        for at_ns in [i64::MIN, i64::MAX, 0] {
            over_time.in_order(at_ns);
            over_time.came(at_ns, 1, at_ns);
        }
        over_time.passed(0..u64::MAX, (i64::MIN, i64::MAX), &mut |_, _| ());
        over_time.passed(5..9, (i64::MAX, i64::MIN), &mut |_, _| ());
        assert_eq!(over_time.counts(i64::MIN).len(), 4);
        // And by default nothing is kept.
        let mut nothing = OverTime::default();
        nothing.in_order(0);
        nothing.came(0, 1, 1);
        assert_eq!(nothing.counts(0), [Count::default()]);
    }
}

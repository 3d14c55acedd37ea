//! Sequence numbers, which wrap (RFC 9293, section 3.4), and ranges of them.

/// Whether `a` comes before `b`.
#[inline]
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[inline]
pub(super) fn at_most(a: u32, b: u32) -> bool {
    !before(b, a)
}

#[inline]
pub(super) fn later(a: u32, b: u32) -> u32 {
    match before(a, b) {
        true => b,
        false => a,
    }
}

#[inline]
pub(super) fn earlier(a: u32, b: u32) -> u32 {
    match before(a, b) {
        true => a,
        false => b,
    }
}

/// Ranges kept of one side; more are of a stream so torn that the oldest no longer matter.
const MOST_RANGES: usize = 256;

/// A range of sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u32,
    /// The number behind it.
    pub(super) end: u32,
    pub(super) noted: Noted,
}

/// What a range was noted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) ns: u64,
    /// Identification of the packet.
    pub(super) ident: u16,
}

impl Range {
    fn length(self) -> u32 {
        self.end.wrapping_sub(self.start)
    }
}

/// Ranges of sequence numbers that do not overlap, in order. They take no memory while there is none.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges(Option<Box<Kept>>);

/// At least one range.
#[derive(Debug, Clone, Default)]
struct Kept {
    ranges: Vec<Range>,
    total: u32,
}

impl Ranges {
    /// Sequence numbers in all of them.
    #[inline]
    pub(super) fn total(&self) -> u32 {
        self.0.as_ref().map_or(0, |kept| kept.total)
    }

    /// The number behind the last one.
    pub(super) fn end(&self) -> Option<u32> {
        self.0.as_ref()?.ranges.last().map(|range| range.end)
    }

    /// Whether a number is in one.
    pub(super) fn has(&self, number: u32) -> bool {
        let mut ranges = self.0.iter().flat_map(|kept| &kept.ranges);
        ranges.any(|range| at_most(range.start, number) && before(number, range.end))
    }

    /// Adds a range, and makes one of those that touch it; whether any number of it is new.
    pub(super) fn add(&mut self, start: u32, end: u32, noted: Noted) -> bool {
        before(start, end) && self.0.get_or_insert_default().add(start, end, noted)
    }

    /// Takes away what is before a number; how many numbers that were.
    #[inline]
    pub(super) fn pass(&mut self, number: u32) -> u32 {
        let first = self.0.as_ref().and_then(|kept| kept.ranges.first());
        match first {
            Some(first) if before(first.start, number) => self.take(first.start, number).0,
            _ => 0,
        }
    }

    /// Takes a range away; how many numbers of it there were, and what the first of them was noted by.
    pub(super) fn take(&mut self, start: u32, end: u32) -> (u32, Option<Noted>) {
        let taken = self.0.as_mut().map(|kept| kept.take(start, end));
        if self.total() == 0 {
            self.0 = None;
        }
        taken.unwrap_or_default()
    }
}

impl Kept {
    fn add(&mut self, start: u32, end: u32, noted: Noted) -> bool {
        // As nearly every acknowledgement of a burst: the last range grows.
        let mut whole = Range { start, end, noted };
        let was = self.total;
        let apart = |range: &Range| before(range.end, start) || before(end, range.start);
        let place = self
            .ranges
            .iter()
            .position(|range| !before(range.end, start));
        let place = place.unwrap_or(self.ranges.len());
        // Ends when none touches: each turn takes one away.
        while let Some(range) = self
            .ranges
            .get(place)
            .copied()
            .filter(|range| !apart(range))
        {
            whole.start = earlier(whole.start, range.start);
            whole.end = later(whole.end, range.end);
            if range.noted.ns < whole.noted.ns {
                whole.noted = range.noted;
            }
            self.total = self.total.wrapping_sub(range.length());
            self.ranges.remove(place);
        }
        self.ranges.insert(place, whole);
        self.total = self.total.wrapping_add(whole.length());
        if self.ranges.len() > MOST_RANGES {
            let oldest = self.ranges.remove(0);
            self.total = self.total.wrapping_sub(oldest.length());
        }
        self.total != was
    }

    /// Takes a range away; how many numbers of it there were, and what the first of them was noted by.
    fn take(&mut self, start: u32, end: u32) -> (u32, Option<Noted>) {
        let (mut taken, mut since) = (0, None);
        let mut kept = Vec::new();
        self.ranges.retain_mut(|range| {
            let (from, to) = (later(range.start, start), earlier(range.end, end));
            if !before(from, to) {
                return true;
            }
            taken += to.wrapping_sub(from);
            since = since.or(Some(range.noted));
            if before(to, range.end) {
                kept.push(Range {
                    start: to,
                    ..*range
                });
            }
            range.end = from;
            before(range.start, from)
        });
        for range in kept {
            let place = self
                .ranges
                .partition_point(|other| before(other.start, range.start));
            self.ranges.insert(place, range);
        }
        self.total = self.total.wrapping_sub(taken);
        (taken, since)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_wrap() {
        assert!(before(u32::MAX, 3) && !before(3, u32::MAX));
        assert_eq!((later(u32::MAX, 3), earlier(u32::MAX, 3)), (3, u32::MAX));
        let mut ranges = Ranges::default();
        assert!(ranges.add(u32::MAX - 1, 2, Noted::default()));
        assert_eq!(ranges.total(), 4);
        assert!(ranges.has(0) && ranges.has(u32::MAX) && !ranges.has(2));
        assert_eq!(ranges.pass(1), 3);
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_numbers(
            base: u32, steps in proptest::collection::vec((any::<bool>(), 0_u32..200, 0_u32..30), 0..40),
        ) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for (add, start, length) in steps {
                let numbers = start..start + length;
                let (from, to) = (base.wrapping_add(start), base.wrapping_add(start + length));
                if add {
                    let news = numbers.clone().any(|n| !set.contains(&n));
                    prop_assert_eq!(ranges.add(from, to, Noted::default()), news);
                    set.extend(numbers);
                } else {
                    let had = numbers.filter(|n| set.remove(n)).count();
                    prop_assert_eq!(ranges.take(from, to).0, had as u32);
                }
                prop_assert_eq!(ranges.total(), set.len() as u32);
                prop_assert!((0..230).all(|n| ranges.has(base.wrapping_add(n)) == set.contains(&n)));
            }
        }
    }
}

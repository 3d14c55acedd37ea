//! Connections that have not yet said what they are, and web connections, of which many carry nothing. There is always
//! room for one more: the share with the most connections loses its oldest one.

use std::collections::{BTreeMap, HashMap};

use plumb_wire::native::spec::{MAX_GREETING, MAX_GREETING_PER_ADDRESS};
use plumb_wire::share::Share;

/// The half-open connections, by number in the order in which they came; each has a handle, by which
/// it can be ended.
#[derive(Debug)]
pub(crate) struct Greetings<H> {
    most: usize,
    most_of_one: usize,
    open: BTreeMap<u64, (Share, H)>,
    of: HashMap<Share, usize>,
    next: u64,
}

impl<H> Default for Greetings<H> {
    fn default() -> Self {
        Self::new(MAX_GREETING, MAX_GREETING_PER_ADDRESS)
    }
}

impl<H> Greetings<H> {
    /// For so many at once, and of one share.
    pub(crate) fn new(most: usize, most_of_one: usize) -> Self {
        Self {
            most,
            most_of_one,
            open: BTreeMap::new(),
            of: HashMap::new(),
            next: 0,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// A connection came: its number, and the one that has to end for it.
    pub(crate) fn come(&mut self, share: Share, handle: H) -> (u64, Option<H>) {
        let its = self.of.get(&share).copied().unwrap_or(0);
        let crowded = if its >= self.most_of_one {
            Some(share)
        } else if self.open.len() >= self.most {
            self.most()
        } else {
            None
        };
        let oldest = crowded.and_then(|crowded| {
            let mut open = self.open.iter();
            open.find(|(_, (share, _))| *share == crowded)
                .map(|(number, _)| *number)
        });
        let ended = oldest.and_then(|number| self.leave(number));
        let number = self.next;
        self.next += 1;
        self.open.insert(number, (share, handle));
        *self.of.entry(share).or_default() += 1;
        (number, ended)
    }

    /// It has said what it is, or is over.
    pub(crate) fn leave(&mut self, number: u64) -> Option<H> {
        let (share, handle) = self.open.remove(&number)?;
        if let Some(its) = self.of.get_mut(&share) {
            *its = its.saturating_sub(1);
            if *its == 0 {
                self.of.remove(&share);
            }
        }
        Some(handle)
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = &H> {
        self.open.values().map(|(_, handle)| handle)
    }

    /// The share that has most of them; of several with as many, the one that has the oldest.
    fn most(&self) -> Option<Share> {
        let most = self.of.values().max()?;
        let mut shares = self.open.values().map(|(share, _)| share);
        shares
            .find(|share| self.of.get(share) == Some(most))
            .copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn share(last: u8) -> Share {
        Share::of([192, 0, 2, last].into())
    }

    #[test]
    fn one_address_ends_its_own_oldest() {
        let mut greetings = Greetings::default();
        for number in 0..MAX_GREETING_PER_ADDRESS {
            assert_eq!(greetings.come(share(1), number).1, None);
        }
        assert_eq!(greetings.come(share(1), 1000).1, Some(0));
        assert_eq!(greetings.come(share(2), 2000).1, None);
        assert_eq!(greetings.come(share(1), 1001).1, Some(1));
    }

    #[test]
    fn half_open_ones_of_two_addresses_keep_nobody_out() {
        let mut greetings = Greetings::default();
        let mut good = BTreeSet::new();
        // They come ten times as fast as good ones, each of which says what it is after fifty more.
        for number in 0..20_000_u64 {
            let from = if number % 10 == 0 {
                share(3)
            } else {
                share(1 + (number % 2) as u8)
            };
            let (mine, ended) = greetings.come(from, number);
            assert!(ended.is_none_or(|ended| ended % 10 != 0), "a good one goes");
            if from == share(3) {
                good.insert(mine);
                if good.len() > 5 {
                    let oldest = good.pop_first().unwrap();
                    assert!(greetings.leave(oldest).is_some());
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Whatever comes and goes: the count is bounded, no connection is forgotten, and no share loses one while
        /// another has more.
        #[test]
        fn places_are_bounded_and_fair(steps in proptest::collection::vec((0..6u8, any::<bool>()), 1..1500)) {
            let mut greetings = Greetings::default();
            let mut open: BTreeMap<u64, u8> = BTreeMap::new();
            for (last, leaves) in steps {
                if leaves && last == 0 {
                    if let Some((number, _)) = open.pop_first() {
                        prop_assert!(greetings.leave(number).is_some());
                    }
                    continue;
                }
                let (number, ended) = greetings.come(share(last), (last, 0));
                if let Some((whose, _)) = ended {
                    let count = |of| open.values().filter(|other| **other == of).count();
                    prop_assert!((0..6).all(|other| whose == last || count(other) <= count(whose)));
                    let oldest = *open.iter().find(|(_, of)| **of == whose).unwrap().0;
                    open.remove(&oldest);
                }
                open.insert(number, last);
                prop_assert!(open.len() <= MAX_GREETING);
                prop_assert_eq!(greetings.handles().count(), open.len());
            }
        }
    }
}

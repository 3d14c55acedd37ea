//! A counter of a gateway that is read now and then: of 32 bits, by the standard, so that it wraps after 34 s at 1 Gbit/s.

/// Where a counter of 32 bits begins anew.
const WRAPS_AT: u64 = 1 << 32;

/// What a counter has counted since its first reading, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counter {
    last: Option<u64>,
    total: u64,
    /// How often it began anew without having wrapped.
    pub(super) restarts: u64,
}

impl Counter {
    /// Takes a reading; `most` is how much can have been counted since the one before. Returns the total since the first one;
    /// `None` where the counter began anew, so that what it counted meanwhile is not known.
    pub(super) fn take(&mut self, reading: u64, most: u64) -> Option<u64> {
        let grown = match self.last.replace(reading) {
            None => Some(0),
            Some(last) if reading >= last => Some(reading - last),
            Some(last) if last < WRAPS_AT => Some(reading + (WRAPS_AT - last)),
            Some(_) => None,
        };
        let Some(grown) = grown.filter(|grown| *grown <= most) else {
            self.restarts += 1;
            return None;
        };
        self.total = self.total.saturating_add(grown);
        Some(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: u64 = 1_000_000_000;

    #[test]
    fn a_counter_wraps_at_32_bits_and_begins_anew_after_a_restart() {
        let mut counter = Counter::default();
        assert_eq!(counter.take(WRAPS_AT - 10, MOST), Some(0));
        assert_eq!(counter.take(5, MOST), Some(15), "it wrapped");
        assert_eq!(counter.take(105, MOST), Some(115));
        assert_eq!(
            counter.take(0, MOST),
            None,
            "a wrap would be more than the line carries"
        );
        assert_eq!(counter.take(7, MOST), Some(122));
        assert_eq!(
            counter.take(8 + MOST, MOST),
            None,
            "as much as no line carries"
        );
        assert_eq!(counter.restarts, 2);
        let mut wide = Counter::default();
        assert_eq!(wide.take(WRAPS_AT + 5, MOST), Some(0));
        assert_eq!(wide.take(3, MOST), None, "one of 64 bits does not wrap");
    }

    proptest! {
        #[test]
        fn what_a_counter_of_32_bits_counts_is_never_lost(
            first in any::<u32>(),
            grown in prop::collection::vec(0..MOST, 0..40),
        ) {
            let mut counter = Counter::default();
            counter.take(first.into(), MOST);
            let mut truth = u64::from(first);
            for step in grown {
                truth += step;
                let total = counter.take(truth % WRAPS_AT, MOST);
                prop_assert_eq!(total, Some(truth - u64::from(first)));
            }
        }

        #[test]
        fn no_reading_is_a_panic(readings in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut counter = Counter::default();
            for reading in readings {
                counter.take(reading, u64::MAX);
            }
        }
    }
}

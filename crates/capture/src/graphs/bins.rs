//! Bins of equal length over time, as many as are kept at most: when the time exceeds the last, two become one.

/// Bins of a graph, each a pixel or two of a page.
pub(super) const MOST: u64 = 400;
/// Length of a bin at first, in nanoseconds: a microsecond, about.
const FIRST_NS: u64 = 1 << 10;

/// What is summed up in a bin.
pub(super) trait Bin: Default {
    /// Takes in the next bin.
    fn join(&mut self, next: Self);
}

/// Bins in which something was, in the order of time.
#[derive(Debug)]
pub(super) struct Bins<B> {
    from_ns: u64,
    bin_ns: u64,
    /// When the last bin begins and ends.
    last_ns: [u64; 2],
    bins: Vec<(u64, B)>,
}

impl<B: Bin> Bins<B> {
    pub(super) fn new(from_ns: u64) -> Self {
        Self {
            from_ns,
            bin_ns: FIRST_NS,
            last_ns: [0, 0],
            bins: Vec::new(),
        }
    }

    pub(super) fn begin_ns(&self) -> u64 {
        self.from_ns
    }

    pub(super) fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    /// The bin of a time; the first one where the time is before that.
    #[inline]
    pub(super) fn at(&mut self, ns: u64) -> Option<&mut B> {
        let [begin, end] = self.last_ns;
        let place = match begin <= ns && ns < end {
            true => self.bins.len().saturating_sub(1),
            false => self.place(ns),
        };
        self.bins.get_mut(place).map(|(_, bin)| bin)
    }

    /// The place of a time's bin, which is made where there is none.
    fn place(&mut self, ns: u64) -> usize {
        let since = ns.saturating_sub(self.from_ns);
        let mut factor = 1;
        // Ends after some fifty turns: 64 bits of nanoseconds are no more.
        while since / self.bin_ns >= MOST {
            self.bin_ns = self.bin_ns.saturating_mul(2);
            factor *= 2;
        }
        if factor > 1 {
            self.widen(factor);
        }
        let index = since / self.bin_ns;
        let place = self.bins.partition_point(|(bin, _)| *bin < index);
        if self.bins.get(place).is_none_or(|(bin, _)| *bin != index) {
            self.bins.insert(place, (index, B::default()));
        }
        if let Some((last, _)) = self.bins.last() {
            let begin = self.from_ns.saturating_add(last * self.bin_ns);
            self.last_ns = [begin, begin.saturating_add(self.bin_ns)];
        }
        place
    }

    fn widen(&mut self, factor: u64) {
        let mut wide: Vec<(u64, B)> = Vec::new();
        for (index, bin) in std::mem::take(&mut self.bins) {
            let index = index / factor;
            match wide.last_mut() {
                Some((last, whole)) if *last == index => whole.join(bin),
                _ => wide.push((index, bin)),
            }
        }
        self.bins = wide;
    }

    /// Every bin up to the last, None where nothing was.
    pub(super) fn dense(&self) -> Vec<Option<&B>> {
        let mut all = Vec::new();
        for (index, bin) in &self.bins {
            all.resize_with(
                usize::try_from(*index)
                    .unwrap_or(usize::MAX)
                    .min(MOST as usize),
                || None,
            );
            all.push(Some(bin));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Default, PartialEq)]
    struct Sum(u64);

    impl Bin for Sum {
        fn join(&mut self, next: Self) {
            self.0 += next.0;
        }
    }

    proptest! {
        #[test]
        fn bins_are_few_and_nothing_is_lost(from: u64, steps in proptest::collection::vec(0_u64..1 << 40, 1..600)) {
            let mut bins: Bins<Sum> = Bins::new(from);
            let mut now = from;
            for step in &steps {
                now = now.saturating_add(*step);
                if let Some(bin) = bins.at(now) {
                    bin.0 += 1;
                }
            }
            let dense = bins.dense();
            prop_assert!(dense.len() as u64 <= MOST);
            let sum: u64 = dense.iter().flatten().map(|bin| bin.0).sum();
            prop_assert_eq!(sum, steps.len() as u64);
            let bin = (now - from) / bins.bin_ns();
            prop_assert!(dense.len() as u64 == bin + 1);
        }
    }

    #[test]
    fn a_time_before_the_last_has_its_own_bin() {
        let mut bins: Bins<Sum> = Bins::new(1_000_000);
        for ns in [1_000_000, 1_002_048, 5] {
            if let Some(bin) = bins.at(ns) {
                bin.0 += 1;
            }
        }
        let counts: Vec<Option<u64>> = bins.dense().iter().map(|b| b.map(|b| b.0)).collect();
        assert_eq!(counts, [Some(2), None, Some(1)]);
    }
}

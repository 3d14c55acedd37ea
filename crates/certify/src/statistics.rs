//! How sure a share is that was counted.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The standard normal quantile of 97.5 %, for intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// How often a share is drawn anew for its interval: the ends are then known to about a percent of its width.
const RESAMPLED: usize = 4000;

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) hits: usize,
    pub(crate) of: usize,
}

impl Count {
    pub(crate) fn of(all: impl IntoIterator<Item = bool>) -> Self {
        let mut count = Self::default();
        for hit in all {
            count.of += 1;
            count.hits += usize::from(hit);
        }
        count
    }

    /// The share; none of nothing.
    pub(crate) fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    /// Wilson's interval of 95 % for the share behind the count.
    pub(crate) fn interval(self) -> (f64, f64) {
        let Some(share) = self.share() else {
            return (0.0, 1.0);
        };
        let n = self.of as f64;
        let scale = 1.0 + Z * Z / n;
        let middle = (share + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        ((middle - half).max(0.0), (middle + half).min(1.0))
    }
}

/// The interval of 95 % for the share over all groups, as if other groups had been drawn: trials of one cause are
/// right or wrong together. The same counts always give the same.
pub(crate) fn over_groups(groups: &[Count]) -> (f64, f64) {
    let mut random = Pcg64Mcg::seed_from_u64(groups.len() as u64);
    let mut shares: Vec<f64> = (0..RESAMPLED)
        .filter_map(|_| {
            let mut sum = Count::default();
            for _ in groups {
                let at = random.random_range(0..groups.len());
                let drawn = groups.get(at).copied().unwrap_or_default();
                sum.hits += drawn.hits;
                sum.of += drawn.of;
            }
            sum.share()
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |quantile: f64| shares.get((quantile * (shares.len() as f64 - 1.0)) as usize);
    let ends = (at(0.025).copied(), at(0.975).copied());
    (ends.0.unwrap_or(0.0), ends.1.unwrap_or(1.0))
}

/// The mean square of what a verdict's confidence was off (Brier 1950): 0 is right and sure, 0.25 is a coin's.
pub(crate) fn brier(verdicts: &[(f64, bool)]) -> Option<f64> {
    let off = verdicts
        .iter()
        .map(|(confidence, right)| (confidence - f64::from(u8::from(*right))).powi(2));
    (!verdicts.is_empty()).then(|| off.sum::<f64>() / verdicts.len() as f64)
}

/// The mean of values that are worth so much each, the weight first; none of nothing.
pub(crate) fn weighted_mean(values: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let sums = values
        .into_iter()
        .fold((0.0, 0.0), |sums, (weight, value)| {
            (sums.0 + weight, sums.1 + weight * value)
        });
    (sums.0 > 0.0).then(|| sums.1 / sums.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    #[test]
    fn intervals_are_those_of_the_literature() {
        for (hits, of, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = Count { hits, of }.interval();
            assert!((interval.0 - low).abs() < 1e-4, "{interval:?}");
            assert!((interval.1 - high).abs() < 1e-4, "{interval:?}");
        }
    }

    #[test]
    fn groups_that_differ_widen_the_interval() {
        let alike = [Count { hits: 9, of: 10 }; 10];
        assert_eq!(over_groups(&alike), (0.9, 0.9));
        let mut one_fails = [Count { hits: 10, of: 10 }; 10];
        if let Some(first) = one_fails.first_mut() {
            first.hits = 0;
        }
        let (low, high) = over_groups(&one_fails);
        assert!(low <= 0.8 && high >= 0.99, "{low} {high}");
        assert_eq!(over_groups(&[]), (0.0, 1.0));
    }

    #[test]
    fn a_sure_and_right_verdict_scores_nothing() {
        assert_eq!(brier(&[]), None);
        assert_eq!(brier(&[(1.0, true)]), Some(0.0));
        let mixed = brier(&[(0.9, true), (0.9, false)]).unwrap();
        assert!((mixed - 0.41).abs() < 1e-12);
        assert_eq!(weighted_mean([(1.0, 0.1), (3.0, 0.5)]), Some(0.4));
        assert_eq!(weighted_mean([]), None);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_share(hits in 0usize..500, misses in 0usize..500) {
            let count = Count { hits, of: hits + misses };
            let (low, high) = count.interval();
            prop_assert!(low >= 0.0 && high <= 1.0 && low <= high);
            if let Some(share) = count.share() {
                prop_assert!(low <= share + 1e-12 && share <= high + 1e-12);
            }
        }
    }
}

//! The spread of any number of times, in bounded memory.

use hdrhistogram::Histogram;

use crate::distribution::Distribution;

/// Significant decimal digits of the quantiles: 0.1 % is finer than any difference that a lab can show.
const DIGITS: u8 = 3;
/// The longest time that is resolved, in nanoseconds: an hour. It bounds the memory to 270 kB.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds; count, smallest, largest, mean and deviation are exact.
#[derive(Debug, Clone)]
pub struct Summary {
    histogram: Option<Histogram<u64>>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    /// Sum of the squares, in ns²: whole numbers, so that nothing is rounded on the way.
    squares: u128,
}

impl Default for Summary {
    fn default() -> Self {
        Self::new()
    }
}

impl Summary {
    /// A summary with nothing recorded yet.
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok(),
            count: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
            squares: 0,
        }
    }

    /// Adds a time that occurred `times` times.
    pub fn record(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record_n(ns, times);
        }
        self.count += times;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let (ns, times) = (u128::from(ns.min(LONGEST_NS)), u128::from(times));
        self.sum_ns += ns * times;
        self.squares += ns * ns * times;
    }

    /// Adds what another one recorded.
    pub fn merge(&mut self, other: &Self) {
        if let (Some(all), Some(more)) = (&mut self.histogram, &other.histogram) {
            // Fails where the bounds differ, which are the same for all.
            let _ = all.add(more);
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.squares += other.squares;
    }

    /// What was recorded since `earlier`, a copy of this very summary. Smallest and largest come from the histogram, so
    /// they have its precision.
    pub fn since(&self, earlier: &Self) -> Self {
        let Some(count) = self.count.checked_sub(earlier.count).filter(|n| *n > 0) else {
            return Self::new();
        };
        let mut histogram = self.histogram.clone();
        if let (Some(all), Some(before)) = (&mut histogram, &earlier.histogram) {
            // Fails where there is more to take away than there is, which a copy never has.
            let _ = all.subtract(before);
        }
        Self {
            min_ns: histogram
                .as_ref()
                .map_or(0, Histogram::min)
                .max(self.min_ns),
            max_ns: histogram
                .as_ref()
                .map_or(0, Histogram::max)
                .min(self.max_ns),
            histogram,
            count,
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            squares: self.squares.saturating_sub(earlier.squares),
        }
    }

    /// The spread in seconds; `None` when nothing was recorded.
    pub fn distribution(&self) -> Option<Distribution> {
        distribution(self.steps(), &self.moments(), 1e9)
    }

    /// The spread of what was recorded as plain numbers.
    pub fn plain_distribution(&self) -> Option<Distribution> {
        distribution(self.steps(), &self.moments(), 1.0)
    }

    fn moments(&self) -> Moments {
        Moments {
            count: self.count,
            min: self.min_ns as f64,
            max: self.max_ns as f64,
            sum: self.sum_ns as f64,
            squares: self.squares as f64,
        }
    }

    /// How often each value was recorded, to the histogram's precision, ascending.
    fn steps(&self) -> impl Iterator<Item = (u64, f64)> {
        self.histogram.iter().flat_map(|h| {
            h.iter_recorded().map(|step| {
                let value = h
                    .median_equivalent(step.value_iterated_to())
                    .clamp(self.min_ns, self.max_ns);
                (step.count_since_last_iteration(), value as f64)
            })
        })
    }
}

/// The same for times that may be negative. Its precision is relative to zero.
#[derive(Debug, Clone, Default)]
pub struct SignedSummary {
    above: Summary,
    below: Summary,
}

impl SignedSummary {
    /// Adds a time in nanoseconds.
    pub fn record(&mut self, ns: i64) {
        if ns < 0 {
            self.below.record(ns.unsigned_abs(), 1);
        } else {
            self.above.record(ns.unsigned_abs(), 1);
        }
    }

    /// The spread in seconds; `None` when nothing was recorded.
    pub fn distribution(&self) -> Option<Distribution> {
        let (above, below) = (self.above.moments(), self.below.moments());
        if below.count == 0 {
            return self.above.distribution();
        }
        let moments = Moments {
            count: above.count + below.count,
            min: -below.max,
            max: if above.count > 0 {
                above.max
            } else {
                -below.min
            },
            sum: above.sum - below.sum,
            squares: above.squares + below.squares,
        };
        let mut steps: Vec<_> = self.below.steps().map(|(n, value)| (n, -value)).collect();
        steps.reverse();
        distribution(steps.into_iter().chain(self.above.steps()), &moments, 1e9)
    }
}

/// What is kept exactly.
struct Moments {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    squares: f64,
}

/// The spread of values that ascend in `steps`, each so often, divided by `unit`.
fn distribution(
    steps: impl Iterator<Item = (u64, f64)>,
    moments: &Moments,
    unit: f64,
) -> Option<Distribution> {
    if moments.count == 0 {
        return None;
    }
    let count = moments.count as f64;
    let mean = moments.sum / count;
    // Rounding is off by 10⁻⁸ of the mean at most: 10 ns of a second.
    let variance = (moments.squares / count - mean * mean).max(0.0);
    let [p5, p25, p50, p75, p95, p99] =
        quantiles(steps, moments, [0.05, 0.25, 0.50, 0.75, 0.95, 0.99]).map(|v| v / unit);
    Some(Distribution {
        count: moments.count,
        min: moments.min / unit,
        p5,
        p25,
        p50,
        mean: mean / unit,
        p75,
        p95,
        p99,
        max: moments.max / unit,
        stddev: variance.sqrt() / unit,
    })
}

/// Quantiles that interpolate between order statistics, like [`Distribution::of`], where
/// `wanted` ascends. One pass: asking the histogram for each walks all of it.
fn quantiles<const N: usize>(
    mut steps: impl Iterator<Item = (u64, f64)>,
    moments: &Moments,
    wanted: [f64; N],
) -> [f64; N] {
    // Order statistics `before` up to, without, `seen` are `value`; the one before is `below`.
    let (mut before, mut seen) = (0, 0u64);
    let (mut below, mut value) = (moments.min, moments.min);
    let mut order_statistic = |number: u64| {
        while seen <= number {
            let Some((count, at)) = steps.next() else {
                break;
            };
            (before, seen) = (seen, seen + count);
            (below, value) = (value, at);
        }
        // Two neighbours are asked for at a time, so it is never further back.
        if number < before { below } else { value }
    };
    wanted.map(|p| {
        let position = p * (moments.count - 1) as f64;
        let below = order_statistic(position.floor() as u64);
        let fraction = position.fract();
        if fraction == 0.0 {
            return below;
        }
        let above = order_statistic(position.ceil() as u64);
        below + (above - below) * fraction
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn seconds(ns: u64) -> f64 {
        ns as f64 / 1e9
    }

    proptest! {
        #[test]
        fn signs_are_kept(samples in proptest::collection::vec(-2_000_000_000i64..2_000_000_000, 1..80)) {
            let mut summary = SignedSummary::default();
            samples.iter().for_each(|ns| summary.record(*ns));
            let exact = Distribution::of(samples.iter().map(|ns| *ns as f64 / 1e9)).unwrap();
            let got = summary.distribution().unwrap();
            prop_assert_eq!((got.count, got.min, got.max), (exact.count, exact.min, exact.max));
            let largest = exact.max.abs().max(exact.min.abs());
            for (a, b) in [(got.p5, exact.p5), (got.p50, exact.p50), (got.p95, exact.p95), (got.p99, exact.p99)] {
                prop_assert!((a - b).abs() <= largest * 1e-3, "{a} {b}");
            }
            prop_assert!((got.mean - exact.mean).abs() < 1e-9);
            prop_assert!((got.stddev - exact.stddev).abs() < 1e-6);
        }

        #[test]
        fn agrees_with_all_samples(samples in proptest::collection::vec((0u64..2_000_000_000, 1u64..4), 1..80)) {
            let mut summary = Summary::new();
            let mut all = Vec::new();
            for (ns, times) in samples {
                summary.record(ns, times);
                all.extend((0..times).map(|_| seconds(ns)));
            }
            let exact = Distribution::of(all).unwrap();
            let got = summary.distribution().unwrap();
            prop_assert_eq!((got.count, got.min, got.max), (exact.count, exact.min, exact.max));
            for (a, b) in [(got.p5, exact.p5), (got.p50, exact.p50), (got.p95, exact.p95), (got.p99, exact.p99)] {
                prop_assert!((a - b).abs() <= exact.max * 1e-3, "{a} {b}");
            }
            prop_assert!((got.mean - exact.mean).abs() < 1e-9);
            prop_assert!((got.stddev - exact.stddev).abs() < 1e-6);
        }

        #[test]
        fn two_merged_are_as_one(
            first in proptest::collection::vec(0u64..2_000_000_000, 0..40),
            second in proptest::collection::vec(0u64..2_000_000_000, 0..40),
        ) {
            let of = |samples: &[u64]| {
                let mut summary = Summary::new();
                samples.iter().for_each(|ns| summary.record(*ns, 1));
                summary
            };
            let mut merged = of(&first);
            merged.merge(&of(&second));
            prop_assert_eq!(merged.distribution(), of(&[first, second].concat()).distribution());
        }

        #[test]
        fn a_stretch_is_what_came_after_its_beginning(
            before in proptest::collection::vec(0u64..2_000_000_000, 0..40),
            after in proptest::collection::vec(0u64..2_000_000_000, 0..40),
        ) {
            let mut summary = Summary::new();
            before.iter().for_each(|ns| summary.record(*ns, 1));
            let begun = summary.clone();
            let mut alone = Summary::new();
            for ns in after {
                summary.record(ns, 1);
                alone.record(ns, 1);
            }
            let (got, exact) = (summary.since(&begun).distribution(), alone.distribution());
            prop_assert_eq!(got.map(|d| d.count), exact.map(|d| d.count));
            if let (Some(got), Some(exact)) = (got, exact) {
                for (a, b) in [
                    (got.min, exact.min), (got.p50, exact.p50), (got.p99, exact.p99), (got.max, exact.max),
                ] {
                    prop_assert!((a - b).abs() <= exact.max * 1e-3, "{a} {b}");
                }
                prop_assert!((got.mean - exact.mean).abs() < 1e-9);
                prop_assert!((got.stddev - exact.stddev).abs() < 1e-6, "{} {}", got.stddev, exact.stddev);
            }
        }
    }
}

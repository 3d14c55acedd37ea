//! Summaries of samples.
//!
//! Quantiles interpolate linearly between order statistics (Hyndman & Fan 1996, type 7, the
//! default of NumPy and R), so that figures compare with what other tools print.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a set of samples is spread. The unit is the unit of the samples; the field that holds a distribution carries it
/// in its name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Number of samples that the figures are of.
    pub count: u64,
    /// Smallest of the samples, in their unit.
    pub min: f64,
    /// 5th percentile of the samples, in their unit.
    pub p5: f64,
    /// 25th percentile of the samples, in their unit.
    pub p25: f64,
    /// Median of the samples, in their unit.
    pub p50: f64,
    /// Arithmetic mean of the samples, in their unit.
    pub mean: f64,
    /// 75th percentile of the samples, in their unit.
    pub p75: f64,
    /// 95th percentile of the samples, in their unit.
    pub p95: f64,
    /// 99th percentile of the samples, in their unit.
    pub p99: f64,
    /// Largest of the samples, in their unit.
    pub max: f64,
    /// Standard deviation of the samples as a whole population, in their unit.
    pub stddev: f64,
}

impl Distribution {
    /// Summarises the finite samples; `None` when there are none.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let variance = sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let q = |p| quantile_of_sorted(&sorted, p).unwrap_or(max);
        Some(Self {
            count: sorted.len() as u64,
            min,
            p5: q(0.05),
            p25: q(0.25),
            p50: q(0.50),
            mean,
            p75: q(0.75),
            p95: q(0.95),
            p99: q(0.99),
            max,
            stddev: variance.sqrt(),
        })
    }

    /// The same spread with `by` added to every value.
    pub fn shifted(&self, by: f64) -> Self {
        Self {
            count: self.count,
            min: self.min + by,
            p5: self.p5 + by,
            p25: self.p25 + by,
            p50: self.p50 + by,
            mean: self.mean + by,
            p75: self.p75 + by,
            p95: self.p95 + by,
            p99: self.p99 + by,
            max: self.max + by,
            stddev: self.stddev,
        }
    }

    /// The same spread seen from `origin`: every value less `origin`, and none below zero.
    ///
    /// Used for the increase of a round trip over its idle median.
    pub fn above(&self, origin: f64) -> Self {
        let less = |v: f64| (v - origin).max(0.0);
        Self {
            count: self.count,
            min: less(self.min),
            p5: less(self.p5),
            p25: less(self.p25),
            p50: less(self.p50),
            mean: less(self.mean),
            p75: less(self.p75),
            p95: less(self.p95),
            p99: less(self.p99),
            max: less(self.max),
            stddev: self.stddev,
        }
    }
}

/// The `p`-quantile (0…1) of samples already sorted; `None` when there are none.
pub fn quantile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    let below = *sorted.get(position.floor() as usize)?;
    let above = *sorted.get(position.ceil() as usize)?;
    Some(below + (above - below) * position.fract())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_numpy() {
        // numpy.percentile([1, 2, 3, 4], [5, 25, 50, 75, 95])
        let d = Distribution::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((d.p25, d.p50, d.p75), (1.75, 2.5, 3.25));
        assert!((d.p5 - 1.15).abs() < 1e-12 && (d.p95 - 3.85).abs() < 1e-12);
        assert!((d.stddev - 1.118_033_988_749_895).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_distribution() {
        assert_eq!(Distribution::of([]), None);
        assert_eq!(Distribution::of([f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn is_ordered(samples in proptest::collection::vec(-1e9..1e9f64, 1..200)) {
            let d = Distribution::of(samples).unwrap();
            let steps = [d.min, d.p5, d.p25, d.p50, d.p75, d.p95, d.p99, d.max];
            prop_assert!(steps.windows(2).all(|w| w[0] <= w[1]));
            prop_assert!(d.min <= d.mean + 1e-6 && d.mean <= d.max + 1e-6);
        }
    }
}

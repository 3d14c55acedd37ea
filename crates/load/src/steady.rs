//! Whether a rate has become steady. Pure.

use std::collections::VecDeque;

/// Intervals of 100 ms whose mean is compared with the mean of as many before them: a second each, several round trips
/// of most paths.
const INTERVALS: usize = 10;

/// How far the two means may be apart, as a share of the earlier one.
const LARGEST_CHANGE_RATIO: f64 = 0.02;

/// How wide the 95 % confidence interval of the mean of all these intervals may be to each side,
/// as a share of the mean.
const LARGEST_UNCERTAINTY_RATIO: f64 = 0.05;

/// Student's t for 95 % and 2 × [`INTERVALS`] − 1 = 19 degrees of freedom.
const STUDENT_T: f64 = 2.093;

#[derive(Debug, Clone, Default)]
pub(crate) struct Steadiness {
    rates: VecDeque<f64>,
}

impl Steadiness {
    /// Takes the rate of one more interval.
    pub(crate) fn push(&mut self, rate: f64) {
        self.rates.push_back(rate);
        if self.rates.len() > 2 * INTERVALS {
            self.rates.pop_front();
        }
    }

    /// Whether it has become steady.
    pub(crate) fn is_steady(&self) -> bool {
        if self.rates.len() < 2 * INTERVALS {
            return false;
        }
        let count = INTERVALS as f64;
        let before = self.rates.iter().take(INTERVALS).sum::<f64>() / count;
        let now = self.rates.iter().skip(INTERVALS).sum::<f64>() / count;
        let mean = (before + now) / 2.0;
        let squares: f64 = self.rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / (2.0 * count - 1.0)).sqrt();
        let uncertainty = STUDENT_T * deviation / (2.0 * count).sqrt();
        mean > 0.0
            && (now - before).abs() <= LARGEST_CHANGE_RATIO * before
            && uncertainty <= LARGEST_UNCERTAINTY_RATIO * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many intervals a rate is steady.
    fn steady_after(rate: impl Fn(usize) -> f64) -> Option<usize> {
        let mut watched = Steadiness::default();
        (0..200).find(|k| {
            watched.push(rate(*k));
            watched.is_steady()
        })
    }

    #[test]
    fn steady_is_two_equal_seconds_with_little_scatter() {
        assert_eq!(steady_after(|_| 1e9), Some(19));
        // Slow start for a second.
        assert_eq!(steady_after(|k| (k as f64).min(10.0)), Some(28));
        // Grows by 3 % a second.
        assert_eq!(steady_after(|k| 1.003_f64.powi(k as i32)), None);
        // Everything every other interval.
        assert_eq!(steady_after(|k| (k % 2) as f64), None);
        assert_eq!(steady_after(|_| 0.0), None);
    }
}

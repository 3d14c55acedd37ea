//! The arithmetic of draft-ietf-ippm-responsiveness. Pure.

use plumb_model::results::responsiveness::RpmTimes;

/// Share of the samples, the smallest ones, that a trimmed mean keeps (TMP).
const TRIMMED_MEAN_KEEPS: f64 = 0.95;

/// Standard deviation, as a share of the latest value, below which values are stable (SDT).
const TOLERANCE: f64 = 0.05;

/// Intervals that a moving average spans, and values that are looked at for stability (MAD).
pub const DISTANCE: usize = 4;

/// The mean of the smallest 95 % of the samples; nothing of none.
pub fn trimmed_mean(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.into_iter().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    // At least one: of few samples none is an outlier.
    let keep = (sorted.len() as f64 * TRIMMED_MEAN_KEEPS).ceil() as usize;
    let kept = sorted.get(..keep).filter(|kept| !kept.is_empty())?;
    Some(kept.iter().sum::<f64>() / kept.len() as f64)
}

/// Population standard deviation of the last [`DISTANCE`] values as a share of the latest; nothing of
/// fewer, or where the latest is zero.
pub fn spread(values: &[f64]) -> Option<f64> {
    let last = values.get(values.len().checked_sub(DISTANCE)?..)?;
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    let variance = last.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / last.len() as f64;
    let latest = *last.last()?;
    (latest > 0.0).then(|| variance.sqrt() / latest)
}

/// Whether the last [`DISTANCE`] values differ by less than `TOLERANCE` of the latest.
pub fn is_stable(values: &[f64]) -> bool {
    spread(values).is_some_and(|spread| spread < TOLERANCE)
}

/// Round trips a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rpm {
    /// Of new connections: the three parts of one weigh a third each.
    pub foreign: Option<f64>,
    pub in_band: Option<f64>,
}

impl Rpm {
    /// From the trimmed means, in seconds. Without TLS its part is left out.
    pub fn of(times: &RpmTimes<Option<f64>>) -> Self {
        let per_minute = |seconds: f64| (seconds > 0.0).then(|| 60.0 / seconds);
        let foreign = times.connect.zip(times.first_answer);
        let round_trip = foreign.map(|(connect, answer)| match times.tls_handshake {
            Some(handshake) => (connect + handshake + answer) / 3.0,
            None => (connect + answer) / 2.0,
        });
        Self {
            foreign: round_trip.and_then(per_minute),
            in_band: times.in_band.and_then(per_minute),
        }
    }

    /// The mean of the two; nothing without both.
    pub fn both(self) -> Option<f64> {
        let (foreign, in_band) = self.foreign.zip(self.in_band)?;
        Some((foreign + in_band) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_twentieth_is_left_out() {
        // 1 … 20: the mean of 1 … 19.
        assert_eq!(trimmed_mean((1..=20).map(f64::from)), Some(10.0));
        assert_eq!(trimmed_mean([3.0]), Some(3.0));
        assert_eq!(trimmed_mean([]), None);
    }

    #[test]
    fn stable_is_a_standard_deviation_below_a_twentieth_of_the_latest() {
        // Deviations of 5 and of 4.9 around 100.
        let around = |by: f64| [100.0 - by, 100.0 + by, 100.0 - by, 100.0 + by];
        // The latest is above the mean.
        assert!(is_stable(&around(5.2)) && !is_stable(&around(5.3)));
        assert!(!is_stable(&[100.0; 3]));
        assert!(is_stable(&[1.0, 100.0, 100.0, 100.0, 100.0]));
        assert!(!is_stable(&[0.0; 4]));
        assert_eq!((spread(&[0.0; 4]), spread(&[7.0; 3])), (None, None));
        assert_eq!(spread(&[90.0, 110.0, 90.0, 110.0]), Some(10.0 / 110.0));
    }

    #[test]
    fn the_parts_weigh_as_the_draft_has_it() {
        let times = RpmTimes {
            connect: Some(0.1),
            tls_handshake: Some(0.2),
            first_answer: Some(0.3),
            in_band: Some(0.6),
        };
        let rpm = Rpm::of(&times);
        assert_eq!(rpm.foreign.map(f64::round), Some(300.0));
        assert_eq!(rpm.in_band.map(f64::round), Some(100.0));
        assert_eq!(rpm.both().map(f64::round), Some(200.0));
        let plain = RpmTimes {
            tls_handshake: None,
            ..times
        };
        assert_eq!(Rpm::of(&plain).foreign.map(f64::round), Some(300.0));
        let silent = RpmTimes {
            in_band: None,
            ..times
        };
        assert_eq!(Rpm::of(&silent).both(), None);
    }
}

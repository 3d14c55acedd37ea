//! What a window of samples keeps when they are gone: a distribution, never an average alone.

use crate::sample::Sample;

/// Of the probes of one target in one window. Values are in its unit, seconds where they are times, and absent where nothing
/// was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// Probes that were sent.
    pub count: u64,
    /// Probes without an answer.
    pub lost: u64,
    pub times: Option<Times>,
}

/// Values in the unit of the target: of times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    pub min_s: f64,
    pub p5_s: f64,
    pub p25_s: f64,
    pub p50_s: f64,
    pub p75_s: f64,
    pub p95_s: f64,
    pub max_s: f64,
}

impl Distribution {
    /// Of these samples; quantiles are the nearest ranks, which are round trips that were seen.
    pub fn of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let mut count = 0;
        let mut times: Vec<f64> = Vec::new();
        for sample in samples {
            count += 1;
            times.extend(sample.value);
        }
        times.sort_by(f64::total_cmp);
        let answered = times.len();
        let at = |quantile: f64| {
            let rank = (quantile * answered as f64).ceil().max(1.0) as usize;
            times.get(rank - 1).copied()
        };
        let read = || {
            Some(Times {
                min_s: at(0.0)?,
                p5_s: at(0.05)?,
                p25_s: at(0.25)?,
                p50_s: at(0.5)?,
                p75_s: at(0.75)?,
                p95_s: at(0.95)?,
                max_s: at(1.0)?,
            })
        };
        Self {
            count,
            lost: count - answered as u64,
            times: read(),
        }
    }

    /// The share of probes without an answer; `None` where none was sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        (self.count > 0).then(|| self.lost as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn keeps_what_was_seen() {
        let mut samples: Vec<Sample> = (1..=100)
            .map(|ms| Sample::timed(ms, Some(Duration::from_millis(ms.unsigned_abs()))))
            .collect();
        samples.push(Sample {
            sent_us: 101,
            value: None,
        });
        let found = Distribution::of(&samples);
        assert_eq!((found.count, found.lost), (101, 1));
        let times = found.times.unwrap();
        let seen = [
            times.min_s,
            times.p5_s,
            times.p25_s,
            times.p50_s,
            times.p75_s,
            times.p95_s,
            times.max_s,
        ];
        assert_eq!(seen, [0.001, 0.005, 0.025, 0.05, 0.075, 0.095, 0.1]);
    }

    #[test]
    fn nothing_answered_has_no_times() {
        let lost = [Sample {
            sent_us: 1,
            value: None,
        }];
        let found = Distribution::of(&lost);
        assert_eq!((found.loss_ratio(), found.times), (Some(1.0), None));
        assert_eq!(Distribution::of(&[]).loss_ratio(), None);
    }
}

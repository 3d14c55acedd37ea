//! What a rule is: it judges what it is shown of one target at one time. Pure; that it has to last, and for how long, is the
//! engine's affair.

use std::fmt::Debug;
use std::time::Duration;

use plumb_model::units::parse_duration;

use crate::distribution::{Distribution, Times};
use crate::sample::Sample;
use crate::unit::Unit;

/// The longest time that a rule may look back: samples are kept for a day and an hour.
pub const MOST_BACK_S: i64 = 86_400;

/// A window with fewer probes than this says nothing.
pub const LEAST_PROBES: i64 = 3;

/// What a rule is shown of a target.
#[derive(Debug)]
pub struct Shown<'a> {
    /// The time of judgement, the end of a minute, s since 1970.
    pub now_s: i64,
    /// How often the target is probed.
    pub every: Duration,
    /// What its values are measured in.
    pub unit: Unit,
    /// The samples until `now_s`, as far back as the rule looks or further, in the order of time.
    pub samples: &'a [Sample],
    /// Quarter-hours around this time of day of earlier days, with when each begins, as many days as the rule looks at or
    /// more.
    pub same_hour: &'a [(i64, Distribution)],
}

impl<'a> Shown<'a> {
    /// The samples of the seconds `from_s` until before `to_s` before now.
    pub fn between(&self, from_s: i64, to_s: i64) -> &'a [Sample] {
        let at = |before_s: i64| {
            let us = (self.now_s - before_s).saturating_mul(1_000_000);
            self.samples.partition_point(|sample| sample.sent_us < us)
        };
        self.samples.get(at(from_s)..at(to_s)).unwrap_or_default()
    }

    /// The samples of the last seconds; `None` where half of them is missing, because the target was not watched.
    pub fn last(&self, over_s: i64) -> Option<&'a [Sample]> {
        let samples = self.between(over_s, 0);
        let expected = over_s as f64 / self.every.as_secs_f64();
        (samples.len() as f64 * 2.0 >= expected).then_some(samples)
    }
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Too little is known.
    Unknown,
    Quiet,
    Seen {
        /// What is seen, such as "loss of 4.0 %".
        words: String,
        /// Since when, s since 1970, where that is before this judgement.
        since_s: Option<i64>,
    },
}

/// A rule of one kind, with its settings.
pub trait Rule: Debug + Send + Sync {
    /// How far back it looks in samples, in seconds.
    fn back_s(&self) -> i64;

    /// At how many earlier days it looks; zero for none.
    fn days(&self) -> i64 {
        0
    }

    /// The shortest time that it needs probes of, in seconds: a target that is probed more seldom cannot be judged.
    fn window_s(&self) -> i64 {
        self.back_s()
    }

    /// Whether it judges targets whose values are measured in that.
    fn is_of(&self, unit: Unit) -> bool;

    fn judge(&self, shown: &Shown) -> Verdict;
}

/// What is asked of round trips or losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Loss,
    Median,
    P95,
    /// The median of values that are no times.
    Value,
}

impl Quantity {
    pub(super) fn read(word: &str) -> Result<Self, String> {
        match word {
            "loss" => Ok(Self::Loss),
            "median" => Ok(Self::Median),
            "p95" => Ok(Self::P95),
            "value" => Ok(Self::Value),
            other => Err(format!(
                "no quantity is called '{other}'; there are loss, median, p95 and value"
            )),
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Median => "median",
            Self::Value => "value",
            Self::P95 => "95th percentile",
        }
    }

    /// The quantity of round trips; `None` for loss.
    pub(super) fn of_times(self, times: &Times) -> Option<f64> {
        match self {
            Self::Loss => None,
            Self::Median | Self::Value => Some(times.p50_s),
            Self::P95 => Some(times.p95_s),
        }
    }

    /// Whether a target has it whose values are measured in that.
    pub(super) fn is_of(self, unit: Unit) -> bool {
        match self {
            Self::Loss => true,
            Self::Median | Self::P95 => unit == Unit::Seconds,
            Self::Value => unit != Unit::Seconds,
        }
    }

    /// The quantity of samples: a share, seconds or a value; `None` where there are none.
    pub(super) fn of(self, samples: &[Sample]) -> Option<f64> {
        let quantile = match self {
            Self::Loss => {
                let lost = samples
                    .iter()
                    .filter(|sample| sample.value.is_none())
                    .count();
                return (!samples.is_empty()).then(|| lost as f64 / samples.len() as f64);
            }
            Self::Median | Self::Value => 0.5,
            Self::P95 => 0.95,
        };
        // The nearest rank, as distributions have it, without sorting all.
        let mut values: Vec<_> = samples.iter().filter_map(|sample| sample.value).collect();
        let rank = (quantile * values.len() as f64).ceil().max(1.0) as usize;
        if values.is_empty() {
            return None;
        }
        let (_, value, _) = values.select_nth_unstable_by(rank - 1, f64::total_cmp);
        Some(*value)
    }
}

/// A time of a rule, in whole seconds.
pub(crate) fn seconds(key: &str, text: &str, (least_s, most_s): (i64, i64)) -> Result<i64, String> {
    let read = parse_duration(text)
        .ok()
        .and_then(|time| i64::try_from(time.as_secs()).ok());
    read.filter(|s| (least_s..=most_s).contains(s))
        .ok_or_else(|| {
            format!("{key} is a time from {least_s} s to {most_s} s with its unit, such as \"5m\"")
        })
}

/// A share in percent, as in "5%".
pub(super) fn ratio(text: &str) -> Result<f64, String> {
    let percent = text
        .trim()
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("'{text}' is no share: write it as \"5%\""))
}

/// A round trip in seconds, as in "80ms".
pub(super) fn round_trip(text: &str) -> Result<f64, String> {
    parse_duration(text)
        .map(|time| time.as_secs_f64())
        .map_err(|_| format!("'{text}' is no round trip: write it as \"80ms\""))
}

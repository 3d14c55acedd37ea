//! What a tuned setting did to the rate.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::distribution::Distribution;

/// A part of a tuning plan, measured with and without by turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneResult {
    /// Part of the plan that was tried, for people.
    pub part: String,
    /// Settings of that part.
    pub settings: Vec<TunedSetting>,
    /// Direction of the data.
    pub direction: Direction,
    /// What became of the part.
    pub decision: TuneDecision,
    /// Gain of the rate as a share: the geometric mean of the pairs, less one.
    pub effect_ratio: f64,
    /// Noise of one run as a share of the rate, as the pairs show it. Null with fewer than two pairs.
    pub noise_ratio: Option<f64>,
    /// Least gain, as a share, that so many runs could have shown under that noise. Absent unless the noise was too
    /// high to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_seen_ratio: Option<f64>,
    /// Rates in bit/s without the part. Null where no run was made.
    pub without_bps: Option<Distribution>,
    /// Rates in bit/s with the part. Null where no run was made.
    pub with_bps: Option<Distribution>,
    /// Runs that it took, with and without.
    pub runs: u64,
    /// Runs after which it would have been given up.
    pub most_runs: u64,
}

impl TuneResult {
    /// What became of it, in words.
    pub fn words(&self) -> String {
        let words = self.decision.shown();
        match (self.decision, self.least_seen_ratio) {
            (TuneDecision::CannotTell, Some(least)) => format!(
                "{words}; a gain under {:.0} % would not have been seen",
                least * 100.0
            ),
            _ => words.to_owned(),
        }
    }
}

/// A setting that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunedSetting {
    /// Name of the setting.
    pub knob: String,
    /// Value before the trial. Null where it is unknown.
    pub from: Option<String>,
    /// Value that was tried.
    pub to: String,
}

vocabulary! {
    /// What became of a part of a plan.
    pub enum TuneDecision {
        /// It helps, and stays.
        Kept = "kept",
        /// It surely gains less than 5 %, or harms, and was undone.
        TooLittle = "too-little" as "undone: gains too little",
        /// The noise hides the effect, and it was undone.
        CannotTell = "cannot-tell" as "undone: the noise hides it",
        /// The byte budget was used up before the effect was known, and it was undone.
        OutOfBudget = "out-of-budget" as "undone: the budget ended first",
    }
}

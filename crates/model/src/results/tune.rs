//! What a tuned setting did to the rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::distribution::Distribution;

/// A part of a tuning plan, measured with and without by turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneResult {
    /// What it is, for people.
    pub part: String,
    /// The settings of it.
    pub settings: Vec<TunedSetting>,
    /// Direction of the data.
    pub direction: Direction,
    /// What became of it.
    pub decision: TuneDecision,
    /// Gain of the rate: the geometric mean of the pairs, less one.
    pub effect_ratio: f64,
    /// Noise of one run, as the pairs show it; absent with fewer than two pairs.
    pub noise_ratio: Option<f64>,
    /// The least gain that so many runs could have shown under that noise; where the noise was too much to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_seen_ratio: Option<f64>,
    /// Rates without it.
    pub without_bps: Option<Distribution>,
    /// Rates with it.
    pub with_bps: Option<Distribution>,
    /// Runs that it took, with and without.
    pub runs: u64,
    /// Runs after which it would have been given up.
    pub most_runs: u64,
}

impl TuneResult {
    /// What became of it, in words.
    pub fn words(&self) -> String {
        let words = self.decision.words();
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
    /// The knob.
    pub knob: String,
    /// What it was, where that is known.
    pub from: Option<String>,
    /// What was tried.
    pub to: String,
}

/// What became of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TuneDecision {
    /// It helps, and stays.
    Kept,
    /// It surely gains less than 5 %, or harms, and was undone.
    TooLittle,
    /// The noise is too much to tell, and it was undone.
    CannotTell,
    /// What may be transferred was used up before it could be told, and it was undone.
    OutOfBudget,
}

impl TuneDecision {
    fn words(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::TooLittle => "undone: gains too little",
            Self::CannotTell => "undone: the noise hides it",
            Self::OutOfBudget => "undone: the budget ended first",
        }
    }
}

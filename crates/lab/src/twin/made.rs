//! What making a twin comes to: a scenario, or why there is none.

use crate::scenario::ScenarioError;

/// The name of every twin, also in the Runs that are made in it.
pub const NAME: &str = "twin";

/// A scenario that reproduces a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twin {
    /// The scenario as TOML, with comments.
    pub text: String,
    /// What the Run does not say about the path, and what stands in for it; clauses that follow "not known:".
    pub unknown: Vec<String>,
}

/// A Run that no twin is made of.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// The Run lacks what every twin needs.
    #[error(
        "the Run measured too little for a twin: it lacks {}. Measure them with: plumb check {far_end} -o run.json", lacks.join(", ")
    )]
    TooLittle {
        /// What is missing, as nouns.
        lacks: Vec<String>,
        /// The name of the far end, for the command that measures it.
        far_end: String,
    },
    /// The Run has numbers that no lab has.
    #[error("no lab has such a path: {0}")]
    Beyond(String),
    /// What came out is no scenario, which is a fault of plumb.
    #[error("the twin is no scenario, which is a fault of plumb: {0}")]
    Refused(#[from] ScenarioError),
}

//! `[truth]`: what must be found in a scenario.

use std::fmt;

use plumb_model::context::Phase;
use plumb_model::finding::{Cause, Place, Severity};
use plumb_model::protocol::Protocol;
use plumb_model::results::{Direction, Kind};
use plumb_model::run::Measurement;
use serde::Deserialize;

use super::names::{CellPath, LinkEnd};

/// What must be found in a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// The command that measures, run in the first node; one of plumb's verbs writes its Run.
    #[serde(default = "default_measure")]
    pub measure: Vec<String>,
    /// The exit status of that command.
    #[serde(default)]
    pub status: i32,
    /// Cause of the first finding.
    pub first_finding: Option<Cause>,
    /// Where the first finding is.
    pub first_finding_where: Option<Place>,
    /// Causes that must be found.
    #[serde(default)]
    pub findings: Vec<Cause>,
    /// Causes that must not be found.
    #[serde(default)]
    pub no_findings: Vec<Cause>,
    /// The most that any finding may matter.
    pub max_severity: Option<Severity>,
    /// Numbers in the Run.
    #[serde(default, rename = "value")]
    pub values: Vec<Expected>,
    /// Numbers in what the links recorded.
    #[serde(default, rename = "link")]
    pub links: Vec<Recorded>,
}

/// The command that a truth is about unless it says otherwise.
fn default_measure() -> Vec<String> {
    ["plumb", "check", "server"].map(str::to_owned).to_vec()
}

impl Default for Truth {
    /// Nothing but that probes are measured right.
    fn default() -> Self {
        Self {
            measure: default_measure(),
            status: 0,
            first_finding: None,
            first_finding_where: None,
            findings: Vec::new(),
            no_findings: Vec::new(),
            max_severity: None,
            values: Vec::new(),
            links: Vec::new(),
        }
    }
}

/// A number that a direction of a link recorded, and what it must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    pub what: String,
    pub link: LinkEnd,
    /// JSON Pointer (RFC 6901) to the number in the statistics of its chain, such as
    /// `/cells/loss/dropped/loss`. Causes that dropped nothing count as zero.
    pub field: String,
    /// JSON Pointer to a number that it is divided by.
    pub per: Option<String>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// A number in a Run and what it must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub what: String,
    /// The first such measurement of the Run.
    pub measurement: Selector,
    /// Path to the number inside the measurement.
    pub field: String,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub equals: Option<String>,
    /// The delay of a cell's queue while the measurement was made.
    pub queue_delay: Option<QueueDelay>,
    /// The TCP payload that a direction of a link delivered a second meanwhile.
    pub payload_rate: Option<LinkEnd>,
    /// How far the number may be from the cell's, as a share of the cell's.
    #[serde(default)]
    pub tolerance_ratio: f64,
}

/// What a measurement must be. What is absent may be anything.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    kind: Option<Kind>,
    direction: Option<Direction>,
    phase: Option<Phase>,
    protocol: Option<Protocol>,
}

impl Selector {
    pub fn selects(&self, measurement: &Measurement) -> bool {
        fn agrees<T: PartialEq>(wanted: Option<T>, found: Option<T>) -> bool {
            wanted.is_none() || wanted == found
        }
        let outcome = &measurement.outcome;
        agrees(self.kind, Some(outcome.kind()))
            && agrees(self.direction, outcome.direction())
            && agrees(self.phase, measurement.context.phase)
            && agrees(self.protocol, outcome.protocol())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.kind.map(Kind::name),
            self.direction.map(Direction::name),
            self.phase.map(Phase::name),
            self.protocol.map(Protocol::name),
        ];
        let words: Vec<_> = words.into_iter().flatten().collect();
        f.write_str(&words.join(", "))
    }
}

/// A quantile, over time, of a queue's delay.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueDelay {
    /// The cell that has it.
    pub cell: CellPath,
    /// 0 to 1.
    pub quantile: f64,
}

//! Holding a Run against what the laboratory knows to be true.
//!
//! One pure function: a scenario, a Run made in it and the statistics of its links go in,
//! deviations come out.

mod measured;
mod probes;
mod recorded;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use plumb_model::finding::{Cause, Place, Severity};
use plumb_model::run::Run;
use serde::Deserialize;

use crate::scenario::{CellPath, LinkEnd, Scenario};
use crate::stats::LabStats;

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
    #[serde(default)]
    pub first_finding: Option<Cause>,
    /// Where the first finding is.
    #[serde(default)]
    pub first_finding_where: Option<Place>,
    /// Causes that must be found.
    #[serde(default)]
    pub findings: Vec<Cause>,
    /// The most that any finding may matter.
    #[serde(default)]
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
    /// Why, in words.
    pub what: String,
    /// The direction.
    pub link: LinkEnd,
    /// JSON Pointer (RFC 6901) to the number in the statistics of its chain, such as
    /// `/cells/loss/dropped/loss`. Causes that dropped nothing count as zero.
    pub field: String,
    /// JSON Pointer to a number that it is divided by.
    #[serde(default)]
    pub per: Option<String>,
    /// Not less than.
    #[serde(default)]
    pub min: Option<f64>,
    /// Not more than.
    #[serde(default)]
    pub max: Option<f64>,
}

/// A number in a Run and what it must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Why, in words.
    pub what: String,
    /// Which measurement: pairs that its kind, params or result must have.
    pub measurement: HashMap<String, String>,
    /// Path to the number inside the measurement.
    pub field: String,
    /// Not less than.
    #[serde(default)]
    pub min: Option<f64>,
    /// Not more than.
    #[serde(default)]
    pub max: Option<f64>,
    /// Exactly this word.
    #[serde(default)]
    pub equals: Option<String>,
    /// The delay of a cell's queue while the measurement was made.
    #[serde(default)]
    pub queue_delay: Option<QueueDelay>,
    /// The TCP payload that a direction of a link delivered a second meanwhile.
    #[serde(default)]
    pub payload_rate: Option<LinkEnd>,
    /// How far the number may be from the cell's, as a share of the cell's.
    #[serde(default)]
    pub tolerance_ratio: f64,
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

/// Something in the Run that is not so.
#[derive(Debug, Clone, PartialEq)]
pub struct Deviation {
    /// What was expected, in words.
    pub what: String,
    /// What was there instead.
    pub found: String,
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.found)
    }
}

/// What came of holding a Run against a truth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// What is so, and what was found.
    pub holds: Vec<String>,
    /// What is not.
    pub deviations: Vec<Deviation>,
}

impl Verdict {
    fn take(&mut self, what: &str, outcome: Result<String, String>) {
        match outcome {
            Ok(found) => self.holds.push(format!("{what}: {found}")),
            Err(found) => self.deviations.push(Deviation {
                what: what.to_owned(),
                found,
            }),
        }
    }
}

/// Holds a Run, and what the links recorded, against the truth of its scenario.
pub fn verdict(scenario: &Scenario, run: &Run, stats: &LabStats) -> Verdict {
    let mut verdict = Verdict::default();
    findings(&scenario.truth, run, &mut verdict);
    for expected in &scenario.truth.values {
        verdict.take(&expected.what, measured::check(expected, run, stats));
    }
    let recorded = recorded(scenario, stats);
    verdict.holds.extend(recorded.holds);
    verdict.deviations.extend(recorded.deviations);
    match probes::check(run, stats) {
        Ok(None) => {}
        Ok(Some(probes)) => verdict.holds.push(format!(
            "{probes} probes: those answered took as long as the links recorded, and the others are lost where one lost them"
        )),
        Err(deviations) => verdict.deviations.extend(deviations),
    }
    verdict
}

/// Everything in which a Run departs from the truth of its scenario.
pub fn truth(scenario: &Scenario, run: &Run, stats: &LabStats) -> Vec<Deviation> {
    verdict(scenario, run, stats).deviations
}

/// Holds what the links recorded against the truth of their scenario, for commands that make no Run.
pub fn recorded(scenario: &Scenario, stats: &LabStats) -> Verdict {
    let mut verdict = Verdict::default();
    for expected in &scenario.truth.links {
        verdict.take(&expected.what, recorded::check(expected, stats));
    }
    verdict
}

/// Words for the bounds of a number.
fn bounds(min: Option<f64>, max: Option<f64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) if min == max => format!(" (must be {min})"),
        (Some(min), Some(max)) => format!(" (from {min} to {max})"),
        (Some(min), None) => format!(" (at least {min})"),
        (None, Some(max)) => format!(" (at most {max})"),
        (None, None) => String::new(),
    }
}

fn findings(truth: &Truth, run: &Run, verdict: &mut Verdict) {
    let mut expect = |holds: bool, what: String| {
        if holds {
            verdict.holds.push(what);
        } else {
            let there: Vec<String> = run
                .findings
                .iter()
                .map(|f| {
                    format!(
                        "{} at {} ({})",
                        f.cause.name(),
                        f.place.name(),
                        f.severity.name()
                    )
                })
                .collect();
            verdict.deviations.push(Deviation {
                what,
                found: format!("findings are [{}]", there.join(", ")),
            });
        }
    };
    let first = run.findings.first();
    if let Some(cause) = truth.first_finding {
        expect(
            first.is_some_and(|f| f.cause == cause),
            format!("the first finding is {}", cause.name()),
        );
    }
    if let Some(place) = truth.first_finding_where {
        expect(
            first.is_some_and(|f| f.place == place),
            format!("the first finding is at {}", place.name()),
        );
    }
    for cause in &truth.findings {
        expect(
            run.findings.iter().any(|f| f.cause == *cause),
            format!("{} is found", cause.name()),
        );
    }
    if let Some(most) = truth.max_severity {
        expect(
            run.findings.iter().all(|f| f.severity <= most),
            format!("no finding is worse than {}", most.name()),
        );
    }
}

//! What the lines of a path could carry.

use plumb_model::finding::{Cause, Evidence, Finding, Place, Severity};
use plumb_model::results::Outcome;
use plumb_model::results::capacity::CapacityResult;
use plumb_model::run::Measurement;

use crate::Case;

/// A measurement of the lines of a path.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a CapacityResult,
}

impl<'a> Case<'a> {
    pub(crate) fn lines(&self) -> impl Iterator<Item = Lines<'a>> + use<'a> {
        self.measurements
            .iter()
            .filter_map(|measurement| match &measurement.outcome {
                Outcome::Capacity(result) => Some(Lines {
                    measurement,
                    result,
                }),
                _ => None,
            })
    }
}

/// A finding of the lines: worth knowing, and nothing that a host could fix.
pub(crate) fn of_lines(
    cause: Cause,
    place: Place,
    confidence: f64,
    summary: String,
    evidence: Evidence,
) -> Finding {
    Finding {
        cause,
        place,
        severity: Severity::Info,
        confidence,
        matters_for: Vec::new(),
        summary,
        evidence: vec![evidence],
        fixes: Vec::new(),
        kb: "capacity".to_owned(),
    }
}

//! Routes that packets take.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::results::Outcome;
use plumb_model::results::path::PathResult;
use plumb_model::run::Measurement;

use crate::Case;

/// A route to the far end.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a PathResult,
}

impl Route<'_> {
    /// How an address at a hop is called.
    pub(crate) fn at(self, ttl: u8) -> String {
        let hop = self.result.hops.iter().find(|hop| hop.ttl == ttl);
        let name = hop.and_then(|hop| hop.name.as_ref().or(hop.address.as_ref()));
        match name {
            Some(name) => format!("hop {ttl} ({name})"),
            None => format!("hop {ttl}"),
        }
    }
}

impl<'a> Case<'a> {
    /// The routes of every measurement of the path.
    pub(crate) fn routes(&self) -> impl Iterator<Item = Route<'a>> + use<'a> {
        self.measurements
            .iter()
            .filter_map(|measurement| match &measurement.outcome {
                Outcome::Path(result) => Some(Route {
                    measurement,
                    result,
                }),
                _ => None,
            })
    }
}

/// A finding of a route, with one piece of evidence and one piece of advice.
pub(crate) fn of_route(
    cause: Cause,
    (severity, confidence): (Severity, f64),
    summary: String,
    evidence: Evidence,
    (on, what, expect): (Actor, &str, &str),
) -> Finding {
    Finding {
        cause,
        place: Place::Path,
        severity,
        confidence,
        matters_for: Vec::new(),
        summary,
        evidence: vec![evidence],
        fixes: vec![Fix::advice(on, what, expect)],
        kb: "path".to_owned(),
    }
}

#[cfg(test)]
mod tests;

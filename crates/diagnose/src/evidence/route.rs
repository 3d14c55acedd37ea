//! Routes that packets take.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::results::Outcome;
use plumb_model::results::path::{AlteredField, PathResult};
use plumb_model::run::Measurement;

use super::fact;
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
    /// Those of every measurement of the path.
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

/// Where a field of the header does not arrive as it was sent.
pub(crate) fn altered(
    route: Route<'_>,
    field: AlteredField,
    cause: Cause,
    what: &str,
) -> Vec<Finding> {
    let changes = route.result.alterations.iter().enumerate();
    changes
        // A mark of congestion is what the field is for.
        .filter(|(_, change)| change.field == field && change.seen != "CE")
        .map(|(index, change)| {
            let behind = match change.intact_at_ttl {
                Some(ttl) => format!("behind {}", route.at(ttl)),
                None => "before the first hop that tells".to_owned(),
            };
            let summary = format!(
                "The {what} of packets to {} is changed from {} to {}, {behind}.",
                route.result.address, change.sent, change.seen
            );
            let evidence = fact(
                route.measurement,
                format_args!("alterations.{index}.seen_at_ttl"),
                f64::from(change.seen_at_ttl),
                "the first hop that quotes another value than was sent",
                1.0,
            );
            let advice = (
                Actor::Provider,
                "Rely on no mark beyond that hop, or ask who runs it to leave the field alone: DSCP by agreement, ECN by RFC 3168.",
                "the field as it was sent at every hop",
            );
            of_route(cause, (Severity::Info, 0.95), summary, evidence, advice)
        })
        .collect()
}

#[cfg(test)]
mod tests;

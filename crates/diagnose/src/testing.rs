//! What the tests of rules share.

use plumb_model::finding::Finding;
use plumb_model::results::Outcome;
use plumb_model::run::{HostFacts, Measurement};

use crate::{Case, causes};

/// A measurement that had this outcome.
pub(crate) fn measurement(outcome: Outcome) -> Measurement {
    Measurement {
        id: "m1".to_owned(),
        outcome,
        at_s: 0.0,
        duration_s: 1.0,
        context: Default::default(),
        ended: Default::default(),
        settings: Default::default(),
        series: Default::default(),
    }
}

/// What a rule finds where that is all that was measured, and nothing is known of the hosts.
pub(crate) fn found(rule: impl Fn(&Case<'_>) -> Vec<Finding>, outcome: Outcome) -> Vec<Finding> {
    rule(&Case {
        measurements: &[measurement(outcome)],
        local: &HostFacts::default(),
        far: None,
    })
}

/// What the rules of all causes find.
pub(crate) fn found_by_any(outcome: Outcome) -> Vec<Finding> {
    found(causes::found, outcome)
}

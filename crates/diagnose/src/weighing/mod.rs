//! How sure a finding is: log-odds in bits that add up, so that a person can follow them by hand. Each bit more doubles
//! the odds, each bit less halves them.
//!
//! What adds up is how often the cause is met in such a setting (`prior.rs`), what its own rule found (as often as that
//! rule was right on lines whose truth is known, `fitted.rs`), and what else was seen that the cause predicts or
//! excludes (`observable.rs`, and `predicts` in each file of `causes/`).

mod fitted;
mod observable;
pub mod prediction;
mod prior;

use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::results::Direction;

use crate::entry::Entry;
use crate::{Case, causes, rules};
pub use observable::Observable;
use observable::Seen;
use prior::REFERENCE_BITS;
pub use prior::Setting;

/// No finding is surer than this: one line in a hundred is unlike all that the rules were tried on.
const MOST_SURE: f64 = 0.99;

/// Trials that the author's estimate of a rule's precision counts as, beside the rule's trials on lines whose truth is
/// known.
const ESTIMATE_TRIALS: f64 = 8.0;

/// One line of an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// What was seen, as a clause.
    pub what: String,
    pub bits: f64,
}

/// How a finding's confidence comes about.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    pub cause: Cause,
    pub place: Place,
    /// In the order in which they are to be added up; the first is the prior.
    pub terms: Vec<Term>,
    /// The confidence that their sum is, at most 99 %.
    pub confidence: f64,
}

impl Account {
    /// The sum of its terms, in bits.
    pub fn bits(&self) -> f64 {
        self.terms.iter().map(|term| term.bits).sum()
    }

    /// Whether the sum is surer than any finding may be.
    pub fn is_capped(&self) -> bool {
        probability(self.bits()) > MOST_SURE
    }

    /// Whether what was seen beside its own rule makes it more unlikely than likely, and the rule alone did not.
    fn is_contradicted(&self) -> bool {
        let alone: f64 = self.terms.iter().take(2).map(|term| term.bits).sum();
        alone >= 0.0 && self.bits() < 0.0
    }
}

/// What all rules find, with how sure each finding is by all that was seen; without those that it contradicts.
pub(crate) fn found(case: &Case<'_>) -> Vec<Finding> {
    let weighed = rules::found(case).into_iter().filter_map(|finding| {
        let account = account(case, &finding, finding.confidence);
        let confidence = account.confidence;
        (!account.is_contradicted()).then_some(Finding {
            confidence,
            ..finding
        })
    });
    weighed.collect()
}

/// How the confidence of each finding of a case comes about, in the order of the findings of
/// [`diagnose`](crate::diagnose).
pub fn accounts(case: &Case<'_>, findings: &[Finding]) -> Vec<Account> {
    let estimates = rules::found(case);
    let same = |one: &Finding, other: &Finding| {
        one.cause == other.cause && one.place == other.place && one.summary == other.summary
    };
    let of = |finding: &Finding| {
        let estimate = estimates.iter().find(|estimate| same(estimate, finding))?;
        Some(account(case, finding, estimate.confidence))
    };
    findings.iter().filter_map(of).collect()
}

/// `estimate` is how often the author of its rule expects it to be right.
fn account(case: &Case<'_>, finding: &Finding, estimate: f64) -> Account {
    let setting = Setting::of(case);
    let entry: &Entry = causes::entry(finding.cause);
    let prior_bits = prior::bits(finding.cause, setting);
    let first = finding.decisive();
    let rule = first.map_or_else(String::new, |evidence| evidence.rule.clone());
    let mut terms = vec![
        Term {
            what: format!("how often it is found {}", setting.words()),
            bits: prior_bits,
        },
        Term {
            what: match rule.is_empty() {
                true => "its own rule".to_owned(),
                false => format!("its own rule: {rule}"),
            },
            bits: bits(precision(finding.cause, estimate)) - REFERENCE_BITS,
        },
    ];
    let direction = match finding.place {
        Place::Uplink => Some(Direction::Up),
        Place::Downlink => Some(Direction::Down),
        _ => None,
    };
    let seen = seen_of(case, entry, direction);
    terms.extend(seen.map(|(what, bits)| Term {
        what: what.to_owned(),
        bits,
    }));
    let sum: f64 = terms.iter().map(|term| term.bits).sum();
    Account {
        cause: finding.cause,
        place: finding.place,
        terms,
        confidence: probability(sum).min(MOST_SURE),
    }
}

/// What was seen in any direction that speaks for a cause or against it, with its bits.
pub(crate) fn seen(case: &Case<'_>, cause: Cause) -> Vec<(&'static str, f64)> {
    seen_of(case, causes::entry(cause), None).collect()
}

fn seen_of(
    case: &Case<'_>,
    entry: &Entry,
    direction: Option<Direction>,
) -> impl Iterator<Item = (&'static str, f64)> {
    let seen = entry.predicts.iter().filter_map(move |prediction| {
        let (bits, present) = match prediction.of.seen(case, direction) {
            Seen::Present => (prediction.present_bits, true),
            Seen::Absent => (prediction.absent_bits, false),
            Seen::Unknown => return None,
        };
        Some((prediction.of.words(present), bits))
    });
    seen.filter(|(_, bits)| *bits != 0.0)
}

/// How often a rule is right that finds this cause: the author's estimate, and what became of it on lines whose truth
/// is known.
fn precision(cause: Cause, estimate: f64) -> f64 {
    let (found, right) = fitted::counts(cause);
    (right + ESTIMATE_TRIALS * estimate) / (found + ESTIMATE_TRIALS)
}

/// How many times as often as most others a cause is found in a setting, by the priors.
pub fn how_often(cause: Cause, setting: Setting) -> f64 {
    (prior::bits(cause, setting) - REFERENCE_BITS).exp2()
}

/// Log-odds of a probability, in bits.
fn bits(probability: f64) -> f64 {
    let bounded = probability.clamp(1e-6, 1.0 - 1e-6);
    (bounded / (1.0 - bounded)).log2()
}

/// The probability of log-odds in bits.
fn probability(bits: f64) -> f64 {
    1.0 / (1.0 + (-bits).exp2())
}

#[cfg(test)]
mod tests;

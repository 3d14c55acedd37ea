#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::run::Run;

use super::*;
use crate::{Scope, diagnose};

const BOOST: &str = include_str!("../../fixtures/boost.json");
const OUTAGE: &str = include_str!("../../fixtures/outage.json");
const MANAGED: &str = include_str!("../../fixtures/home-cable-managed.json");

fn explained(run: &str) -> (Vec<Finding>, Vec<Account>) {
    let run = Run::from_json(run).unwrap();
    let case = Case::of(&run);
    let (findings, _) = diagnose(&case, Scope::Path);
    let accounts = accounts(&case, &findings);
    (findings, accounts)
}

#[test]
fn odds_and_probabilities_are_each_others_inverse() {
    for known in [0.001, 0.02, 0.5, 0.9, 0.99] {
        assert!((probability(bits(known)) - known).abs() < 1e-9, "{known}");
    }
    assert!((bits(0.8) - 2.0).abs() < 1e-9, "four to one");
    assert!((bits(1.0 / 50.0) - REFERENCE_BITS).abs() < 0.05);
}

/// What `--explain` prints is what the finding says: the terms add up to its confidence.
#[test]
fn the_account_of_a_finding_adds_up_to_its_confidence() {
    for run in [BOOST, OUTAGE] {
        let (findings, accounts) = explained(run);
        assert_eq!(findings.len(), accounts.len());
        for (finding, account) in findings.iter().zip(&accounts) {
            assert_eq!(account.confidence, finding.confidence);
            let sum: f64 = account.terms.iter().map(|term| term.bits).sum();
            assert_eq!(account.confidence, probability(sum).min(MOST_SURE));
        }
    }
    assert_eq!(explained(MANAGED).1, []);
}

#[test]
fn a_rule_that_was_seldom_right_is_believed_less() {
    let estimated = precision(Cause::Unexplained, 0.9);
    assert_eq!(estimated, 0.9, "nothing was tried: the author's estimate");
    let with = |found: f64, right: f64| (right + ESTIMATE_TRIALS * 0.9) / (found + ESTIMATE_TRIALS);
    assert!(with(40.0, 20.0) < 0.6 && with(40.0, 40.0) > 0.98);
}

/// Whatever the setting, what was measured outweighs what is usual there.
#[test]
fn no_prior_outweighs_a_sure_rule() {
    for setting in [
        Setting::Home,
        Setting::Campus,
        Setting::Cloud,
        Setting::Mobile,
    ] {
        for (cause, _) in causes::all() {
            let prior = prior::bits(cause, setting);
            assert!((prior - REFERENCE_BITS).abs() <= 3.0, "{cause:?}");
            assert!(probability(prior + bits(0.95) - REFERENCE_BITS) > 0.7);
        }
    }
}

/// A rule that is right nine times in ten is not believed where what was seen beside it is four bits against it; nor is
/// it dropped for being unusual.
#[test]
fn what_was_seen_may_contradict_a_rule_and_a_prior_may_not() {
    let account = |prior_bits, seen_bits| Account {
        cause: Cause::Policer,
        place: Place::Uplink,
        terms: [prior_bits, bits(0.9) - REFERENCE_BITS, seen_bits]
            .map(|bits| Term {
                what: String::new(),
                bits,
            })
            .to_vec(),
        confidence: 0.0,
    };
    assert!(account(REFERENCE_BITS, -4.0).is_contradicted());
    assert!(!account(REFERENCE_BITS, -1.0).is_contradicted());
    assert!(!account(REFERENCE_BITS - 9.0, 0.0).is_contradicted());
}

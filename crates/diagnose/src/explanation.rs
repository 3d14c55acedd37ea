//! Why a cause was found, or was not: which fact, its value, the bound, and what was not measured.

use plumb_model::finding::{Cause, Evidence, Finding, Place, Severity};
use plumb_model::need::Need;

use crate::facts::{Fact, Log};
use crate::host::{Facts, Judged};
use crate::needs::is_measured;
use crate::rules::{Fate, with_fates};
use crate::signs::signs;
use crate::{Case, causes, weighing};

/// What is known of a cause in a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub cause: Cause,
    pub standing: Standing,
    /// What its rule compared, in the order in which it did. Empty where the rule does not say.
    pub facts: Vec<Fact>,
    /// What the audit of a machine says of it, what is not fine first: the subject, and its sentence.
    pub checks: Vec<(String, String)>,
    /// What a finding of it rests on.
    pub evidence: Vec<Evidence>,
    /// What it needs to have been measured, and whether it was.
    pub needs: Vec<(Need, bool)>,
    /// What else was seen that speaks for it or against it: in bits, as the confidence of a finding adds up.
    pub seen: Vec<(&'static str, f64)>,
}

/// Where a cause stands in a case.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// In these places, with that confidence.
    Found(Vec<(Place, f64)>),
    /// Its rule found it, and another finding accounts for it.
    AccountedFor(Cause),
    /// Its rule found it, and what else was seen excludes it.
    Contradicted,
    /// A machine has it, and it holds back no path.
    OfMachineAlone,
    /// All that it needs was measured, and it was not found.
    Absent,
    /// It was not found, and these were not measured.
    NotLookedFor(Vec<Need>),
}

/// Why a cause is among the findings of a case, or is not.
pub fn explain(case: &Case<'_>, findings: &[Finding], cause: Cause) -> Explanation {
    let entry = causes::entry(cause);
    let log = Log::default();
    let _ = (entry.examine)(&Case {
        log: Some(&log),
        ..*case
    });
    let needs: Vec<(Need, bool)> = entry
        .needs
        .iter()
        .map(|need| (*need, is_measured(case, *need)))
        .collect();
    let own = || findings.iter().filter(|finding| finding.cause == cause);
    Explanation {
        cause,
        standing: standing(case, own(), cause, &needs),
        facts: match cause {
            Cause::Unexplained => Vec::new(),
            _ => log.into_facts(),
        },
        checks: match cause {
            Cause::Unexplained => accounted_for(case, findings),
            _ => checks(case, cause),
        },
        evidence: own().flat_map(|finding| finding.evidence.clone()).collect(),
        needs,
        seen: weighing::seen(case, cause),
    }
}

fn standing<'a>(
    case: &Case<'_>,
    own: impl Iterator<Item = &'a Finding>,
    cause: Cause,
    needs: &[(Need, bool)],
) -> Standing {
    let places: Vec<_> = own.map(|f| (f.place, f.confidence)).collect();
    if !places.is_empty() {
        return Standing::Found(places);
    }
    let all = with_fates(case).into_iter();
    let mut fates = all.filter(|(finding, _)| finding.cause == cause);
    match fates.next().map(|(_, fate)| fate) {
        Some(Fate::AccountedFor(other)) => return Standing::AccountedFor(other),
        Some(Fate::OfMachineAlone) => return Standing::OfMachineAlone,
        Some(Fate::Kept | Fate::SeenMeanwhile) => return Standing::Contradicted,
        None => {}
    }
    let missing = needs.iter().filter(|(_, measured)| !measured);
    let missing: Vec<Need> = missing.map(|(need, _)| *need).collect();
    match missing.is_empty() {
        true => Standing::Absent,
        false => Standing::NotLookedFor(missing),
    }
}

/// What the audits of the machines say of a cause.
fn checks(case: &Case<'_>, cause: Cause) -> Vec<(String, String)> {
    let rules = causes::entry(cause).audits;
    let judged = case.hosts().flat_map(|(id, host)| {
        let facts = Facts {
            host,
            measurement: id,
        };
        rules.iter().flat_map(move |(_, rule)| rule(&facts))
    });
    let (found, fine): (Vec<Judged>, Vec<Judged>) =
        judged.partition(|one| matches!(one, Judged::Found(..)));
    let checks = found.into_iter().chain(fine).map(|one| match one {
        Judged::Fine(subject, summary) => (subject, format!("{summary}: this is fine")),
        Judged::Unknown(subject, why) => (subject, format!("not known, because {why}")),
        Judged::Found(subject, finding) => (subject, finding.summary),
    });
    checks.collect()
}

/// The signs that something is wrong, and which finding accounts for each.
fn accounted_for(case: &Case<'_>, findings: &[Finding]) -> Vec<(String, String)> {
    let of = |sign: crate::signs::Sign| {
        let explains = |finding: &&Finding| causes::explains(finding, &sign);
        let by = findings.iter().find(explains).map(|finding| finding.cause);
        let subject = match sign.severity {
            Severity::Info => "a sign that may be chance",
            _ => "a sign",
        };
        let by = by.map_or("no finding".to_owned(), |cause| cause.name().to_owned());
        (
            subject.to_owned(),
            format!("{}; {by} accounts for it", sign.text),
        )
    };
    signs(case).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plumb_model::run::Run;

    use super::*;
    use crate::facts::State;
    use crate::{Scope, diagnose};

    fn of(run: &str, cause: Cause) -> Explanation {
        let run = Run::from_json(run).unwrap();
        let case = Case::of(&run);
        let (findings, _) = diagnose(&case, Scope::Path);
        explain(&case, &findings, cause)
    }

    const OUTAGE: &str = include_str!("../fixtures/outage.json");
    const MANAGED: &str = include_str!("../fixtures/home-cable-managed.json");

    #[test]
    fn a_queue_that_is_short_says_by_how_much() {
        let bloat = of(MANAGED, Cause::BufferbloatUp);
        let deciding = |fact: &&Fact| fact.state == State::Unmet;
        let fact = bloat.facts.iter().find(deciding).unwrap().shown();
        assert!(fact.starts_with("up: increase of"), "{fact}");
        assert!(fact.ends_with("a finding needs at least 60.0 ms"), "{fact}");
    }

    #[test]
    fn what_was_found_rests_on_its_evidence_and_what_yields_names_what_accounts_for_it() {
        let outage = of(OUTAGE, Cause::Outage);
        assert!(matches!(outage.standing, Standing::Found(_)));
        assert!(!outage.evidence.is_empty());
        assert!(outage.facts.iter().all(|fact| fact.state == State::Met));
        let run = Run::from_json(OUTAGE).unwrap();
        let all = with_fates(&Case::of(&run));
        for (finding, fate) in all {
            if let Fate::AccountedFor(other) = fate {
                let standing = of(OUTAGE, finding.cause).standing;
                assert_eq!(standing, Standing::AccountedFor(other));
            }
        }
    }

    #[test]
    fn every_cause_can_be_asked_for_of_a_run_that_has_nothing() {
        let mut run = Run::from_json(OUTAGE).unwrap();
        run.measurements.clear();
        let case = Case::of(&run);
        for (cause, _) in causes::all() {
            let explanation = explain(&case, &[], cause);
            let known = explanation.facts.iter();
            let known = known.filter(|fact| fact.state != State::NotMeasured);
            assert_eq!(known.count(), 0, "{cause:?}");
            assert!(
                matches!(explanation.standing, Standing::NotLookedFor(_)),
                "{cause:?}"
            );
        }
    }
}

//! A good and a bad Run of the same path: which findings of the bad one the change speaks for. What was there when all was
//! well does not explain why it no longer is.

use plumb_model::finding::{Cause, Finding};
use plumb_model::run::Run;

use crate::excess::excess;
use crate::needs::is_measured;
use crate::{Case, causes};

/// How much further beyond its threshold a finding must be to have become worse: rates and round trips of one path differ
/// by a tenth between Runs, and its loss by more.
const WORSE_TIMES: f64 = 1.5;

/// Why two Runs are not before and after of one thing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// Nothing can have changed in between.
    #[error(
        "the good Run and the bad Run are the same one ({id}): give two that were made at different times"
    )]
    Same {
        /// Identity of that Run.
        id: String,
    },
    /// They are of two paths.
    #[error(
        "the Runs are of different paths, towards {good} and {bad}: what changes with time can be said of one path only; compare \
         them (plumb compare)"
    )]
    Paths {
        /// The far end of the good, or first, Run.
        good: String,
        /// The far end of the other Run.
        bad: String,
    },
}

/// What a finding of the bad Run was in the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It was looked for there, and was not there: the change speaks for it.
    New,
    /// It was there, and was less bad: the change speaks for it.
    Worse,
    /// What it needs was not measured there: it may have been there.
    NotLookedFor,
    /// It was there as well: it does not explain the change.
    AsBefore,
}

/// A finding of the bad Run, and what it was in the good one.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    pub finding: &'a Finding,
    pub standing: Standing,
}

/// Refuses two Runs that are not of one path at two times.
///
/// # Errors
/// When they are of different paths, or the same Run. A far end whose address changed is still one path.
pub fn check_pair(good: &Run, bad: &Run) -> Result<(), PairError> {
    let known = made_in(good);
    if let Some(id) = made_in(bad).into_iter().find(|id| known.contains(id)) {
        return Err(PairError::Same { id: id.to_owned() });
    }
    check_path(good, bad)
}

/// Refuses two Runs that are of different paths.
///
/// # Errors
/// When they are. A far end whose address changed is still one path.
pub fn check_path(good: &Run, bad: &Run) -> Result<(), PairError> {
    let same = match (&good.target, &bad.target) {
        (Some(a), Some(b)) => a.is_same_as(b),
        (None, None) => true,
        _ => false,
    };
    let far_end = |run: &Run| {
        let target = run.target.as_ref();
        target.map_or_else(|| "no far end".to_owned(), ToString::to_string)
    };
    match same {
        true => Ok(()),
        false => Err(PairError::Paths {
            good: far_end(good),
            bad: far_end(bad),
        }),
    }
}

/// The Runs that its measurements were made in.
fn made_in(run: &Run) -> Vec<&str> {
    let mut ids = vec![run.id.as_str()];
    let measurements = run.measurements.iter();
    ids.extend(measurements.filter_map(|m| m.context.run.as_deref()));
    ids
}

/// The findings of the bad Run, those that the change speaks for first.
pub fn suspects<'a>(good: &Run, bad: &'a Run) -> Vec<Suspect<'a>> {
    let case = Case::of(good);
    let findings = bad.findings.iter();
    let mut all: Vec<Suspect<'_>> = findings
        .map(|finding| Suspect {
            finding,
            standing: standing(finding, good, &case),
        })
        .collect();
    // Those that are worse come first in the Run, and stay so.
    all.sort_by_key(|suspect| suspect.standing);
    all
}

fn standing(finding: &Finding, good: &Run, case: &Case<'_>) -> Standing {
    let mut before = good.findings.iter();
    let before = before.find(|f| (f.cause, f.place) == (finding.cause, finding.place));
    if let Some(before) = before {
        let further = excess(finding) >= WORSE_TIMES * excess(before).max(f64::MIN_POSITIVE);
        return match finding.severity > before.severity || further {
            true => Standing::Worse,
            false => Standing::AsBefore,
        };
    }
    // What nothing explains needs no measurement of its own.
    let needs = causes::entry(finding.cause).needs;
    let looked_for = finding.cause == Cause::Unexplained && !case.measurements.is_empty()
        || !needs.is_empty() && needs.iter().all(|need| is_measured(case, *need));
    match looked_for {
        true => Standing::New,
        false => Standing::NotLookedFor,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use plumb_model::results::Outcome;

    use super::*;
    use crate::{Scope, diagnose};

    fn judged(text: &str, id: &str) -> Run {
        let mut run = Run::from_json(text).unwrap();
        run.id = id.to_owned();
        again(run)
    }

    fn again(mut run: Run) -> Run {
        run.findings = diagnose(&Case::of(&run), Scope::Path).0;
        run
    }

    fn managed() -> Run {
        judged(include_str!("../fixtures/home-cable-managed.json"), "good")
    }

    fn bad() -> Run {
        judged(include_str!("../fixtures/mtu-black-hole.json"), "bad")
    }

    fn standing_of(good: &Run, bad: &Run, cause: Cause) -> Option<Standing> {
        let all = suspects(good, bad);
        let found = all.iter().find(|suspect| suspect.finding.cause == cause);
        found.map(|suspect| suspect.standing)
    }

    #[test]
    fn what_was_looked_for_and_absent_is_what_the_change_speaks_for() {
        let mut bloated = managed();
        bloated.id = "bad".to_owned();
        for measurement in &mut bloated.measurements {
            if let Outcome::LoadedLatency(result) = &mut measurement.outcome {
                for of in [&mut result.increase_s, &mut result.rtt_s] {
                    of.p50 += 0.5;
                    of.p95 += 0.6;
                    of.p99 += 0.7;
                    of.max += 0.7;
                }
            }
        }
        let bloated = again(bloated);
        let worst = bloated.findings.first().unwrap().cause;
        assert_eq!(
            standing_of(&managed(), &bloated, worst),
            Some(Standing::New)
        );
        assert_eq!(
            standing_of(&bloated, &bloated, worst),
            Some(Standing::AsBefore)
        );
        // The same where the good Run lacks the loads.
        let mut idle = managed();
        idle.measurements.retain(|m| m.context.load.is_none());
        let idle = again(idle);
        assert_eq!(
            standing_of(&idle, &bloated, worst),
            Some(Standing::NotLookedFor)
        );
    }

    #[test]
    fn a_finding_that_is_further_beyond_its_threshold_is_worse() {
        let good = bad();
        let mut bad = bad();
        let finding = bad.findings.first_mut().unwrap();
        let cause = finding.cause;
        finding.severity = plumb_model::finding::Severity::Critical;
        let mut before = good.clone();
        before.findings[0].severity = plumb_model::finding::Severity::Warning;
        assert_eq!(standing_of(&before, &bad, cause), Some(Standing::Worse));
    }

    #[test]
    fn other_paths_and_the_same_run_are_refused() {
        let (good, mut bad) = (managed(), managed());
        assert!(matches!(
            check_pair(&good, &bad),
            Err(PairError::Same { .. })
        ));
        bad.id = "bad".to_owned();
        assert_eq!(check_pair(&good, &bad), Ok(()));
        let target = bad.target.as_mut().unwrap();
        target.address = Some("203.0.113.9".to_owned());
        assert_eq!(check_pair(&good, &bad), Ok(()));
        bad.target.as_mut().unwrap().name = "other".to_owned();
        let refused = check_pair(&good, &bad).unwrap_err().to_string();
        assert!(refused.contains("203.0.113.9"), "{refused}");
        bad.target = None;
        assert!(check_pair(&good, &bad).is_err());
    }
}

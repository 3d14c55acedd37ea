//! What a Run comes to: the gate before every all-clear.
//!
//! An all-clear needs evidence of health, and not only no finding. Whatever is wrong and explained by no
//! finding becomes one, "unexplained" ([`signs`]); whatever an all-clear needs and was not measured
//! is named ([`requirements`]). What is left is cleared.

mod budget;
mod headline;
mod local;
#[cfg(test)]
mod recorded;
mod requirements;
#[cfg(test)]
mod tests;

use plumb_model::finding::{Cause, Clearance, Finding, NotMeasured, Severity, Verdict};
use plumb_model::grade::Grade;

use crate::{Case, Scope, causes, needs};
pub use headline::{without_load, without_responder};
pub use local::local;

/// The findings, and one more where there are signs that none of them explains.
pub(crate) fn with_unexplained(case: &Case<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    let left = causes::left(case, &findings);
    findings.extend(causes::unexplained(left));
    findings
}

/// What the findings, worst first, and the measurements come to.
pub(crate) fn verdict(case: &Case<'_>, scope: Scope, findings: &[Finding]) -> Verdict {
    let not_measured = requirements::missing(case, findings);
    let clearance = clearance(findings, &not_measured);
    let latency_grade = latency_grade(case, findings, &not_measured);
    match scope {
        Scope::Path => Verdict {
            headline: headline::headline(case, clearance, findings, &not_measured),
            clearance: Some(clearance),
            latency_grade,
            not_measured,
            looked_for: Some(needs::looked_for(case, findings)),
        },
        // What was not to be measured is not missing.
        Scope::Part => Verdict {
            headline: headline::of_findings(findings),
            clearance: None,
            latency_grade,
            not_measured: Vec::new(),
            looked_for: None,
        },
    }
}

fn clearance(findings: &[Finding], not_measured: &[NotMeasured]) -> Clearance {
    let matters = |finding: &&Finding| finding.severity > Severity::Info || is_unexplained(finding);
    let mut matter = findings.iter().filter(matters);
    match matter.next() {
        None if not_measured.is_empty() => Clearance::Cleared,
        None => Clearance::NotMeasured,
        Some(worst) if [worst].into_iter().chain(matter).all(is_unexplained) => {
            Clearance::Unexplained
        }
        Some(_) => Clearance::Found,
    }
}

fn is_unexplained(finding: &Finding) -> bool {
    finding.cause == Cause::Unexplained
}

/// The worst grade of any load; none where something is unexplained, or latency under some load was
/// not measured or could be worse than it was. Nothing is worse than F.
fn latency_grade(
    case: &Case<'_>,
    findings: &[Finding],
    not_measured: &[NotMeasured],
) -> Option<Grade> {
    let loads = case.every_loaded().filter(|loaded| loaded.shows_queue());
    let worst = loads.filter_map(|loaded| loaded.result.grade).max()?;
    let unexplained = findings.iter().any(is_unexplained);
    let known = not_measured.is_empty() && !unexplained;
    (known || worst == Grade::F).then_some(worst)
}

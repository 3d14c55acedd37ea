//! What a Run comes to: the gate before every all-clear.
//!
//! An all-clear needs evidence of health, and not only no finding. Whatever is wrong and explained by no
//! finding becomes one, "unexplained" ([`signs`]); whatever an all-clear needs and was not measured
//! is named ([`requirements`]). What is left is cleared.

mod budget;
mod explained;
mod full;
mod headline;
#[cfg(test)]
mod recorded;
mod requirements;
mod shares;
mod signs;
#[cfg(test)]
mod tests;

use plumb_model::finding::{
    Actor, Cause, Clearance, Finding, Fix, NotMeasured, Place, Severity, Verdict,
};
use plumb_model::grade::Grade;
use plumb_model::results::Direction;

use crate::{Case, Scope};
use signs::Sign;

/// How sure it is that something is wrong where a sign is worth repairing, and where it may be chance.
const SURE: f64 = 0.9;
const PERHAPS: f64 = 0.5;

/// The findings, and one more where there are signs that none of them explains.
pub(crate) fn with_unexplained(case: &Case<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut left = signs::signs(case);
    left.retain(|sign| {
        !findings
            .iter()
            .any(|finding| explained::explains(finding, sign))
    });
    left.sort_by_key(|sign| std::cmp::Reverse(sign.severity));
    findings.extend(unexplained(left));
    findings
}

fn unexplained(signs: Vec<Sign>) -> Option<Finding> {
    let severity = signs.iter().map(|sign| sign.severity).max()?;
    let texts: Vec<_> = signs.iter().map(|sign| sign.text.as_str()).collect();
    let all_in = |direction| signs.iter().all(|sign| sign.direction == Some(direction));
    let place = if all_in(Direction::Up) {
        Place::Uplink
    } else if all_in(Direction::Down) {
        Place::Downlink
    } else {
        Place::Path
    };
    Some(Finding {
        cause: Cause::Unexplained,
        place,
        severity,
        confidence: match severity {
            Severity::Info => PERHAPS,
            _ => SURE,
        },
        matters_for: Vec::new(),
        summary: format!("Unexplained: {}.", texts.join("; ")),
        evidence: signs.into_iter().map(|sign| sign.evidence).collect(),
        fixes: vec![Fix {
            on: Actor::ThisHost,
            summary: "Narrow it down: `plumb host` reads the counters of this machine's link, `plumb path HOST --continuous` shows where packets are lost, `plumb rate HOST --udp --rate 1mbit` counts loss packet by packet in each direction.".to_owned(),
            action: None,
            commands: Vec::new(),
            expect: "One of them names the hop, the link or the host.".to_owned(),
        }],
        kb: "verdict".to_owned(),
    })
}

/// What the findings, worst first, and the measurements come to.
pub(crate) fn verdict(case: &Case<'_>, scope: Scope, findings: &[Finding]) -> Verdict {
    let not_measured = requirements::missing(case);
    let clearance = clearance(findings, &not_measured);
    let latency_grade = latency_grade(case, findings, &not_measured);
    match scope {
        Scope::Path => Verdict {
            headline: headline::headline(case, clearance, findings, &not_measured),
            clearance: Some(clearance),
            latency_grade,
            not_measured,
        },
        // What was not to be measured is not missing.
        Scope::Part => Verdict {
            headline: headline::of_findings(findings),
            clearance: None,
            latency_grade,
            not_measured: Vec::new(),
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
    let grades = case.every_loaded().filter_map(|loaded| loaded.result.grade);
    let worst = grades.max()?;
    let unexplained = findings.iter().any(is_unexplained);
    let known = not_measured.is_empty() && !unexplained;
    (known || worst == Grade::F).then_some(worst)
}

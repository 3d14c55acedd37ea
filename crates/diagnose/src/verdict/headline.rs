//! The one sentence that a check ends in.

use plumb_model::finding::{Cause, Clearance, Finding, NotMeasured, Severity, Verdict};
use plumb_model::goal::Effort;
use plumb_model::loss::at_most_ratio;
use plumb_model::order::sort_few;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use super::requirements::NO_LOAD;
use crate::Case;
use crate::signs::percent;

pub(crate) fn headline(
    case: &Case<'_>,
    clearance: Clearance,
    findings: &[Finding],
    not_measured: &[NotMeasured],
) -> String {
    match clearance {
        Clearance::Found => of_findings(findings),
        Clearance::Unexplained => unexplained(case, findings),
        Clearance::NotMeasured => not_judged(not_measured, is_quick(case)),
        Clearance::Cleared => cleared(case),
    }
}

fn is_quick(case: &Case<'_>) -> bool {
    case.asked
        .is_some_and(|asked| asked.effort == Effort::Quick)
}

/// What nothing explains. What is only worth knowing may be chance, and a quick check does not find out.
fn unexplained(case: &Case<'_>, findings: &[Finding]) -> String {
    let unexplained = findings
        .iter()
        .filter(|finding| finding.cause == Cause::Unexplained);
    let summary = of_findings(unexplained.clone());
    let small = unexplained
        .into_iter()
        .all(|finding| finding.severity == Severity::Info);
    match small && is_quick(case) {
        true => format!("Inconclusive. {summary}"),
        false => summary,
    }
}

/// Says why there was no load.
pub fn without_load(verdict: &mut Verdict, why: &str) {
    verdict.headline = verdict.headline.replace(NO_LOAD, why);
    let without = |one: &&mut NotMeasured| one.why == NO_LOAD;
    for one in verdict.not_measured.iter_mut().filter(without) {
        one.why = why.to_owned();
    }
}

/// Says why nothing under load was measured of a far end that answers, where that is all there is to say.
pub fn without_responder(verdict: &mut Verdict, name: &str) {
    without_load(verdict, "there is no responder at the far end");
    if verdict.clearance == Some(Clearance::NotMeasured) {
        verdict.headline = format!(
            "Not measured: rates and latency under load, because there is no responder at the far end; {name} answers."
        );
    }
}

/// From here on, a finding is sure enough to be the answer: below it something else is more than twice as likely.
const SETTLED: f64 = 0.3;

/// How many causes are named where none is settled.
const MOST_CANDIDATES: usize = 3;

/// The first finding, in its own words; where it is not sure enough, the next that is and matters, and where there is none,
/// the causes that may be it.
pub(crate) fn of_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    let findings: Vec<&Finding> = findings.into_iter().collect();
    let Some((first, others)) = findings.split_first() else {
        return String::new();
    };
    if first.confidence >= SETTLED {
        return first.summary.clone();
    }
    let matters = |finding: &&&Finding| finding.severity >= first.severity.min(Severity::Warning);
    let others = others.iter().filter(matters);
    let mut candidates: Vec<&Finding> = [first].into_iter().chain(others).copied().collect();
    if let Some(settled) = candidates
        .iter()
        .find(|finding| finding.confidence >= SETTLED)
    {
        return format!("{} It may also be: {}.", settled.summary, named(&[first]));
    }
    sort_few(&mut candidates, |a, b| {
        b.confidence.total_cmp(&a.confidence)
    });
    candidates.truncate(MOST_CANDIDATES);
    match candidates.as_slice() {
        [only] => format!(
            "Something is wrong, and its cause is not settled. It may be {}.",
            named(&[*only])
        ),
        several => format!(
            "Something is wrong, and its cause is not settled. Candidates: {}.",
            named(several)
        ),
    }
}

/// Causes with their places and how sure each is.
fn named(findings: &[&Finding]) -> String {
    let each = findings.iter().map(|finding| {
        format!(
            "{} ({}, {:.0} % sure)",
            finding.cause,
            finding.place,
            finding.confidence * 100.0
        )
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What the first reason keeps from being known, and the option that helps.
fn not_judged(not_measured: &[NotMeasured], quick: bool) -> String {
    let Some((first, others)) = not_measured.split_first() else {
        return String::new();
    };
    let more = match others {
        [] => String::new(),
        _ => format!(" Not measured either: {}.", NotMeasured::names(others)),
    };
    let helps = first
        .option
        .as_ref()
        .map_or_else(String::new, |option| format!(" {option} would measure it."));
    let begins = match quick {
        true => "Inconclusive: no fault was found in what was measured. Not measured:",
        false => "Not measured:",
    };
    format!(
        "{begins} {}, because {}.{helps}{more}",
        first.what, first.why
    )
}

fn cleared(case: &Case<'_>) -> String {
    let rate = |direction| {
        let carried = case.carried_alone(direction);
        carried.map_or_else(String::new, |carried| si(carried.bps(), "bit/s"))
    };
    let increases = case
        .every_loaded()
        .map(|loaded| loaded.result.increase_s.p95);
    let lost = case
        .idle()
        .map_or(1.0, |idle| at_most_ratio(idle.sent(), 0));
    format!(
        "No fault found: {} down and {} up, round trips grow by at most {} under load, no probe of the idle path was lost (below {}).",
        rate(Direction::Down),
        rate(Direction::Up),
        human_seconds(increases.fold(0.0, f64::max)),
        percent(lost)
    )
}

#[cfg(test)]
mod tests {
    use plumb_model::finding::Place;

    use super::*;

    fn finding(cause: Cause, severity: Severity, confidence: f64) -> Finding {
        Finding {
            cause,
            place: Place::Uplink,
            severity,
            confidence,
            matters_for: Vec::new(),
            summary: format!("It is {cause}."),
            evidence: Vec::new(),
            fixes: Vec::new(),
            kb: String::new(),
        }
    }

    #[test]
    fn all_that_was_not_measured_is_named() {
        let missing = |what: &str| NotMeasured {
            what: what.to_owned(),
            why: format!("{what} takes longer"),
            option: None,
        };
        let all = ["latency", "loss", "rates"].map(missing);
        assert_eq!(
            not_judged(&all, false),
            "Not measured: latency, because latency takes longer. Not measured either: loss, rates."
        );
        let [first, ..] = all;
        assert_eq!(
            not_judged(&[first], false),
            "Not measured: latency, because latency takes longer."
        );
    }

    #[test]
    fn what_is_hardly_sure_is_a_candidate_and_no_answer() {
        let unsure = finding(Cause::Policer, Severity::Critical, 0.2);
        let other = finding(Cause::ShallowQueue, Severity::Warning, 0.25);
        let sure = finding(Cause::PathLoss, Severity::Warning, 0.9);
        let info = finding(Cause::PortSpeed, Severity::Info, 0.9);
        assert_eq!(
            of_findings([&unsure, &other, &info]),
            "Something is wrong, and its cause is not settled. Candidates: shallow-queue (uplink, 25 % sure), policer (uplink, 20 % sure)."
        );
        assert_eq!(
            of_findings([&unsure, &info]),
            "Something is wrong, and its cause is not settled. It may be policer (uplink, 20 % sure)."
        );
        assert_eq!(
            of_findings([&unsure, &sure]),
            "It is path-loss. It may also be: policer (uplink, 20 % sure)."
        );
        assert_eq!(of_findings([&sure, &unsure]), "It is path-loss.");
        assert_eq!(of_findings([]), "");
    }
}

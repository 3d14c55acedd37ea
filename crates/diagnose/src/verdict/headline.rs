//! The one sentence that a check ends in.

use plumb_model::finding::{Cause, Clearance, Finding, NotMeasured, Severity, Verdict};
use plumb_model::goal::Effort;
use plumb_model::loss::at_most_ratio;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

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
        true => format!("Not settled. {summary}"),
        false => summary,
    }
}

/// Says why nothing under load was measured of a far end that answers, where that is all there is to say.
pub fn without_responder(verdict: &mut Verdict, name: &str) {
    if verdict.clearance == Some(Clearance::NotMeasured) {
        verdict.headline = format!(
            "Not measured: rates and latency under load, because there is no responder at the far end; {name} answers."
        );
    }
}

/// The first finding, in its own words.
pub(crate) fn of_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    let first = findings.into_iter().next();
    first.map_or_else(String::new, |first| first.summary.clone())
}

/// What the first reason keeps from being known, and the option that helps.
fn not_judged(not_measured: &[NotMeasured], quick: bool) -> String {
    let Some((first, others)) = not_measured.split_first() else {
        return String::new();
    };
    let more = match others {
        [] => "",
        _ => " And more, see below.",
    };
    let helps = first
        .option
        .as_ref()
        .map_or_else(String::new, |option| format!(" {option} would measure it."));
    let begins = match quick {
        true => "Not settled: nothing wrong was seen, but not measured were",
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

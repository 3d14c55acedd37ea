//! Holding a Run against what the laboratory knows to be true.
//!
//! One pure function: a scenario, a Run made in it and the statistics of its links go in,
//! deviations come out.

mod measured;
mod probes;
mod recorded;
#[cfg(test)]
mod tests;
mod verdict;

use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::run::Run;

pub use self::verdict::{Deviation, Verdict};
use crate::scenario::{Scenario, Truth};
use crate::stats::LabStats;

/// Holds a Run, and what the links recorded, against the truth of its scenario.
pub fn verdict(scenario: &Scenario, run: &Run, stats: &LabStats) -> Verdict {
    let mut verdict = Verdict::default();
    findings(&scenario.truth, run, &mut verdict);
    for expected in &scenario.truth.values {
        verdict.take(&expected.what, measured::check(expected, run, stats));
    }
    let recorded = recorded(scenario, stats);
    verdict.holds.extend(recorded.holds);
    verdict.deviations.extend(recorded.deviations);
    match probes::check(run, stats) {
        Ok(None) => {}
        Ok(Some(probes)) => verdict.holds.push(format!(
            "{probes} probes: those answered took as long as the links recorded, and the others are lost where one lost them"
        )),
        Err(deviations) => verdict.deviations.extend(deviations),
    }
    verdict
}

/// Everything in which a Run departs from the truth of its scenario.
pub fn truth(scenario: &Scenario, run: &Run, stats: &LabStats) -> Vec<Deviation> {
    verdict(scenario, run, stats).deviations
}

/// Holds what the links recorded against the truth of their scenario, for commands that make no Run.
pub fn recorded(scenario: &Scenario, stats: &LabStats) -> Verdict {
    let mut verdict = Verdict::default();
    for expected in &scenario.truth.links {
        verdict.take(&expected.what, recorded::check(expected, stats));
    }
    verdict
}

/// Causes in processors and clocks. All nodes of a laboratory share the processors and clocks of the machine below it,
/// and no link of a scenario changes them.
const OF_THE_MACHINE: [Cause; 5] = [
    Cause::ClockSourceSlow,
    Cause::CpuQuota,
    Cause::PowerSaving,
    Cause::ProcessorBusy,
    Cause::VmSteal,
];

/// Whether a finding is about the machine below a laboratory: every Run may rightly report it, and it blames nothing on the
/// path.
pub fn is_about_the_machine(finding: &Finding) -> bool {
    let of_a_host = [Place::ThisHost, Place::FarHost].contains(&finding.place);
    of_a_host && OF_THE_MACHINE.contains(&finding.cause)
}

fn findings(truth: &Truth, run: &Run, verdict: &mut Verdict) {
    let named = |cause: Cause| {
        let mut expected = truth.findings.iter().chain(&truth.no_findings);
        truth.first_finding == Some(cause) || expected.any(|expected| *expected == cause)
    };
    let found = run.findings.iter();
    let found: Vec<&Finding> = found
        .filter(|f| named(f.cause) || !is_about_the_machine(f))
        .collect();
    let mut expect = |holds: bool, what: String| {
        if holds {
            verdict.holds.push(what);
        } else {
            let there: Vec<String> = found
                .iter()
                .map(|f| {
                    format!(
                        "{} at {} ({})",
                        f.cause.name(),
                        f.place.name(),
                        f.severity.name()
                    )
                })
                .collect();
            verdict.deviations.push(Deviation {
                what,
                found: format!("findings are [{}]", there.join(", ")),
            });
        }
    };
    let first = found.first();
    if let Some(cause) = truth.first_finding {
        expect(
            first.is_some_and(|f| f.cause == cause),
            format!("the first finding is {}", cause.name()),
        );
    }
    if let Some(place) = truth.first_finding_where {
        expect(
            first.is_some_and(|f| f.place == place),
            format!("the first finding is at {}", place.name()),
        );
    }
    for cause in &truth.findings {
        expect(
            found.iter().any(|f| f.cause == *cause),
            format!("{} is found", cause.name()),
        );
    }
    for cause in &truth.no_findings {
        expect(
            found.iter().all(|f| f.cause != *cause),
            format!("{} is not found", cause.name()),
        );
    }
    if let Some(most) = truth.max_severity {
        expect(
            found.iter().all(|f| f.severity <= most),
            format!("no finding is worse than {}", most.name()),
        );
    }
}

//! The one sentence that a check ends in.

use plumb_model::finding::{Finding, Severity, Verdict};
use plumb_model::grade::Grade;
use plumb_model::results::{Direction, Outcome};
use plumb_model::units::{human_seconds, si};

use crate::Case;

pub(crate) fn verdict(case: &Case<'_>, findings: &[Finding]) -> Verdict {
    let grades = case.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::LoadedLatency(result) => Some(result.grade),
        _ => None,
    });
    // A phase that lost too many probes for a grade, or all, may be worse than every other, except
    // where nothing is worse.
    let unanswered = [Direction::Up, Direction::Down]
        .into_iter()
        .any(|direction| {
            case.throughput_alone(direction).is_some() && case.loaded_latency(direction).is_none()
        });
    let ungraded = unanswered || grades.clone().any(|grade| grade.is_none());
    let grade = grades
        .flatten()
        .max()
        .filter(|worst| !ungraded || *worst == Grade::F);
    let headline = match findings.first() {
        Some(worst) if worst.severity > Severity::Info => worst.summary.clone(),
        _ => healthy(case, grade),
    };
    Verdict { headline, grade }
}

fn healthy(case: &Case<'_>, grade: Option<Grade>) -> String {
    let rate = |direction| {
        case.throughput_alone(direction)
            .map(|(_, t)| si(t.steady_bps.unwrap_or(t.bps), "bit/s"))
    };
    let both_told = [Direction::Up, Direction::Down]
        .into_iter()
        .all(|direction| case.loaded_latency(direction).is_some());
    if !both_told {
        return "Nothing was found that holds this path back, as far as it could be measured: see the notes.".to_owned();
    }
    let worst_increase = case
        .measurements
        .iter()
        .filter_map(|m| match &m.outcome {
            Outcome::LoadedLatency(result) => Some(result.increase_s.p95),
            _ => None,
        })
        .reduce(f64::max);
    match (
        rate(Direction::Down),
        rate(Direction::Up),
        worst_increase,
        grade,
    ) {
        (Some(down), Some(up), Some(increase), Some(grade)) => format!(
            "Nothing holds this path back: {down} down, {up} up, and round trips grow by no more than {} under load (grade {}).",
            human_seconds(increase),
            grade.name()
        ),
        _ => "Nothing was found that holds this path back, as far as it could be measured."
            .to_owned(),
    }
}

//! What several Runs of one path have found: in how many of them, and what is gone, new or was not measured again since when.

use plumb_diagnose::is_measured_again;
use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::run::Run;

use crate::heading;

/// How many Runs there are and of when, then a sentence for each finding of any of them, the latest first; nothing of a Run
/// alone. The Runs are in the order of time, each judged by itself.
pub fn history(runs: &[Run]) -> Vec<String> {
    let [first, .., last] = runs else {
        return Vec::new();
    };
    let count = runs.len();
    // What follows is of the newest check.
    let latest = match runs.iter().rev().find(|run| run.asked.is_some()) {
        Some(check) => format!(
            "Below is the check of {}.",
            heading::started(&check.started)
        ),
        None => format!(
            "The latest: {}",
            last.verdict
                .as_ref()
                .map_or("it has no verdict.", |verdict| verdict.headline.as_str())
        ),
    };
    let mut sentences = vec![format!(
        "{count} Runs, {} to {}. {latest}",
        heading::started(&first.started),
        heading::started(&last.started),
    )];
    let mut seen: Vec<(Cause, Place)> = Vec::new();
    for (at, run) in runs.iter().enumerate().rev() {
        let worth = |finding: &&Finding| finding.severity > Severity::Info;
        for finding in run.findings.iter().filter(worth) {
            let key = (finding.cause, finding.place);
            if !seen.contains(&key) {
                seen.push(key);
                sentences.push(of_finding(runs, at, finding));
            }
        }
    }
    sentences
}

/// In how many Runs a finding is, of which the one at `at` is the latest.
fn of_finding(runs: &[Run], at: usize, finding: &Finding) -> String {
    let has = |run: &Run| {
        let mut findings = run.findings.iter();
        findings.any(|other| (other.cause, other.place) == (finding.cause, finding.place))
    };
    let name = format!("{} ({})", finding.cause.name(), finding.place.name());
    let count = runs.iter().filter(|run| has(run)).count();
    if count == runs.len() {
        return format!("{name}: in all {count}.");
    }
    let found = format!("{name}: in {count} of {}", runs.len());
    let mut later = runs.iter().skip(at + 1);
    let again = runs.get(at).and_then(|latest| {
        later
            .clone()
            .find(|run| is_measured_again(finding, latest, run))
    });
    match (again, later.next()) {
        (Some(run), _) => format!("{found}, gone since {}.", heading::started(&run.started)),
        (None, Some(run)) => format!(
            "{found}, not measured again since {}.",
            heading::started(&run.started)
        ),
        (None, None) => match runs.iter().find(|run| has(run)) {
            Some(first) => format!("{found}, first seen {}.", heading::started(&first.started)),
            None => format!("{found}."),
        },
    }
}

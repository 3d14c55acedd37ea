//! Which causes are excluded and by what, which remain, and which were not looked for.

use plumb_diagnose::causes::entry;
use plumb_model::finding::{Cause, Severity};
use plumb_model::need::Need;
use plumb_model::run::Run;
use plumb_model::vocabulary::Vocabulary as _;
use serde::Serialize;

use crate::{heading, number};

/// Causes that were looked for and are not there.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Excluded {
    /// What was measured, by which they would have been found.
    pub(crate) by: String,
    pub(crate) causes: Vec<&'static str>,
}

/// A cause that was found.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Remaining {
    pub(crate) severity: &'static str,
    pub(crate) cause: &'static str,
    pub(crate) place: String,
    pub(crate) sure: String,
    /// The measurements that it rests on, as the Run names them.
    pub(crate) rests_on: String,
    /// What would prove it, and what looks like it, a sentence each.
    pub(crate) doubts: Vec<String>,
}

/// By what was measured, in the order of the causes.
pub(super) fn excluded(run: &Run) -> Vec<Excluded> {
    let looked = run.verdict.as_ref().and_then(|v| v.looked_for.as_ref());
    let mut groups: Vec<(&[Need], Vec<&'static str>)> = Vec::new();
    for cause in looked.iter().flat_map(|looked| &looked.absent) {
        let needs = entry(*cause).needs;
        match groups.iter_mut().find(|(known, _)| *known == needs) {
            Some((_, causes)) => causes.push(cause.name()),
            None => groups.push((needs, vec![cause.name()])),
        }
    }
    let groups = groups.into_iter().map(|(needs, causes)| Excluded {
        by: words(needs),
        causes,
    });
    groups.collect()
}

/// What causes need, as a clause.
fn words(needs: &[Need]) -> String {
    let each = needs.iter().map(|need| within(need.meaning()));
    match needs.is_empty() {
        true => "all that was measured".to_owned(),
        false => each.collect::<Vec<_>>().join("; "),
    }
}

/// A clause in the middle of a sentence.
fn within(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// What was found, the worst first; what is only worth knowing remains too, but is reported without doubts.
pub(super) fn remaining(run: &Run) -> Vec<Remaining> {
    let looked = run.verdict.as_ref().and_then(|v| v.looked_for.as_ref());
    let is_absent = |cause: &Cause| looked.is_some_and(|looked| looked.absent.contains(cause));
    let found = run.findings.iter().map(|finding| {
        let entry = entry(finding.cause);
        let mut doubts = Vec::new();
        if finding.severity > Severity::Info && finding.cause != Cause::Unexplained {
            doubts.push(format!("Proven if {}.", entry.vanishes));
            doubts.extend(entry.resembles.iter().map(|(other, difference)| {
                match is_absent(other) {
                    true => format!("Looks like {other}, which is excluded."),
                    false => format!("Looks like {other}: {difference}."),
                }
            }));
        }
        let mut rests_on: Vec<&str> = Vec::new();
        for evidence in &finding.evidence {
            if !rests_on.contains(&evidence.measurement.as_str()) {
                rests_on.push(&evidence.measurement);
            }
        }
        Remaining {
            severity: finding.severity.name(),
            cause: finding.cause.name(),
            place: finding.place.name().replace('-', " "),
            sure: number::percent(finding.confidence),
            rests_on: rests_on.join(", "),
            doubts,
        }
    });
    found.collect()
}

/// What was not measured or not looked for.
pub(super) fn open(run: &Run) -> Vec<String> {
    let Some(verdict) = &run.verdict else {
        return vec!["No verdict was made of this Run: plumb diagnose judges it.".to_owned()];
    };
    let mut open = heading::not_measured(run);
    let not = verdict.looked_for.iter().flat_map(|looked| &looked.not);
    open.extend(not.map(|not| {
        let causes: Vec<&str> = not.causes.iter().map(|cause| cause.name()).collect();
        let need = within(not.need.meaning());
        format!("Not looked for: {}. It needs {need}.", causes.join(", "))
    }));
    open
}

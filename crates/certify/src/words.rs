//! What plumb said of a line, and whether it is right, in words.

use crate::judge::{Judgement, Said, judge};
use crate::library::{Expect, Library};
use crate::results::Line;
use crate::trials::Trial;

/// Judges what was said of a trial's line.
pub(crate) fn judged(library: &Library, trial: &Trial, said: &Said) -> Judgement {
    judge(
        trial.role,
        &expected(library, trial),
        &library.ambiguous,
        said,
    )
}

/// What must be made of a trial's line, by each of its changes.
pub(crate) fn expected<'a>(library: &'a Library, trial: &Trial) -> Vec<&'a Expect> {
    let changes = trial.changes.iter();
    let expected = changes.filter_map(|name| Some(&library.changes.get(name)?.1.expect));
    expected.collect()
}

/// One line for people: right or not, what was expected and what was said.
pub(crate) fn in_words(library: &Library, line: &Line) -> String {
    let Some(checked) = &line.checked else {
        return format!("failed: {}", line.failed.as_deref().unwrap_or_default());
    };
    let judgement = judged(library, &line.trial, &checked.said);
    let place = match judgement.place {
        Some(false) => ", in the wrong place",
        _ => "",
    };
    let overrun = match checked.lab.overrun {
        true => " (the machine was late: it does not count)",
        false => "",
    };
    let wanted = expected(library, &line.trial)
        .into_iter()
        .map(|expect| match &expect.first[..] {
            [] => "nothing".to_owned(),
            first => first.join(" or "),
        });
    let wanted: Vec<String> = wanted.collect();
    format!(
        "{}{place}{overrun}: expected {}; {}",
        judgement.outcome.words(),
        wanted.join(" and "),
        findings(&checked.said)
    )
}

/// The findings in one line.
pub(crate) fn findings(said: &Said) -> String {
    let each = said.findings.iter().map(|finding| {
        format!(
            "{} ({}, {}, {:.0} %)",
            finding.cause,
            finding.place,
            finding.severity,
            finding.confidence * 100.0
        )
    });
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => said.clearance.clone(),
        false => format!("{}: {}", said.clearance, each.join(", ")),
    }
}

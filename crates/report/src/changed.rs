//! What changed between a good and a bad Run of one path, for people.

use plumb_diagnose::since_good::{Standing, Suspect, suspects};
use plumb_model::finding::Severity;
use plumb_model::run::Run;

use crate::compare::{Comparison, compare};
use crate::map::Map;
use crate::registry::shown;
use crate::{ends, heading, number};

/// What a good and a bad Run come to together, in sentences by their head.
#[derive(Debug)]
pub struct Changed {
    pub(crate) comparison: Comparison,
    /// What it comes to.
    pub headline: String,
    /// What the change speaks for.
    pub(crate) speaks_for: Vec<String>,
    /// What may have been there, what was there, and what is gone.
    pub(crate) others: Vec<String>,
    /// Settings, versions and routers that are not the same.
    pub(crate) facts: Vec<String>,
    /// What must be known of the two before anything is concluded.
    pub(crate) warnings: Vec<String>,
}

/// What changed from a good Run to a bad one.
pub fn changed(good: &Run, bad: &Run) -> Changed {
    let comparison = compare(good, bad);
    let suspects = suspects(good, bad);
    let of = |standing| {
        let all = suspects.iter();
        all.filter(move |suspect| suspect.standing == standing)
    };
    let speaks_for: Vec<String> = of(Standing::New)
        .chain(of(Standing::Worse))
        .filter(|suspect| suspect.finding.severity > Severity::Info)
        .map(sentence)
        .collect();
    let open = of(Standing::NotLookedFor).map(sentence);
    let others = open
        .chain(of(Standing::AsBefore).map(sentence))
        .chain(
            comparison
                .findings
                .gone
                .iter()
                .map(|gone| format!("{} ({}): only in the good Run.", gone.cause, gone.place)),
        )
        .chain(comparison.findings.unmeasured.iter().map(|gone| {
            format!(
                "{} ({}): in the good Run; the bad one did not measure it again.",
                gone.cause, gone.place
            )
        }))
        .collect();
    let facts = facts(good, bad);
    Changed {
        headline: headline(&suspects, &comparison, &facts),
        speaks_for,
        others,
        facts,
        warnings: warnings(good, bad, &comparison),
        comparison,
    }
}

fn sentence(suspect: &Suspect<'_>) -> String {
    let finding = suspect.finding;
    let was = match suspect.standing {
        Standing::New => "It was looked for in the good Run, and was not there.",
        Standing::Worse => "It was there in the good Run, and less bad.",
        Standing::NotLookedFor => "It was not looked for in the good Run, and may have been there.",
        Standing::AsBefore => "It was there in the good Run too: it does not explain the change.",
    };
    format!(
        "{} ({}, {}, {} sure): {} {was}",
        finding.cause,
        finding.severity,
        finding.place,
        number::percent(finding.confidence),
        finding.summary
    )
}

fn headline(suspects: &[Suspect<'_>], comparison: &Comparison, facts: &[String]) -> String {
    let matters = |suspect: &&Suspect<'_>| suspect.finding.severity > Severity::Info;
    let first = suspects.iter().find(matters);
    let worse = comparison.rows.iter().any(|row| row.better == Some(false));
    match first.map(|first| (first.standing, first.finding)) {
        Some((Standing::New | Standing::Worse, finding)) => format!(
            "What changed speaks for {} ({}), {} sure.",
            finding.cause,
            finding.place,
            number::percent(finding.confidence)
        ),
        Some((Standing::NotLookedFor, finding)) => format!(
            "Inconclusive: {} ({}) was found, and the good Run did not look for it.",
            finding.cause, finding.place
        ),
        Some((Standing::AsBefore, _)) if worse => {
            "Numbers are worse, and no finding is: what was found was there when all was well."
                .to_owned()
        }
        None if worse => "Numbers are worse, and no cause was found that explains it.".to_owned(),
        _ if !facts.is_empty() => {
            "No number is worse; settings or routers are not the same.".to_owned()
        }
        _ => "Nothing is worse than in the good Run.".to_owned(),
    }
}

/// What is set or stands otherwise, a sentence each.
fn facts(good: &Run, bad: &Run) -> Vec<String> {
    let (before, after) = (ends::table(good), ends::table(bad));
    let mut facts = Vec::new();
    for row in &after.rows {
        let [name, is @ ..] = row.cells.as_slice() else {
            continue;
        };
        let was = before
            .rows
            .iter()
            .find(|row| row.cells.first() == Some(name));
        let was = was.and_then(|row| row.cells.get(1..)).unwrap_or_default();
        let whose = ["this host", "the far host"];
        for ((is, was), whose) in is.iter().zip(was).zip(whose) {
            let known = ![is, was].contains(&&number::ABSENT.to_owned());
            if is != was && known {
                facts.push(format!(
                    "{name} of {whose}: {was} in the good Run, {is} in the bad one."
                ));
            }
        }
    }
    let [was, is] = [good, bad].map(|run| {
        let mut map = Map::default();
        let all = run.measurements.iter();
        all.for_each(|measurement| shown(measurement).on_map(&mut map));
        map
    });
    for (ttl, hop) in is.hops() {
        let mut before = was.hops().filter(|(other, _)| *other == ttl);
        let before = before.next().and_then(|(_, hop)| hop.name.as_ref());
        if let (Some(was), Some(is)) = (before, &hop.name)
            && was != is
        {
            facts.push(format!(
                "Hop {ttl}: {was} in the good Run, {is} in the bad one."
            ));
        }
    }
    let new = |what: &str, was: &[String], is: &[String]| {
        let (was, is) = (was.join("; "), is.join("; "));
        let known = !was.is_empty() && !is.is_empty() && was != is;
        known.then(|| format!("{what}: {was} in the good Run, {is} in the bad one."))
    };
    // Of the link what it is, and not what was measured on it.
    let link = |facts: &[String]| -> Vec<String> {
        let set = facts.iter().filter(|fact| fact.contains("MTU "));
        set.cloned().collect()
    };
    facts.extend(new("Link", &link(&was.link), &link(&is.link)));
    facts.extend(new("Largest packets", &was.whole, &is.whole));
    facts
}

/// In what they are not two times of one path, measured alike.
fn warnings(good: &Run, bad: &Run, comparison: &Comparison) -> Vec<String> {
    let mut warnings = Vec::new();
    let address = |run: &Run| {
        run.target
            .as_ref()
            .and_then(|target| target.address.clone())
    };
    if let (Some(was), Some(is)) = (address(good), address(bad))
        && was != is
    {
        warnings.push(format!(
            "The far end had the address {was} in the good Run and {is} in the bad one: it may be another machine."
        ));
    }
    let started = |run: &Run| run.started.parse::<jiff::Timestamp>().ok();
    match (started(good), started(bad)) {
        (Some(was), Some(is)) if was > is => warnings.push(format!(
            "The good Run was made after the bad one ({}): what is called new here is gone by now.",
            heading::started(&good.started)
        )),
        (Some(_), Some(_)) => {}
        _ => warnings.push(
            "When one of the Runs was made is unknown, and so is which came first.".to_owned(),
        ),
    }
    warnings.extend(comparison.notes.iter().cloned());
    warnings
}

impl Changed {
    /// All of it as notes of the bad Run.
    pub fn notes(&self) -> Vec<String> {
        let each = |head: &str, all: &[String]| -> Vec<String> {
            all.iter().map(|one| format!("{head}: {one}")).collect()
        };
        let mut notes = vec![format!("Since the good Run: {}", self.headline)];
        notes.extend(each("The change speaks for", &self.speaks_for));
        notes.extend(each("Beside it", &self.others));
        notes.extend(each("Not the same", &self.facts));
        notes.extend(each("Before you conclude", &self.warnings));
        notes
    }
}

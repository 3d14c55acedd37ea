//! What is not the same in two Runs of one path, of two times or of two hosts, for people.

use plumb_diagnose::since_good::{Standing, Suspect, suspects};
use plumb_model::finding::Severity;
use plumb_model::run::Run;

use crate::compare::{Comparison, compare_as};
use crate::map::Map;
use crate::registry::shown;
use crate::{ends, heading, number};

/// Runs of two hosts further apart than this are not of one time: the load of a path changes within the hour.
const SAME_TIME: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// What the other Run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// Of the same host, from when all was well.
    Good,
    /// Of a host like this one, which measured the same path.
    Similar,
}

/// How the two Runs are called.
#[derive(Debug)]
pub(crate) struct Words {
    /// Where a value was, and is.
    was: &'static str,
    is: &'static str,
    new: &'static str,
    worse: &'static str,
    not_looked_for: &'static str,
    as_before: &'static str,
    gone: &'static str,
    unmeasured: &'static str,
    /// What the difference speaks for, as a heading and before a cause.
    pub(crate) title: &'static str,
    speaks_for: &'static str,
    other_run: &'static str,
    numbers_are_worse: &'static str,
    nothing_is_worse: &'static str,
    note: &'static str,
}

const GOOD: Words = Words {
    was: "in the good Run",
    is: "in the bad one",
    new: "It was looked for in the good Run, and was not there.",
    worse: "It was there in the good Run, and less bad.",
    not_looked_for: "It was not looked for in the good Run, and may have been there.",
    as_before: "It was there in the good Run too: it does not explain the change.",
    gone: "only in the good Run.",
    unmeasured: "in the good Run; the bad one did not measure it again.",
    title: "What the change speaks for",
    speaks_for: "What changed speaks for",
    other_run: "the good Run",
    numbers_are_worse: "Numbers are worse, and no finding is: what was found was there when all was well.",
    nothing_is_worse: "Nothing is worse than in the good Run.",
    note: "Since the good Run",
};

const SIMILAR: Words = Words {
    was: "on the other host",
    is: "on this host",
    new: "It was looked for on the other host, and is not there.",
    worse: "It is there on the other host, and less bad.",
    not_looked_for: "It was not looked for on the other host, and may be there.",
    as_before: "The other host has it too: it is of what both share.",
    gone: "only on the other host.",
    unmeasured: "on the other host; it was not measured here.",
    title: "What this host alone has",
    speaks_for: "What differs between the two hosts speaks for",
    other_run: "the other host's Run",
    numbers_are_worse: "Numbers are worse here, and no finding is: what was found is on both hosts, so it is of what they share.",
    nothing_is_worse: "Nothing is worse than on the other host.",
    note: "Beside the other host",
};

impl Other {
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::Good => &GOOD,
            Self::Similar => &SIMILAR,
        }
    }
}

/// What two Runs come to together, in sentences by their head.
#[derive(Debug)]
pub struct Changed {
    pub(crate) words: &'static Words,
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

/// What is not the same in a Run and another one, which is better.
pub fn changed(other: Other, good: &Run, bad: &Run) -> Changed {
    let words = other.words();
    let comparison = compare_as([words.was, words.is], good, bad);
    let suspects = suspects(good, bad);
    let of = |standing| {
        let all = suspects.iter();
        all.filter(move |suspect| suspect.standing == standing)
    };
    let speaks_for: Vec<String> = of(Standing::New)
        .chain(of(Standing::Worse))
        .filter(|suspect| suspect.finding.severity > Severity::Info)
        .map(|suspect| sentence(words, suspect))
        .collect();
    let open = of(Standing::NotLookedFor).map(|suspect| sentence(words, suspect));
    let others = open
        .chain(of(Standing::AsBefore).map(|suspect| sentence(words, suspect)))
        .chain(
            comparison
                .findings
                .gone
                .iter()
                .map(|gone| format!("{} ({}): {}", gone.cause, gone.place, words.gone)),
        )
        .chain(
            comparison
                .findings
                .unmeasured
                .iter()
                .map(|gone| format!("{} ({}): {}", gone.cause, gone.place, words.unmeasured)),
        )
        .collect();
    let facts = facts(words, good, bad);
    Changed {
        words,
        headline: headline(words, &suspects, &comparison, &facts),
        speaks_for,
        others,
        facts,
        warnings: warnings(other, good, bad, &comparison),
        comparison,
    }
}

fn sentence(words: &Words, suspect: &Suspect<'_>) -> String {
    let finding = suspect.finding;
    let was = match suspect.standing {
        Standing::New => words.new,
        Standing::Worse => words.worse,
        Standing::NotLookedFor => words.not_looked_for,
        Standing::AsBefore => words.as_before,
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

fn headline(
    words: &Words,
    suspects: &[Suspect<'_>],
    comparison: &Comparison,
    facts: &[String],
) -> String {
    let matters = |suspect: &&Suspect<'_>| suspect.finding.severity > Severity::Info;
    let first = suspects.iter().find(matters);
    let worse = comparison.rows.iter().any(|row| row.better == Some(false));
    match first.map(|first| (first.standing, first.finding)) {
        Some((Standing::New | Standing::Worse, finding)) => format!(
            "{} {} ({}), {} sure.",
            words.speaks_for,
            finding.cause,
            finding.place,
            number::percent(finding.confidence)
        ),
        Some((Standing::NotLookedFor, finding)) => format!(
            "Inconclusive: {} ({}) was found, and {} did not look for it.",
            finding.cause, finding.place, words.other_run
        ),
        Some((Standing::AsBefore, _)) if worse => words.numbers_are_worse.to_owned(),
        None if worse => "Numbers are worse, and no cause was found that explains it.".to_owned(),
        _ if !facts.is_empty() => {
            "No number is worse; settings or routers are not the same.".to_owned()
        }
        _ => words.nothing_is_worse.to_owned(),
    }
}

/// What is set or stands otherwise, a sentence each.
fn facts(words: &Words, good: &Run, bad: &Run) -> Vec<String> {
    let Words {
        was: before_at,
        is: now_at,
        ..
    } = words;
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
                    "{name} of {whose}: {was} {before_at}, {is} {now_at}."
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
            facts.push(format!("Hop {ttl}: {was} {before_at}, {is} {now_at}."));
        }
    }
    let new = |what: &str, was: &[String], is: &[String]| {
        let (was, is) = (was.join("; "), is.join("; "));
        let known = !was.is_empty() && !is.is_empty() && was != is;
        known.then(|| format!("{what}: {was} {before_at}, {is} {now_at}."))
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

/// In what they are not two of one path, measured alike.
fn warnings(other: Other, good: &Run, bad: &Run, comparison: &Comparison) -> Vec<String> {
    let words = other.words();
    let mut warnings = Vec::new();
    let address = |run: &Run| {
        run.target
            .as_ref()
            .and_then(|target| target.address.clone())
    };
    if let (Some(was), Some(is)) = (address(good), address(bad))
        && was != is
    {
        let Words {
            was: before_at,
            is: now_at,
            ..
        } = words;
        warnings.push(format!(
            "The far end had the address {was} {before_at} and {is} {now_at}: it may be another machine."
        ));
    }
    let started = |run: &Run| run.started.parse::<jiff::Timestamp>().ok();
    match (other, started(good), started(bad)) {
        (Other::Good, Some(was), Some(is)) if was > is => warnings.push(format!(
            "The good Run was made after the bad one ({}): what is called new here is gone by now.",
            heading::started(&good.started)
        )),
        (Other::Similar, Some(was), Some(is)) if was.duration_since(is).abs() > SAME_TIME => warnings.push(format!(
            "The other host's Run was made at another time ({}): what both share may have been otherwise then.",
            heading::started(&good.started)
        )),
        (_, Some(_), Some(_)) => {}
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
        let Words { note, title, .. } = self.words;
        let mut notes = vec![format!("{note}: {}", self.headline)];
        notes.extend(each(title, &self.speaks_for));
        notes.extend(each("Beside it", &self.others));
        notes.extend(each("Not the same", &self.facts));
        notes.extend(each("Before you conclude", &self.warnings));
        notes
    }
}

//! What was found, as a page of Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plumb_diagnose::causes;
use plumb_diagnose::weighing::{Setting, how_often};
use plumb_model::finding::Cause;
use plumb_model::vocabulary::Vocabulary as _;

use crate::cost::costs;
use crate::counted::{Counted, FAULTY, counts, of_role};
use crate::judge::Outcome;
use crate::library::{Expect, Library, Role, Set};
use crate::results::Line;
use crate::statistics::{Count, brier, over_groups, weighted_mean};
use crate::words::{expected, findings, judged};

/// The page of a set.
pub(crate) fn page(library: &Library, set: Set, lines: &[Line]) -> String {
    let counted: Vec<Counted<'_>> = lines
        .iter()
        .filter(|line| line.trial.set == set)
        .filter_map(|line| {
            let checked = line
                .checked
                .as_ref()
                .filter(|checked| !checked.lab.overrun)?;
            let judgement = judged(library, &line.trial, &checked.said);
            Some(Counted {
                line,
                checked,
                judgement,
            })
        })
        .collect();
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = write_page(&mut text, library, set, lines, &counted);
    text
}

fn write_page(
    text: &mut String,
    library: &Library,
    set: Set,
    lines: &[Line],
    counted: &[Counted<'_>],
) -> std::fmt::Result {
    writeln!(
        text,
        "# How often the verdict is right: the set to {}\n",
        set.name()
    )?;
    writeln!(
        text,
        "Made by `make certify` from `certify/results/{}.jsonl`: {} trials that count, of {} that ran.\n\
         Intervals are of 95 %, Wilson's, and for shares over several causes drawn anew over the causes.\n",
        set.name(),
        counted.len(),
        lines.len()
    )?;
    judged_by(text, lines)?;
    all_clears(text, library, counted)?;
    by_role(text, counted)?;
    by_cause(text, library, counted)?;
    by_family(text, library, counted)?;
    healthy(text, counted)?;
    confusions(text, library, counted)?;
    places(text, library, counted)?;
    calibration(text, library, counted)?;
    ambiguous(text, library, counted)?;
    several_names(text, library)?;
    costs(text, lines, counted)
}

/// Which rules and which commits the trials are of.
fn judged_by(text: &mut String, lines: &[Line]) -> std::fmt::Result {
    let mut trials: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in lines {
        *trials.entry((&line.rules, &line.commit)).or_default() += 1;
    }
    writeln!(
        text,
        "| rules (`git rev-parse HEAD:crates/diagnose`) | commit | trials |\n|---|---|---|"
    )?;
    for ((rules, commit), trials) in trials {
        writeln!(text, "| {rules} | {commit} | {trials} |")?;
    }
    writeln!(text)
}

fn all_clears(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## Wrong all-clears\n")?;
    let wrong = |counted: &&Counted<'_>| counted.judgement.outcome == Outcome::WrongAllClear;
    let wrong: Vec<_> = counted.iter().filter(wrong).collect();
    if wrong.is_empty() {
        writeln!(
            text,
            "None in {} faulty lines.\n",
            of_role(counted, FAULTY).count()
        )?;
        return Ok(());
    }
    writeln!(
        text,
        "| trial | severity | expected | said |\n|---|---|---|---|"
    )?;
    for counted in wrong {
        let trial = &counted.line.trial;
        let (id, expected) = (trial.id(), counted.cause(library));
        let said = findings(&counted.checked.said);
        writeln!(
            text,
            "| {id} | {:.2} | {expected} | {said} |",
            trial.severity
        )?;
    }
    writeln!(text)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn row(text: &mut String, name: &str, count: Count, (low, high): (f64, f64)) -> std::fmt::Result {
    let share = count.share().map_or_else(|| "–".to_owned(), percent);
    let interval = format!("{} to {}", percent(low), percent(high));
    writeln!(
        text,
        "| {name} | {} | {} | {share} | {interval} |",
        count.hits, count.of
    )
}

fn head(text: &mut String, what: &str) -> std::fmt::Result {
    writeln!(
        text,
        "| {what} | right | trials | share | interval |\n|---|---|---|---|---|"
    )
}

fn by_role(text: &mut String, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## In all\n")?;
    head(text, "what")?;
    const ROLES: [(&str, &[Role]); 6] = [
        ("cause right first", &[Role::Fault]),
        ("both of two faults among the first three", &[Role::Pair]),
        (
            "unknown fault unexplained, or its neighbour",
            &[Role::Unknown],
        ),
        ("false twin not taken for the fault", &[Role::Twin]),
        ("healthy line without a warning", &[Role::Healthy]),
        (
            "all",
            &[
                Role::Fault,
                Role::Unknown,
                Role::Twin,
                Role::Healthy,
                Role::Pair,
            ],
        ),
    ];
    for (what, roles) in ROLES {
        let groups = counts(of_role(counted, roles), |c| {
            c.line.trial.changes.join(" and ")
        });
        let groups: Vec<Count> = groups.into_values().collect();
        let all = Count::of(of_role(counted, roles).map(Counted::is_right));
        if all.of > 0 {
            row(text, what, all, over_groups(&groups))?;
        }
    }
    let places = counted.iter().filter_map(|counted| counted.judgement.place);
    let places = Count::of(places);
    row(
        text,
        "place right, where the cause is",
        places,
        places.interval(),
    )?;
    writeln!(text)
}

fn by_cause(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## By fault\n")?;
    writeln!(
        text,
        "| fault | expected | right | trials | share | interval |\n|---|---|---|---|---|---|"
    )?;
    let rows = counts(
        counted
            .iter()
            .filter(|c| c.line.trial.role != Role::Healthy),
        |c| {
            format!(
                "{} | {}",
                c.line.trial.changes.join(" + "),
                c.cause(library)
            )
        },
    );
    for (name, count) in rows {
        row(text, &name, count, count.interval())?;
    }
    writeln!(text)
}

fn by_family(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## By family\n")?;
    head(text, "family")?;
    let family = |c: &Counted<'_>| match Cause::of_word(&c.cause(library)) {
        Some(cause) => causes::entry(cause).family.title().to_owned(),
        None => "Not described yet".to_owned(),
    };
    for (name, count) in counts(of_role(counted, &[Role::Fault]), family) {
        row(text, &name, count, count.interval())?;
    }
    writeln!(text)
}

fn healthy(text: &mut String, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## Healthy lines\n")?;
    writeln!(
        text,
        "| line | without a warning | lines | share | interval |\n|---|---|---|---|---|"
    )?;
    let rows = counts(of_role(counted, &[Role::Healthy]), |c| {
        c.line.trial.changes.join(" + ")
    });
    for (name, count) in rows {
        row(text, &name, count, count.interval())?;
    }
    writeln!(text)
}

/// What was said of each fault: the confusion matrix without its zeros.
fn confusions(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## What was said of what\n")?;
    writeln!(
        text,
        "| expected | said first | times | judged |\n|---|---|---|---|"
    )?;
    let mut times: BTreeMap<(String, &str, &str), usize> = BTreeMap::new();
    for counted in counted {
        let first = counted.checked.said.findings.first();
        let first = first.map_or(&counted.checked.said.clearance, |finding| &finding.cause);
        let judged = counted.judgement.outcome.words();
        *times
            .entry((counted.cause(library), first, judged))
            .or_default() += 1;
    }
    let mut times: Vec<_> = times.into_iter().collect();
    // By what was expected; of that the most frequent first.
    times.sort_by(|(a, m), (b, n)| a.0.cmp(&b.0).then(n.cmp(m)));
    for ((expected, said, judged), times) in times {
        writeln!(text, "| {expected} | {said} | {times} | {judged} |")?;
    }
    writeln!(text)
}

/// Where the fault is, by the places that its file names, where its cause was found.
fn places(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## Places\n")?;
    writeln!(
        text,
        "| one of | right | trials | share | interval | said in its place |\n|---|---|---|---|---|---|"
    )?;
    let mut rows: BTreeMap<String, (Count, BTreeMap<&str, usize>)> = BTreeMap::new();
    for counted in of_role(counted, &[Role::Fault, Role::Twin, Role::Unknown]) {
        let Some(right) = counted.judgement.place else {
            continue;
        };
        let expected = expected(library, &counted.line.trial);
        let places: Vec<&str> = expected
            .iter()
            .flat_map(|expect| &expect.places)
            .map(String::as_str)
            .collect();
        let (count, wrong) = rows.entry(places.join(", ")).or_default();
        count.of += 1;
        count.hits += usize::from(right);
        if let Some(first) = counted.checked.said.findings.first().filter(|_| !right) {
            *wrong.entry(&first.place).or_default() += 1;
        }
    }
    for (places, (count, wrong)) in rows {
        let wrong = wrong
            .iter()
            .map(|(place, times)| format!("{place} ({times})"));
        let wrong: Vec<String> = wrong.collect();
        let (low, high) = count.interval();
        let share = count.share().map_or_else(|| "–".to_owned(), percent);
        writeln!(
            text,
            "| {places} | {} | {} | {share} | {} to {} | {} |",
            count.hits,
            count.of,
            percent(low),
            percent(high),
            wrong.join(", ")
        )?;
    }
    writeln!(text)
}

/// Where bins of confidence begin.
const BINS: [f64; 6] = [0.0, 0.5, 0.7, 0.8, 0.9, 0.95];

/// Verdicts from which on a bin must be calibrated.
const BIN_VERDICTS: usize = 60;

fn calibration(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    let verdicts: Vec<(String, f64, bool)> =
        of_role(counted, &[Role::Fault, Role::Twin, Role::Pair])
            .filter_map(|c| Some((c.cause(library), c.judgement.confidence?, c.is_right())))
            .collect();
    writeln!(text, "## Confidence\n")?;
    writeln!(
        text,
        "A bin is calibrated where the mean of what was said lies within the interval of the share that is right; from \
         {BIN_VERDICTS} verdicts on that is asked for.\n"
    )?;
    writeln!(
        text,
        "| said | mean | right | verdicts | share | interval | calibrated |\n|---|---|---|---|---|---|---|"
    )?;
    for (at, from) in BINS.iter().enumerate() {
        let to = BINS.get(at + 1).copied().unwrap_or(f64::INFINITY);
        let bin: Vec<_> = verdicts
            .iter()
            .filter(|(_, c, _)| (*from..to).contains(c))
            .collect();
        if bin.is_empty() {
            continue;
        }
        let mean = bin.iter().map(|(_, c, _)| c).sum::<f64>() / bin.len() as f64;
        let count = Count::of(bin.iter().map(|(_, _, right)| *right));
        let (low, high) = count.interval();
        let calibrated = match (count.of < BIN_VERDICTS, (low..=high).contains(&mean)) {
            (true, _) => "too few",
            (false, true) => "yes",
            (false, false) => "no",
        };
        writeln!(
            text,
            "| from {} | {} | {} | {} | {} | {} to {} | {calibrated} |",
            percent(*from),
            percent(mean),
            count.hits,
            count.of,
            count.share().map_or_else(|| "–".to_owned(), percent),
            percent(low),
            percent(high)
        )?;
    }
    let score = |score: Option<f64>| score.map_or_else(|| "–".to_owned(), |s| format!("{s:.3}"));
    let all: Vec<(f64, bool)> = verdicts.iter().map(|(_, c, right)| (*c, *right)).collect();
    let mut by_cause: BTreeMap<&str, Vec<(f64, bool)>> = BTreeMap::new();
    for (cause, confidence, right) in &verdicts {
        let of_cause = by_cause.entry(cause).or_default();
        of_cause.push((*confidence, *right));
    }
    let mixed = |weight: &dyn Fn(&str) -> f64| {
        let scores = by_cause
            .iter()
            .filter_map(|(cause, verdicts)| Some((weight(cause), brier(verdicts)?)));
        weighted_mean(scores)
    };
    // Of two faults at once the first is counted, and what no cause describes is as frequent as any.
    let often = |causes: &str| {
        let first = causes.split(" and ").next().and_then(Cause::of_word);
        first.map_or(1.0, |cause| how_often(cause, Setting::Home))
    };
    writeln!(
        text,
        "\nBrier score {} of {} verdicts as they were drawn; {} where each cause is as frequent as any other, and {} where \
         they are as frequent as at home by the table of priors (`weighing/prior.rs`).\n",
        score(brier(&all)),
        verdicts.len(),
        score(mixed(&|_| 1.0)),
        score(mixed(&often))
    )
}

/// The share of verdicts that may be ambiguous.
const AMBIGUOUS_RATIO: f64 = 0.1;

/// What cannot be distinguished in principle, and how often a verdict named another cause of the same set.
fn ambiguous(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    let count = Count::of(counted.iter().map(Counted::is_ambiguous));
    writeln!(text, "## What cannot be distinguished\n")?;
    writeln!(
        text,
        "{} of {} verdicts are ambiguous ({}; at most {} may be): they name another cause of one of these sets, and count as \
         right above.\n",
        count.hits,
        count.of,
        count.share().map_or_else(|| "–".to_owned(), percent),
        percent(AMBIGUOUS_RATIO)
    )?;
    writeln!(text, "| causes | ambiguous | because |\n|---|---|---|")?;
    for set in &library.ambiguous {
        let of_set = counted.iter().filter(|c| c.is_ambiguous());
        let of_set = of_set.filter(|counted| {
            let expected = expected(library, &counted.line.trial);
            let mut names = expected.iter().flat_map(|expect| &expect.first);
            names.any(|cause| set.has(cause))
        });
        writeln!(
            text,
            "| {} | {} | {} |",
            set.causes.join(", "),
            of_set.count(),
            set.reason
        )?;
    }
    writeln!(text)
}

/// Names and places that are right beside each other, as the files of the faults have them.
fn several_names(text: &mut String, library: &Library) -> std::fmt::Result {
    writeln!(text, "## Where several names are right\n")?;
    writeln!(
        text,
        "| fault | causes | places | because |\n|---|---|---|---|"
    )?;
    for (name, (_, change)) in &library.changes {
        let Expect {
            first,
            places,
            because,
            ..
        } = &change.expect;
        if !because.is_empty() {
            let (first, places) = (first.join(", "), places.join(", "));
            writeln!(text, "| {name} | {first} | {places} | {because} |")?;
        }
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::library::folder;

    /// A page without a trial has every part, and no share of nothing.
    #[test]
    fn an_empty_set_has_a_page() {
        let library = Library::read(&folder()).unwrap();
        let text = page(&library, Set::Fit, &[]);
        for part in [
            "## Confidence",
            "## Places",
            "## What cannot be distinguished",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.contains("0 of 0 verdicts are ambiguous (–"), "{text}");
        assert!(!text.contains("NaN"), "{text}");
    }
}

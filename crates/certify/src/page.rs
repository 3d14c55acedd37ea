//! What was found, as a page of Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plumb_diagnose::causes;
use plumb_model::finding::Cause;
use plumb_model::vocabulary::Vocabulary as _;

use crate::cost::costs;
use crate::counted::{Counted, FAULTY, counts, of_role};
use crate::judge::Outcome;
use crate::library::{Expect, Library, Role, Set};
use crate::results::Line;
use crate::statistics::{Count, brier, over_groups};
use crate::words::{findings, judged};

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
    calibration(text, counted)?;
    ambiguous(text, library)?;
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

fn confusions(text: &mut String, library: &Library, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(text, "## What was said in place of it\n")?;
    writeln!(text, "| expected | said first | times |\n|---|---|---|")?;
    let mut times: BTreeMap<(String, String), usize> = BTreeMap::new();
    for counted in counted.iter().filter(|counted| !counted.is_right()) {
        let first = counted.checked.said.findings.first();
        let first = first.map_or(&counted.checked.said.clearance, |finding| &finding.cause);
        *times
            .entry((counted.cause(library), first.clone()))
            .or_default() += 1;
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    for ((expected, said), times) in times {
        writeln!(text, "| {expected} | {said} | {times} |")?;
    }
    writeln!(text)
}

/// Where bins of confidence begin.
const BINS: [f64; 6] = [0.0, 0.5, 0.7, 0.8, 0.9, 0.95];

fn calibration(text: &mut String, counted: &[Counted<'_>]) -> std::fmt::Result {
    let verdicts: Vec<(f64, bool)> = of_role(counted, &[Role::Fault, Role::Twin, Role::Pair])
        .filter_map(|c| Some((c.judgement.confidence?, c.is_right())))
        .collect();
    writeln!(text, "## Confidence\n")?;
    writeln!(
        text,
        "| said | mean | right | verdicts | share | interval |\n|---|---|---|---|---|---|"
    )?;
    for (at, from) in BINS.iter().enumerate() {
        let to = BINS.get(at + 1).copied().unwrap_or(f64::INFINITY);
        let bin: Vec<_> = verdicts
            .iter()
            .filter(|(c, _)| (*from..to).contains(c))
            .collect();
        if bin.is_empty() {
            continue;
        }
        let mean = bin.iter().map(|(c, _)| c).sum::<f64>() / bin.len() as f64;
        let count = Count::of(bin.iter().map(|(_, right)| *right));
        let name = format!("from {} | {}", percent(*from), percent(mean));
        row(text, &name, count, count.interval())?;
    }
    let score = brier(&verdicts).map_or_else(|| "–".to_owned(), |score| format!("{score:.3}"));
    writeln!(
        text,
        "\nBrier score {score}, of {} verdicts.\n",
        verdicts.len()
    )
}

/// Names and places that are right beside each other, as the files of the faults have them.
fn ambiguous(text: &mut String, library: &Library) -> std::fmt::Result {
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

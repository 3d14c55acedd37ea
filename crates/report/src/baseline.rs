//! Repeats of one check, for people: what is usual, what is stable, what comes and goes, and at which hours.

use std::collections::BTreeMap;

use plumb_diagnose::baseline::{Recurrence, Repeat, Tally, hour, tally};
use plumb_model::context::Phase;
use plumb_model::finding::Severity;
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Key};
use crate::compare::{decides, number_of, numbers_of, words_of};
use crate::heading;
use crate::table::Table;

/// What repeats come to.
#[derive(Debug)]
pub struct Baseline {
    pub(crate) head: String,
    /// What must be known of the repeats first.
    pub(crate) warnings: Vec<String>,
    /// Findings in nearly all checks, in some, and in so few that they may be chance.
    pub(crate) stable: Vec<String>,
    pub(crate) comes_and_goes: Vec<String>,
    pub(crate) noise: Vec<String>,
    /// Numbers that are worse than usual now and then.
    pub(crate) at_times: Vec<String>,
    /// Numbers with their spread.
    pub(crate) numbers: Table,
    /// The worst of what is stable, or comes and goes.
    pub worst: Option<Severity>,
}

/// What repeats of a check of one path come to; they are in order of time.
pub fn baseline(runs: &[Run]) -> Baseline {
    let repeats: Vec<Repeat> = runs.iter().map(Repeat::of).collect();
    let tallies = tally(&repeats);
    let of = |recurrence| -> Vec<String> {
        let all = tallies.iter();
        let all = all.filter(|tally| tally.recurrence == recurrence);
        all.map(sentence).collect()
    };
    let rows = rows(runs);
    let told = tallies.iter();
    let told = told.filter(|tally| tally.recurrence != Recurrence::MayBeNoise);
    Baseline {
        head: head(runs),
        warnings: warnings(runs),
        stable: of(Recurrence::Stable),
        comes_and_goes: of(Recurrence::ComesAndGoes),
        noise: of(Recurrence::MayBeNoise),
        at_times: at_times(&rows),
        numbers: table(&rows),
        worst: told.map(|tally| tally.severity).max(),
    }
}

fn head(runs: &[Run]) -> String {
    let started =
        |run: Option<&Run>| run.map_or_else(String::new, |run| heading::started(&run.started));
    let target = runs.first().map_or_else(String::new, heading::target);
    let count = match runs.len() {
        1 => "1 check".to_owned(),
        count => format!("{count} checks"),
    };
    format!(
        "Baseline of {target}: {count}, {} to {}",
        started(runs.first()),
        started(runs.last())
    )
}

/// A far end, a version or a clock that is not the same throughout.
fn warnings(runs: &[Run]) -> Vec<String> {
    let counted = |of: &dyn Fn(&Run) -> Option<String>| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for value in runs.iter().filter_map(of) {
            *counts.entry(value).or_default() += 1;
        }
        let all = counts
            .iter()
            .map(|(value, count)| format!("{value} in {count}"));
        let all: Vec<String> = all.collect();
        (all.len() > 1).then(|| all.join(", "))
    };
    let address = |run: &Run| run.target.as_ref()?.address.clone();
    let mut warnings = Vec::new();
    if let Some(addresses) = counted(&address) {
        warnings.push(format!(
            "The far end changed its address between checks ({addresses}): they may be of several machines."
        ));
    }
    if let Some(versions) = counted(&|run| Some(run.plumb.clone())) {
        warnings.push(format!(
            "The checks are of several versions of plumb ({versions}), which do not find alike."
        ));
    }
    let unknown = runs
        .iter()
        .filter(|run| hour(&run.started).is_none())
        .count();
    if unknown > 0 {
        warnings.push(format!(
            "When {unknown} of the checks were made is unknown: they are left out of what is by hour."
        ));
    }
    warnings
}

fn sentence(tally: &Tally) -> String {
    let there = tally.hours.iter().filter(|(_, (seen, _))| *seen > 0);
    let hours: Vec<String> = there
        .clone()
        .map(|(hour, (seen, of))| format!("{hour:02} h {seen} of {of}"))
        .collect();
    let hours = match tally.hours.len() > 1 && tally.seen < tally.of && !hours.is_empty() {
        true => format!(" By hour (UTC): {}; at no other.", hours.join(", ")),
        false => String::new(),
    };
    format!(
        "{} ({}, {}): in {} of {} checks.{hours}",
        tally.cause, tally.severity, tally.place, tally.seen, tally.of
    )
}

/// A number over all checks.
struct Row {
    key: Key,
    /// With the hour of the check.
    values: Vec<(f64, Option<u8>)>,
}

impl Row {
    /// The value below which this share of them is.
    fn quantile(&self, share: f64) -> Option<f64> {
        let mut sorted: Vec<f64> = self.values.iter().map(|(value, _)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        sorted.get((share * last as f64).round() as usize).copied()
    }

    /// Those that are worse than the median by more than two measurements of one path differ, with their hours.
    fn worse(&self) -> (usize, Vec<u8>) {
        let Some(usual) = self.quantile(0.5) else {
            return (0, Vec::new());
        };
        let unit: ChangeUnit = self.key.unit;
        let worse = self.values.iter();
        let worse = worse.filter(|(value, _)| unit.better(usual, *value) == Some(false));
        let worse: Vec<_> = worse.collect();
        let mut hours: Vec<u8> = worse.iter().filter_map(|(_, hour)| *hour).collect();
        hours.sort_unstable();
        hours.dedup();
        (worse.len(), hours)
    }
}

/// Every number of which more or less is better, over all checks.
fn rows(runs: &[Run]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for run in runs {
        let hour = hour(&run.started);
        for (key, value) in numbers_of(run) {
            match rows.iter_mut().find(|row| row.key == key) {
                Some(row) => row.values.push((value, hour)),
                None => rows.push(Row {
                    key,
                    values: vec![(value, hour)],
                }),
            }
        }
    }
    let tells = |row: &Row| {
        row.values
            .iter()
            .any(|(value, _)| decides(&row.key, *value))
    };
    rows.retain(|row| row.key.unit != ChangeUnit::Count && row.values.len() > 1 && tells(row));
    let place = |row: &Row| (row.key.phase, row.key.direction.is_some());
    rows.sort_by_key(place);
    rows
}

/// Numbers that are worse now and then, with the hours.
fn at_times(rows: &[Row]) -> Vec<String> {
    let each = rows.iter().filter_map(|row| {
        let (count, hours) = row.worse();
        let hours: Vec<String> = hours.iter().map(|hour| format!("{hour:02}")).collect();
        let at = match hours.is_empty() {
            true => String::new(),
            false => format!(", at {} h (UTC)", hours.join(", ")),
        };
        (count > 0).then(|| {
            format!(
                "{}, {}: worse than usual in {count} of {}{at}.",
                row.key.phase.shown(),
                words_of(&row.key),
                row.values.len()
            )
        })
    });
    each.collect()
}

/// All numbers with their spread.
fn table(rows: &[Row]) -> Table {
    let shown = |row: &Row, share| {
        let value = row.quantile(share);
        value.map(|value| number_of(row.key.unit, value))
    };
    Table::of("Numbers over all checks", rows)
        .text("", |row| match row.key.phase {
            // The short word, as in a comparison.
            Phase::Both => Phase::Both.name(),
            phase => phase.shown(),
        })
        .text("", |row| words_of(&row.key))
        .num("median", |row| shown(row, 0.5))
        .num("10 %", |row| shown(row, 0.1))
        .num("90 %", |row| shown(row, 0.9))
        .done()
}

//! An experiment of several cases, in each of which the same was measured before and after a change: its table.

use plumb_model::distribution::quantile_of_sorted;
use plumb_model::run::Run;
use plumb_model::units::capital;

use crate::compare::numbers::of_measurement;
use crate::compare::quantity::{ChangeUnit, Quantity};
use crate::number;
use crate::table::{Kind, Table};

/// What was measured in several cases.
pub struct Experiment {
    pub title: String,
    /// The words for before and after the change.
    pub sides: [&'static str; 2],
    /// What was measured in each case: a name, a colon, and what stands in its cells.
    pub heads: Vec<&'static str>,
    pub cases: Vec<Case>,
}

/// One of the cases.
pub struct Case {
    pub name: String,
    /// Before and after, a Run for each of the heads; none where the measurement came to no end.
    pub runs: [Vec<Option<Run>>; 2],
}

/// The numbers that stand in a cell, in this order.
const SHOWN: [&str; 6] = [
    "rtt_s.p50",
    "rtt_s.p95",
    "loss_ratio",
    "jitter_s.mean",
    "load_s",
    "bps",
];

const FAILED: &str = "failed";

impl Experiment {
    /// What a column, or a chart of it, is called.
    pub(crate) fn name(head: &'static str) -> &'static str {
        head.split(':').next().unwrap_or(head)
    }

    /// Each case before and after with its name, whether it is after, and its Run under a head.
    pub(crate) fn column(
        &self,
        head: usize,
    ) -> impl Iterator<Item = (usize, bool, String, Option<&Run>)> {
        self.cases.iter().enumerate().flat_map(move |(i, case)| {
            let sides = self.sides.iter().zip(&case.runs).enumerate();
            sides.map(move |(side, (word, runs))| {
                let name = format!("{}, {word}", case.name);
                (i, side == 1, name, runs.get(head).and_then(Option::as_ref))
            })
        })
    }

    /// A row for each case and side, and what was run under the table.
    pub(crate) fn table(&self) -> Table {
        let heads = self.heads.iter().map(|head| (*head, Kind::Text));
        let columns: Vec<_> = [("", Kind::Text)].into_iter().chain(heads).collect();
        let mut table = Table::new(capital(&self.sides.join(" and ")), &columns);
        let columns: Vec<Vec<_>> = (0..self.heads.len())
            .map(|head| self.column(head).collect())
            .collect();
        for row in 0..self.cases.len() * self.sides.len() {
            let mut of_row = columns.iter().filter_map(|column| column.get(row));
            let name = of_row.clone().next().map(|(_, _, name, _)| name.clone());
            let cells = of_row.by_ref().map(|(.., run)| cell(*run));
            table.row(name.into_iter().chain(cells));
        }
        let commands = self
            .heads
            .iter()
            .zip(&columns)
            .filter_map(|(head, column)| {
                let run = column.iter().find_map(|(.., run)| *run)?;
                Some(format!("{}: {}", Self::name(head), asked(&run.command)))
            });
        let commands: Vec<String> = commands.collect();
        table.note = (!commands.is_empty()).then(|| commands.join("; "));
        table
    }

    /// The table for a page of Markdown.
    pub fn markdown(&self) -> String {
        let table = self.table();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let head = line(&mut table.columns.iter().map(|column| column.name));
        let rule = line(&mut table.columns.iter().map(|_| "---"));
        let rows = table
            .rows
            .iter()
            .map(|row| line(&mut row.cells.iter().map(String::as_str)));
        [head, rule].into_iter().chain(rows).collect()
    }
}

/// The times of page loads that were complete, and how many were not; none where no page was loaded.
pub(crate) fn loads(run: &Run) -> Option<(Vec<f64>, usize)> {
    let mut times = Vec::new();
    let mut failed = 0;
    for measurement in &run.measurements {
        let found = of_measurement(measurement);
        let value = |name| quantity(&found, name).map(|(_, value)| *value);
        match (value("objects_failed"), value("load_s")) {
            (None, _) => {}
            (Some(0.0), Some(load_s)) => times.push(load_s),
            (Some(_), _) => failed += 1,
        }
    }
    times.sort_by(f64::total_cmp);
    (!times.is_empty() || failed > 0).then_some((times, failed))
}

/// What a command asked for, without where it was to be saved.
fn asked(command: &[String]) -> String {
    let mut words = command.iter();
    let mut asked = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-q" | "--quiet" => {}
            "-o" | "--output" => drop(words.next()),
            word => asked.push(word),
        }
    }
    asked.join(" ")
}

/// Not a rate that was asked for.
fn quantity<'a>(found: &'a [Quantity], name: &str) -> Option<&'a Quantity> {
    found.iter().find(|(key, _)| key.judged && key.name == name)
}

/// What of a Run stands in its cell.
pub(crate) fn cell(run: Option<&Run>) -> String {
    let Some(run) = run else {
        return FAILED.to_owned();
    };
    if let Some((times, failed)) = loads(run) {
        let median = quantile_of_sorted(&times, 0.5).map(number::seconds);
        let of = times.len() + failed;
        return match (median, failed) {
            (None, _) => FAILED.to_owned(),
            (Some(median), 0) => median,
            (Some(median), failed) => format!("{median}, {failed} of {of} failed"),
        };
    }
    let found: Vec<Quantity> = run.measurements.iter().flat_map(of_measurement).collect();
    let figures = SHOWN.iter().filter_map(|name| {
        let (key, value) = quantity(&found, name)?;
        Some(match key.unit {
            ChangeUnit::S => number::seconds(*value),
            ChangeUnit::Ratio => number::percent(*value),
            _ => number::rate(*value),
        })
    });
    let figures: Vec<String> = figures.collect();
    match figures.is_empty() {
        true => FAILED.to_owned(),
        false => figures.join(", "),
    }
}

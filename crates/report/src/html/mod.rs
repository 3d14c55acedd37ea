//! One page, complete in itself: no script, nothing loaded from anywhere, and a content security
//! policy that says so. The template cleans and escapes whatever a Run says; only the charts, which do so
//! for themselves, and the style sheet are put in as they are.

mod case_charts;
mod charts;
mod parts;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, Value, escape_formatter};
use plumb_model::printable;
use plumb_model::run::{Run, in_page};
use serde::Serialize;

use crate::cases::Experiment;
use crate::compare::{Comparison, table::changes};
use crate::heading;
use crate::latency::mark;
use crate::problem::{Problem, Said};
use crate::svg::canvas::escape;
use crate::table::Table;
use parts::{RunPart, Tile};

/// Its name ends in `.html.j2`, which switches escaping on.
const TEMPLATE_NAME: &str = "page.html.j2";
const TEMPLATE: &str = include_str!("page.html.j2");
const STYLE: &str = include_str!("style.css");

/// What the template is given.
#[derive(Serialize)]
struct Page<'a> {
    target: String,
    style: Value,
    headline: Option<&'a str>,
    /// The grade of latency under load of the Run, or of both.
    grades: Vec<String>,
    /// What must be known before any number is believed.
    warnings: Vec<String>,
    tiles: Vec<Tile>,
    /// What changed, on a page of two Runs.
    changes: Option<Table>,
    /// Charts over time, one a Run.
    timelines: Vec<charts::Figure>,
    /// Charts that results have to themselves.
    charts: Vec<charts::Group>,
    distribution: Option<Value>,
    /// One Run, or before and after.
    runs: Vec<RunPart<'a>>,
    /// The case, on the page of a problem.
    problem: Option<Problem>,
    /// The Run itself, where the page is to be read again.
    data: Option<Value>,
}

/// A Run as a page.
pub fn render(run: &Run) -> String {
    write(&page(run))
}

/// The case of a Run as a page that holds the Run, so that plumb reads it again.
///
/// # Errors
/// When the Run cannot be written as JSON.
pub fn render_problem(run: &Run, said: &Said) -> serde_json::Result<String> {
    let data = Value::from_safe_string(in_page::element(run)?);
    Ok(write(&Page {
        problem: Some(Problem::of(run, said)),
        data: Some(data),
        ..page(run)
    }))
}

fn page(run: &Run) -> Page<'_> {
    let verdict = run.verdict.as_ref();
    Page {
        target: heading::target(run),
        style: Value::from_safe_string(STYLE.to_owned()),
        headline: verdict.map(|v| v.headline.as_str()),
        grades: verdict
            .and_then(|v| v.latency_grade)
            .map(|g| g.name().to_owned())
            .into_iter()
            .collect(),
        warnings: heading::overrun_warning(run)
            .map(str::to_owned)
            .into_iter()
            .collect(),
        tiles: parts::tiles(&[run]),
        changes: None,
        timelines: charts::timelines(&[("", run)]),
        charts: charts::groups(&[("", run)]),
        distribution: charts::distribution(&[("", run)]).map(Value::from_safe_string),
        runs: vec![RunPart::of(run, "", &[])],
        problem: None,
        data: None,
    }
}

/// Two Runs as one page, before and after.
pub fn render_comparison(before: &Run, after: &Run, comparison: &Comparison) -> String {
    let named = [("Before", before), ("After", after)];
    let mark = |run: &Run| mark(run.verdict.as_ref().and_then(|v| v.latency_grade));
    let warnings = comparison.notes.iter().cloned();
    write(&Page {
        target: heading::target(after),
        style: Value::from_safe_string(STYLE.to_owned()),
        headline: Some(&comparison.summary),
        grades: vec![mark(before), mark(after)],
        warnings: warnings.collect(),
        tiles: parts::tiles(&[before, after]),
        changes: Some(changes(comparison)),
        timelines: charts::timelines(&named),
        charts: charts::groups(&named),
        distribution: charts::distribution(&named).map(Value::from_safe_string),
        runs: vec![
            RunPart::of(
                before,
                "Before",
                &[
                    parts::fates(&comparison.findings.gone, "gone"),
                    parts::fates(&comparison.findings.unmeasured, "not measured again"),
                ]
                .concat(),
            ),
            RunPart::of(
                after,
                "After",
                &parts::fates(&comparison.findings.new, "new"),
            ),
        ],
        problem: None,
        data: None,
    })
}

/// An experiment as a page: its table, and a chart of each column.
pub fn render_cases(experiment: &Experiment) -> String {
    let warnings = (0..experiment.heads.len()).flat_map(|head| {
        let warning = |(_, _, name, run): (_, _, String, Option<&Run>)| {
            Some(format!("{name}: {}", heading::overrun_warning(run?)?))
        };
        experiment.column(head).filter_map(warning)
    });
    write(&Page {
        target: experiment.title.clone(),
        style: Value::from_safe_string(STYLE.to_owned()),
        headline: None,
        grades: Vec::new(),
        warnings: once(warnings),
        tiles: Vec::new(),
        changes: Some(experiment.table()),
        timelines: Vec::new(),
        charts: case_charts::groups(experiment),
        distribution: None,
        runs: Vec::new(),
        problem: None,
        data: None,
    })
}

fn once(said: impl Iterator<Item = String>) -> Vec<String> {
    said.fold(Vec::new(), |mut all, text| {
        if !all.contains(&text) {
            all.push(text);
        }
        all
    })
}

fn write(page: &Page<'_>) -> String {
    fill(page).unwrap_or_else(|error| {
        // The template is part of the program and every page of the tests goes through it, so
        // this is out of reach; a page that says so is better than none.
        format!(
            "<!doctype html><title>plumb</title><p>The page could not be made: {}",
            escape(&error.to_string())
        )
    })
}

fn fill(page: &Page<'_>) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => {
            escape_formatter(out, state, &Value::from(&*printable::lines(text)))
        }
        _ => escape_formatter(out, state, value),
    });
    environment.add_template(TEMPLATE_NAME, TEMPLATE)?;
    environment.get_template(TEMPLATE_NAME)?.render(Serde(page))
}

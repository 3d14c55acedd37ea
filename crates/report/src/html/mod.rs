//! One page, complete in itself: no script, nothing loaded from anywhere, and a content security
//! policy that says so. The template escapes whatever a Run says; only the charts, which escape
//! for themselves, and the style sheet are put in as they are.

mod charts;
mod parts;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, Value};
use plumb_model::run::Run;
use serde::Serialize;

use crate::compare::Comparison;
use crate::svg::{hops, ways};
use crate::tables::{self, Table};
use crate::view;
use parts::{RunPart, Tile};

/// Its name ends in `.html.j2`, which switches escaping on.
const TEMPLATE_NAME: &str = "page.html.j2";
const TEMPLATE: &str = include_str!("page.html.j2");
const STYLE: &str = include_str!("style.css");

/// What the template is given.
#[derive(Serialize)]
struct Page<'a> {
    /// What was measured.
    target: String,
    /// The style sheet.
    style: Value,
    /// One sentence.
    headline: Option<&'a str>,
    /// The mark of the Run, or of both.
    grades: Vec<String>,
    /// What must be known before any number is believed.
    warnings: Vec<String>,
    tiles: Vec<Tile>,
    /// What changed, on a page of two Runs.
    changes: Option<Table>,
    /// Charts over time, one a Run.
    timelines: Vec<charts::Figure>,
    classes: Vec<charts::Figure>,
    /// Delays of each way, a chart a measurement.
    ways: Vec<charts::Figure>,
    /// Round trips of the hops, a chart a path.
    hops: Vec<charts::Figure>,
    distribution: Option<Value>,
    /// One Run, or before and after.
    runs: Vec<RunPart<'a>>,
}

/// A Run as a page.
pub fn render(run: &Run) -> String {
    let verdict = run.verdict.as_ref();
    write(&Page {
        target: view::target(run),
        style: Value::from_safe_string(STYLE.to_owned()),
        headline: verdict.map(|v| v.headline.as_str()),
        grades: verdict
            .and_then(|v| v.grade)
            .map(|g| g.name().to_owned())
            .into_iter()
            .collect(),
        warnings: view::overrun_warning(run)
            .map(str::to_owned)
            .into_iter()
            .collect(),
        tiles: parts::tiles(&[run]),
        changes: None,
        timelines: charts::timelines(&[("", run)]),
        classes: charts::classes(&[("", run)]),
        ways: charts::each(&[("", run)], ways::render),
        hops: charts::each(&[("", run)], hops::render),
        distribution: charts::distribution(&[("", run)]).map(Value::from_safe_string),
        runs: vec![RunPart::of(run, "", &[])],
    })
}

/// Two Runs as one page, before and after.
pub fn render_comparison(before: &Run, after: &Run, comparison: &Comparison) -> String {
    let named = [("Before", before), ("After", after)];
    let mark = |run: &Run| tables::mark(run.verdict.as_ref().and_then(|v| v.grade));
    let warnings = comparison.notes.iter().cloned();
    write(&Page {
        target: view::target(after),
        style: Value::from_safe_string(STYLE.to_owned()),
        headline: Some(&comparison.summary),
        grades: vec![mark(before), mark(after)],
        warnings: warnings.collect(),
        tiles: parts::tiles(&[before, after]),
        changes: Some(tables::changes(comparison)),
        timelines: charts::timelines(&named),
        classes: charts::classes(&named),
        ways: charts::each(&named, ways::render),
        hops: charts::each(&named, hops::render),
        distribution: charts::distribution(&named).map(Value::from_safe_string),
        runs: vec![
            RunPart::of(
                before,
                "Before",
                &parts::fates(&comparison.findings.gone, "gone"),
            ),
            RunPart::of(
                after,
                "After",
                &parts::fates(&comparison.findings.new, "new"),
            ),
        ],
    })
}

fn write(page: &Page<'_>) -> String {
    fill(page).unwrap_or_else(|error| {
        // The template is part of the program and every page of the tests goes through it, so
        // this is out of reach; a page that says so is better than none.
        format!(
            "<!doctype html><title>plumb</title><p>The page could not be made: {}",
            crate::svg::escape(&error.to_string())
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
    environment.add_template(TEMPLATE_NAME, TEMPLATE)?;
    environment.get_template(TEMPLATE_NAME)?.render(Serde(page))
}

//! A Run for the terminal.

use plumb_diagnose::outcomes;
use plumb_model::context::Phase;
use plumb_model::order::sort_few;
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};

use super::check::paint_of;
use super::findings::findings;
use super::layout::{BAD, BOLD, FAINT, Page, grade};
use super::style::Style;
use super::title::title;
use crate::outcome::{self, Use};
use crate::{contents, ends, heading, registry};

/// The whole Run as text, each line ended.
pub fn render(run: &Run, style: &Style) -> String {
    let mut page = Page::new(style);
    head(&mut page, run);
    for sentence in registry::sentences(run) {
        page.wrapped("", anstyle::Style::new(), &sentence);
    }
    if !registry::sentences(run).is_empty() {
        page.blank();
    }
    applications(&mut page, run);
    findings(&mut page, run);
    not_measured(&mut page, run);
    for table in contents::tables(run).0 {
        page.table(&table);
    }
    ended_early(&mut page, run);
    foot(&mut page, run);
    page.finish()
}

pub(super) fn head(page: &mut Page<'_>, run: &Run) {
    title(page, run);
    if let Some(verdict) = &run.verdict {
        page.wrapped("", BOLD, &verdict.headline);
        if let Some(mark) = verdict.latency_grade {
            let painted = page.paint(grade(mark).bold(), mark.name());
            page.line(&format!("Latency under load: {painted}"));
        }
        page.blank();
    }
    if let Some(warning) = heading::overrun_warning(run) {
        page.wrapped("! ", BAD, warning);
        page.blank();
    }
}

/// How each application fares on the path.
fn applications(page: &mut Page<'_>, run: &Run) {
    let outcomes = outcomes::outcomes(run);
    for outcome in &outcomes {
        let fares = Use::of(&outcome.fares);
        let opening = format!("{:<6}{:<5}", outcome.application.name(), fares.name());
        page.wrapped(&opening, paint_of(fares), &outcome::why(&outcome.fares));
    }
    if !outcomes.is_empty() {
        page.blank();
    }
}

/// What an all-clear needs and is not known, where the headline does not say it all.
pub(super) fn not_measured(page: &mut Page<'_>, run: &Run) {
    let lines = heading::not_measured(run);
    if lines.is_empty() {
        return;
    }
    let title = page.paint(BOLD, "Not measured");
    page.line(&title);
    for line in lines {
        page.wrapped("  · ", anstyle::Style::new(), &line);
    }
    page.blank();
}

/// Streams that ended early, which the tables do not show.
pub(super) fn ended_early(page: &mut Page<'_>, run: &Run) {
    let mut measurements: Vec<_> = run.measurements.iter().collect();
    // Those with a rate first, in the order of its table.
    let place = |m: &Measurement| {
        let rate = registry::shown(m).rate();
        rate.map_or((true, Phase::Idle, false), |(direction, _)| {
            (false, registry::phase(m), direction == Direction::Down)
        })
    };
    sort_few(&mut measurements, |a, b| place(a).cmp(&place(b)));
    let lines: Vec<String> = measurements
        .into_iter()
        .flat_map(|m| registry::shown(m).ended_early(registry::phase(m)))
        .collect();
    for line in &lines {
        page.wrapped("! ", anstyle::Style::new(), line);
    }
    if !lines.is_empty() {
        page.blank();
    }
}

pub(super) fn foot(page: &mut Page<'_>, run: &Run) {
    if !run.notes.is_empty() {
        let title = page.paint(BOLD, "Notes");
        page.line(&title);
        for note in &run.notes {
            page.wrapped("  · ", anstyle::Style::new(), note);
        }
        page.blank();
    }
    page.table(&ends::table(run));
    if let Some(lab) = ends::lab(run) {
        page.wrapped("", FAINT, &lab);
    }
    let id = format!("plumb {}, run {}", run.plumb, run.id);
    page.wrapped("", FAINT, &id);
}

//! A case for the terminal, and for a mail.

use plumb_model::run::Run;

use super::findings::findings;
use super::layout::{BAD, BOLD, FAINT, Page};
use super::run::foot;
use super::style::Style;
use crate::heading;
use crate::problem::{Problem, Said};

/// Columns of the names in the head.
const NAMES: usize = 13;

/// The case of a Run as text, each line ended.
pub fn render_problem(run: &Run, said: &Said, style: &Style) -> String {
    let problem = Problem::of(run, said);
    let mut page = Page::new(style);
    page.wrapped(
        "",
        BOLD,
        &format!("Problem report: {}", heading::target(run)),
    );
    page.blank();
    for (name, text) in &problem.head {
        let opening = format!("{name:<NAMES$}");
        page.wrapped(&opening, anstyle::Style::new(), text);
    }
    page.blank();
    if let Some(warning) = heading::overrun_warning(run) {
        page.wrapped("! ", BAD, warning);
        page.blank();
    }
    if !problem.expected.rows.is_empty() {
        page.table(&problem.expected);
    }
    map(&mut page, &problem);
    if !problem.measured.rows.is_empty() {
        page.table(&problem.measured);
    }
    excluded(&mut page, &problem);
    remaining(&mut page, &problem);
    if !run.findings.is_empty() {
        title(&mut page, "The findings with their evidence and what to do");
        findings(&mut page, run);
    }
    foot(&mut page, run);
    page.finish()
}

fn title(page: &mut Page<'_>, text: &str) {
    let text = page.paint(BOLD, text);
    page.line(&text);
}

fn map(page: &mut Page<'_>, problem: &Problem) {
    title(page, "From where to where");
    for part in &problem.map {
        let facts = part.facts.join("; ");
        match &part.name {
            Some(name) => {
                let text = match facts.is_empty() {
                    true => name.clone(),
                    false => format!("{name}: {facts}"),
                };
                page.wrapped("  ● ", anstyle::Style::new(), &text);
            }
            None if facts.is_empty() => page.line("  │"),
            None => page.ruled("  │   ", FAINT, &facts),
        }
        for found in &part.findings {
            page.ruled("  │ ! ", BAD, &found.sentence());
        }
    }
    page.blank();
}

fn excluded(page: &mut Page<'_>, problem: &Problem) {
    if problem.excluded.is_empty() {
        return;
    }
    title(page, "Excluded, and by what");
    for group in &problem.excluded {
        page.wrapped("  · ", FAINT, &format!("By {}:", group.by));
        page.wrapped("      ", anstyle::Style::new(), &group.causes.join(", "));
    }
    page.blank();
}

fn remaining(page: &mut Page<'_>, problem: &Problem) {
    title(page, "What remains");
    if problem.remaining.is_empty() {
        page.line("  No cause was found.");
    }
    for one in &problem.remaining {
        let text = format!(
            "{} ({}, {}, {} sure), by {}",
            one.cause, one.severity, one.place, one.sure, one.rests_on
        );
        page.wrapped("  · ", BOLD, &text);
        for doubt in &one.doubts {
            page.wrapped("      ", FAINT, doubt);
        }
    }
    for open in &problem.open {
        page.wrapped("  · ", anstyle::Style::new(), open);
    }
    page.blank();
}

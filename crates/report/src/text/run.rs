//! A Run for the terminal.

use plumb_model::finding::{Actor, Finding, Fix};
use plumb_model::run::Run;

use super::Style;
use super::layout::{BAD, BOLD, FAINT, Page, clean, grade, severity};
use crate::{number, tables, view};

/// The whole Run as text, each line ended.
pub fn render(run: &Run, style: &Style) -> String {
    let mut page = Page::new(style);
    head(&mut page, run);
    for finding in &run.findings {
        self::finding(&mut page, finding);
    }
    for table in tables::of_run(run) {
        page.table(&table);
    }
    stream_errors(&mut page, run);
    foot(&mut page, run);
    page.finish()
}

/// Of what a Run is, and when it was made.
pub(super) fn title(page: &mut Page<'_>, run: &Run) {
    let title = page.paint(BOLD, &clean(&view::target(run)));
    let when = page.paint(FAINT, &format!("  {}", clean(&view::started(&run.started))));
    page.line(&format!("{title}{when}"));
    page.blank();
}

fn head(page: &mut Page<'_>, run: &Run) {
    title(page, run);
    if let Some(verdict) = &run.verdict {
        match verdict.grade {
            Some(mark) => {
                let opening = format!("Grade {}  ", mark.name());
                let indent = opening.chars().count();
                let painted = page.paint(grade(mark).bold(), opening.trim_end());
                page.opened(&format!("{painted}  "), indent, BOLD, &verdict.headline);
            }
            None => page.wrapped("", BOLD, &verdict.headline),
        }
        page.blank();
    }
    if let Some(warning) = view::overrun_warning(run) {
        page.wrapped("! ", BAD, warning);
        page.blank();
    }
}

fn finding(page: &mut Page<'_>, finding: &Finding) {
    let name = page.paint(
        severity(finding.severity),
        &finding.severity.name().to_uppercase(),
    );
    let place = format!(
        "  {}, {}, {} sure",
        finding.cause.name(),
        finding.place.name(),
        number::percent(finding.confidence)
    );
    let place = page.paint(FAINT, &place);
    page.line(&format!("{name}{place}"));
    page.wrapped("  ", anstyle::Style::new(), &finding.summary);
    if !finding.matters_for.is_empty() {
        let uses: Vec<_> = finding.matters_for.iter().map(|kind| kind.name()).collect();
        page.wrapped("  Matters for: ", FAINT, &uses.join(", "));
    }
    if !finding.evidence.is_empty() {
        page.blank();
        page.line("  Evidence");
    }
    for evidence in &finding.evidence {
        let (value, threshold) = number::evidence(evidence);
        let line = format!(
            "{} {} = {value} (rule: {}, threshold {threshold})",
            evidence.measurement, evidence.field, evidence.rule,
        );
        page.wrapped("    ", FAINT, &line);
    }
    for fix in &finding.fixes {
        self::fix(page, fix);
    }
    page.blank();
}

fn fix(page: &mut Page<'_>, fix: &Fix) {
    page.blank();
    let mut opening = page.paint(BOLD, "  Fix");
    opening.push_str(&format!(" on {}", actor(fix)));
    page.line(&opening);
    page.wrapped("    ", anstyle::Style::new(), &fix.summary);
    for command in fix.commands.iter().flat_map(|command| command.lines()) {
        page.line(&format!("      {}", clean(command)));
    }
    if !fix.expect.is_empty() {
        page.wrapped("    Expect: ", anstyle::Style::new(), &fix.expect);
    }
}

fn actor(fix: &Fix) -> String {
    let name = fix.on.name().replace('-', " ");
    match fix.on {
        Actor::ThisHost => name,
        Actor::Router | Actor::FarHost | Actor::Provider => format!("the {name}"),
    }
}

/// Streams that ended early, which the table of rates does not show.
fn stream_errors(page: &mut Page<'_>, run: &Run) {
    let mut any = false;
    for row in view::rates(run) {
        for stream in &row.result.streams {
            if let Some(error) = &stream.error {
                let flow = view::flow_in_phase(row.phase, row.result.direction);
                page.wrapped(
                    "! ",
                    anstyle::Style::new(),
                    &format!("{flow}, stream {} ended early: {error}", stream.id),
                );
                any = true;
            }
        }
    }
    for (_, udp) in view::udp(run) {
        if let Some(error) = &udp.error {
            let flow = view::flow(udp.direction);
            let line = format!("{flow}, UDP stream {} ended early: {error}", udp.stream);
            page.wrapped("! ", anstyle::Style::new(), &line);
            any = true;
        }
    }
    if any {
        page.blank();
    }
}

fn foot(page: &mut Page<'_>, run: &Run) {
    if !run.notes.is_empty() {
        let title = page.paint(BOLD, "Notes");
        page.line(&title);
        for note in &run.notes {
            page.wrapped("  · ", anstyle::Style::new(), note);
        }
        page.blank();
    }
    page.table(&tables::facts(run));
    if let Some(lab) = tables::lab(run) {
        page.wrapped("", FAINT, &lab);
    }
    let id = format!("plumb {}, run {}", run.plumb, run.id);
    page.wrapped("", FAINT, &id);
}

//! A comparison for the terminal.

use super::layout::{BOLD, FAINT, GOOD, Page, clean, severity};
use super::style::Style;
use crate::compare::{Comparison, FindingRef, table};
use crate::heading;

/// The whole comparison as text, each line ended.
pub fn render_comparison(comparison: &Comparison, style: &Style) -> String {
    let mut page = Page::new(style);
    if let Some(target) = &comparison.after.target {
        let title = page.paint(BOLD, &clean(target));
        page.line(&title);
        page.blank();
    }
    page.wrapped("", BOLD, &comparison.summary);
    page.blank();
    for note in &comparison.notes {
        page.wrapped("! ", anstyle::Style::new(), note);
    }
    if !comparison.notes.is_empty() {
        page.blank();
    }
    let changes = table::changes(comparison);
    match (changes.rows.is_empty(), &changes.note) {
        (false, _) => page.table(&changes),
        (true, Some(note)) => {
            page.wrapped("", FAINT, note);
            page.blank();
        }
        (true, None) => {}
    }
    let changes = &comparison.findings;
    findings(&mut page, "Gone", &changes.gone, true);
    findings(&mut page, "New", &changes.new, false);
    findings(&mut page, "Still there", &changes.still, false);
    findings(&mut page, "Not measured again", &changes.unmeasured, false);
    for (which, run) in [("before", &comparison.before), ("after", &comparison.after)] {
        page.wrapped(
            "",
            FAINT,
            &format!(
                "{which}  {}, run {}",
                heading::started(&run.started),
                run.id
            ),
        );
    }
    page.finish()
}

fn findings(page: &mut Page<'_>, title: &str, findings: &[FindingRef], good: bool) {
    if findings.is_empty() {
        return;
    }
    let title = page.paint(BOLD, title);
    page.line(&title);
    for finding in findings {
        let paint = if good {
            GOOD
        } else {
            severity(finding.severity)
        };
        let name = page.paint(paint, finding.cause.name());
        let place = page.paint(FAINT, &format!("  {}", finding.place.name()));
        page.line(&format!("  {name}{place}"));
        page.wrapped("    ", anstyle::Style::new(), &finding.summary);
        if let Some(note) = &finding.note {
            page.wrapped("    ", anstyle::Style::new(), note);
        }
    }
    page.blank();
}

//! Repeats of one check, for the terminal.

use super::layout::{BOLD, Page};
use super::style::Style;
use crate::baseline::Baseline;

/// What is stable, what comes and goes, and the numbers with their spread, each line ended.
pub fn render_baseline(baseline: &Baseline, style: &Style) -> String {
    let mut page = Page::new(style);
    page.wrapped("", BOLD, &baseline.head);
    page.blank();
    page.warned(&baseline.warnings);
    let parts = [
        ("Stable", &baseline.stable),
        ("Comes and goes", &baseline.comes_and_goes),
        ("Seldom: may be chance", &baseline.noise),
        ("Numbers that are worse now and then", &baseline.at_times),
    ];
    let nothing = parts.iter().take(3).all(|(_, all)| all.is_empty());
    if nothing {
        page.line("No check found anything worth fixing.");
        page.blank();
    }
    for (title, sentences) in parts {
        page.listed(title, sentences);
    }
    if !baseline.numbers.rows.is_empty() {
        page.table(&baseline.numbers);
    }
    page.finish()
}

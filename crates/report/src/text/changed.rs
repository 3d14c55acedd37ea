//! What is not the same as in another Run, for the terminal.

use super::layout::{BOLD, Page};
use super::style::Style;
use crate::changed::Changed;
use crate::compare::table::changes;

/// What it comes to, what the change speaks for, and the numbers, each line ended.
pub fn render_changed(changed: &Changed, style: &Style) -> String {
    let mut page = Page::new(style);
    page.wrapped("", BOLD, &changed.headline);
    page.blank();
    page.warned(&changed.warnings);
    let parts = [
        (changed.words.title, &changed.speaks_for),
        ("What else was found", &changed.others),
        ("What is not the same", &changed.facts),
    ];
    for (title, sentences) in parts {
        page.listed(title, sentences);
    }
    let mut table = changes(&changed.comparison);
    table.rows.retain(|row| row.better.is_some());
    if !table.rows.is_empty() {
        page.table(&table);
    }
    page.finish()
}

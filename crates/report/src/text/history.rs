//! What several Runs have found, for the terminal.

use super::layout::{BOLD, Page};
use super::style::Style;

/// The sentences of [`crate::history::history`], each line ended; nothing where there are none.
pub fn render_history(sentences: &[String], style: &Style) -> String {
    let mut page = Page::new(style);
    if let Some((first, findings)) = sentences.split_first() {
        page.wrapped("", BOLD, first);
        for finding in findings {
            page.wrapped("  · ", anstyle::Style::new(), finding);
        }
        page.blank();
    }
    page.finish()
}

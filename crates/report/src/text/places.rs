//! Checks towards several hosts, for the terminal.

use super::layout::{BOLD, Page};
use super::style::Style;
use crate::places::Places;

/// What it comes to, what is near, theirs, far and open, and the hosts with their numbers, each line ended.
pub fn render_places(places: &Places, style: &Style) -> String {
    let mut page = Page::new(style);
    page.wrapped("", BOLD, &places.headline);
    page.blank();
    page.warned(&places.warnings);
    let parts = [
        ("Near", &places.near),
        ("Theirs", &places.theirs),
        ("Far", &places.far),
        ("Open", &places.open),
    ];
    for (title, sentences) in parts {
        page.listed(title, sentences);
    }
    if !places.hosts.rows.is_empty() {
        page.table(&places.hosts);
    }
    page.finish()
}

//! What is known of a machine, whole, for users who want to read it all instead of what to fix.

use plumb_model::run::Run;

use super::layout::Page;
use super::style::Style;
use super::title::title;
use crate::host_sections::{self, HostSection};
use crate::kinds::host;

/// Whether a Run has what `render_host_sections` shows.
pub fn has_host_sections(run: &Run) -> bool {
    host::hosts(run).next().is_some()
}

/// The facts of `plumb host`: one section, or all.
pub fn render_host_sections(run: &Run, only: Option<HostSection>, style: &Style) -> String {
    let mut page = Page::new(style);
    title(&mut page, run);
    for table in host_sections::tables(run, only) {
        page.table(&table);
    }
    page.finish()
}

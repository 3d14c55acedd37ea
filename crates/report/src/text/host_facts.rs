//! What is known of a machine, whole, for whoever wants to read it instead of being told what to mend.

use plumb_model::run::Run;

use super::Style;
use super::layout::Page;
use super::run::title;
use crate::tables::host_facts::{self, HostSection};

/// The facts of `plumb host`: one section, or all.
pub fn render_host_facts(run: &Run, only: Option<HostSection>, style: &Style) -> String {
    let mut page = Page::new(style);
    title(&mut page, run);
    for table in host_facts::tables(run, only) {
        page.table(&table);
    }
    page.finish()
}

//! A Run in short, as ping and iperf3 end: what it comes to in sentences, the table that answers the question, and what
//! was found. All else is shown by `--details`.

use plumb_model::run::Run;

use super::findings::worth_fixing;
use super::layout::{FAINT, Page};
use super::run::{ended_early, head, not_measured};
use super::style::Style;
use crate::{contents, registry};

/// The Run in short, each line ended.
pub fn render_brief(run: &Run, style: &Style) -> String {
    let mut page = Page::new(style);
    head(&mut page, run);
    let sentences = registry::sentences(run);
    for sentence in &sentences {
        page.wrapped("", anstyle::Style::new(), sentence);
    }
    if !sentences.is_empty() {
        page.blank();
    }
    for table in contents::answers(run) {
        page.table(&table);
    }
    worth_fixing(&mut page, run);
    not_measured(&mut page, run);
    ended_early(&mut page, run);
    for note in &run.notes {
        page.wrapped("· ", FAINT, note);
    }
    if !run.notes.is_empty() {
        page.blank();
    }
    page.wrapped("", FAINT, "For all tables, add --details.");
    page.finish()
}

//! The first line of whatever is of a Run.

use plumb_model::run::Run;

use super::layout::{BOLD, FAINT, Page, clean};
use crate::heading;

/// Of what a Run is, and when it was made.
pub(super) fn title(page: &mut Page<'_>, run: &Run) {
    let title = page.paint(BOLD, &clean(&heading::target(run)));
    let when = page.paint(
        FAINT,
        &format!("  {}", clean(&heading::started(&run.started))),
    );
    page.line(&format!("{title}{when}"));
    page.blank();
}

//! The first line of whatever is of a Run.

use plumb_model::run::Run;

use super::layout::{BOLD, FAINT, Page, clean};
use crate::heading;

/// Of what a Run is, and when it was made.
pub(super) fn title(page: &mut Page<'_>, run: &Run) {
    let (what, when) = heading::subject(run);
    let title = page.paint(BOLD, &clean(&what));
    let when = page.paint(FAINT, &format!("  {}", clean(&when)));
    page.line(&format!("{title}{when}"));
    page.blank();
}

//! Standard error, which may be closed by now. Nothing is said past [`printable`].

use std::fmt::Display;
use std::io::Write as _;

use plumb_model::printable;

/// Says something to the user.
pub(crate) fn say(what: impl Display) {
    say_as("plumb", what);
}

/// The same where a part of plumb speaks.
pub(crate) fn say_as(who: &str, what: impl Display) {
    let text = format!("{who}: {what}\n");
    write(&printable::message(&text));
}

/// Text as it is, without a line feed.
pub(crate) fn prompt(text: &str) {
    write(&printable::lines(text));
}

/// The same with a page that `plumb_report` has set.
#[cfg(feature = "tune")]
pub(crate) fn prompt_page(page: &str) {
    write(&printable::page(page));
}

fn write(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

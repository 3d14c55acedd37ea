//! Standard error, which may be closed by now. Nothing is said past [`printable`].

use std::fmt::Display;
use std::io::Write as _;

use plumb_model::printable;

use crate::quiet::is_quiet;
use crate::wrapped::wrap;
use crate::{charset, status};

/// Prints a remark for the user, unless only the result is wanted.
pub(crate) fn say(what: impl Display) {
    if !is_quiet() {
        say_as("plumb", what);
    }
}

/// Prints why something failed.
pub(crate) fn fail(what: impl Display) {
    say_as("plumb", what);
}

/// The same where a part of plumb speaks.
pub(crate) fn say_as(who: &str, what: impl Display) {
    let text = format!("{who}: {what}\n");
    let text = printable::message(&text);
    match plumb_net::terminal::error_columns() {
        Some(columns) => {
            let mut lines = String::new();
            // A terminal breaks a line that takes all its columns.
            let width = columns.saturating_sub(1);
            text.lines()
                .for_each(|line| wrap(&mut lines, "", 0, line, width));
            write(&lines);
        }
        None => write(&text),
    }
}

/// Writes text and adds no line feed.
pub(crate) fn prompt(text: &str) {
    write(&printable::lines(text));
}

/// Asks a question that takes yes or no, and reads the answer from standard input.
pub(crate) fn ask(question: &str) -> std::io::Result<bool> {
    let answer = answer(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The line that the user answers with.
pub(crate) fn answer(question: &str) -> std::io::Result<String> {
    prompt(question);
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer)
}

/// Writes text that `plumb_report` has set as a page, and keeps its layout.
#[cfg(feature = "tune")]
pub(crate) fn prompt_page(page: &str) {
    write(&printable::page(page));
}

/// Prints what clap has set in its own colours.
pub(crate) fn print_styled(text: &str) {
    write(text);
}

fn write(text: &str) {
    let text = charset::shown(text);
    status::aside(|| {
        let mut stderr = anstream::stderr().lock();
        let _ = stderr
            .write_all(text.as_bytes())
            .and_then(|()| stderr.flush());
    });
}

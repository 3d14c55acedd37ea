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
    let text = printable::message(&text);
    match plumb_net::terminal::error_columns() {
        Some(columns) => {
            let lines = text.lines().map(|line| wrapped(line, columns) + "\n");
            write(&lines.collect::<String>());
        }
        None => write(&text),
    }
}

/// Lines broken between words, so that a terminal does not break them within one.
fn wrapped(text: &str, columns: usize) -> String {
    let mut broken = String::new();
    let mut taken = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if taken > 0 {
            let fits = taken + 1 + length < columns;
            broken.push(if fits { ' ' } else { '\n' });
            taken = if fits { taken + 1 } else { 0 };
        }
        broken.push_str(word);
        taken += length;
    }
    broken
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
    crate::status::aside(|| {
        let mut stderr = anstream::stderr().lock();
        let _ = stderr
            .write_all(text.as_bytes())
            .and_then(|()| stderr.flush());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_on_a_terminal_break_between_words() {
        let text = wrapped("plumb: about 22 s against server, and less", 20);
        assert_eq!(text, "plumb: about 22 s\nagainst server, and\nless");
        assert_eq!(
            wrapped("a-word-that-is-longer-than-a-line", 10),
            "a-word-that-is-longer-than-a-line"
        );
    }
}

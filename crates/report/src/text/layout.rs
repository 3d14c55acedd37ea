//! Lines and colours. Nothing from outside passes without [`clean`]: a name must not
//! move the cursor or retitle the terminal.

use anstyle::{AnsiColor, Style as Paint};
use plumb_model::finding::Severity;
use plumb_model::grade::Grade;
pub(super) use plumb_model::printable::line as clean;

use super::style::Style;

pub(super) const BOLD: Paint = Paint::new().bold();
pub(super) const FAINT: Paint = Paint::new().dimmed();
pub(super) const GOOD: Paint = AnsiColor::Green.on_default();
pub(super) const FAIR: Paint = AnsiColor::Yellow.on_default();
pub(super) const BAD: Paint = AnsiColor::Red.on_default();

/// Sentences in longer lines are hard to follow; tables take the whole width.
const MOST_PROSE_COLUMNS: usize = 100;

pub(super) struct Page<'a> {
    pub(super) style: &'a Style,
    text: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(style: &'a Style) -> Self {
        Self {
            style,
            text: String::new(),
        }
    }

    /// Characters in a line of sentences.
    pub(super) fn width(&self) -> usize {
        self.style.width.min(MOST_PROSE_COLUMNS)
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// The text in a colour, where colours are wanted.
    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        if self.style.color {
            format!("{paint}{text}{paint:#}")
        } else {
            text.to_owned()
        }
    }

    /// What must be known first, and a blank line where there is any of it.
    pub(super) fn warned(&mut self, warnings: &[String]) {
        for warning in warnings {
            self.wrapped("! ", BAD, warning);
        }
        if !warnings.is_empty() {
            self.blank();
        }
    }

    /// Sentences under their title, where there are any.
    pub(super) fn listed(&mut self, title: &str, sentences: &[String]) {
        if sentences.is_empty() {
            return;
        }
        let title = self.paint(BOLD, title);
        self.line(&title);
        for sentence in sentences {
            self.wrapped("  · ", FAINT, sentence);
        }
        self.blank();
    }

    /// One line, not wrapped, without blanks at its end.
    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Sentences, wrapped: `first` opens the first line and as many spaces open the others.
    pub(super) fn wrapped(&mut self, first: &str, paint: Paint, text: &str) {
        self.opened(first, first.chars().count(), paint, text);
    }

    /// The same where `first` opens every line.
    pub(super) fn ruled(&mut self, first: &str, paint: Paint, text: &str) {
        let room = self.width().saturating_sub(first.chars().count()).max(20);
        for line in wrap(&clean(text), room) {
            let line = format!("{first}{}", self.paint(paint, &line));
            self.line(&line);
        }
    }

    /// The same where `first` is painted, and takes `indent` columns.
    pub(super) fn opened(&mut self, first: &str, indent: usize, paint: Paint, text: &str) {
        let room = self.width().saturating_sub(indent).max(20);
        let mut opening = first.to_owned();
        for line in wrap(&clean(text), room) {
            let line = format!("{opening}{}", self.paint(paint, &line));
            self.line(&line);
            opening = " ".repeat(indent);
        }
    }
}

/// The colour of a severity.
pub(super) fn severity(severity: Severity) -> Paint {
    match severity {
        Severity::Critical => BAD.bold(),
        Severity::Warning => FAIR.bold(),
        Severity::Info => AnsiColor::Cyan.on_default().bold(),
    }
}

/// The colour of a mark.
pub(super) fn grade(grade: Grade) -> Paint {
    match grade {
        Grade::APlus | Grade::A => GOOD,
        Grade::B | Grade::C => FAIR,
        Grade::D | Grade::F => BAD,
    }
}

/// Breaks text at spaces into lines of at most `width` characters; a longer word stands alone.
/// A number is not parted from its unit.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The words of a text, a number and the unit behind it as one.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 10] = [
        "ms", "µs", "s", "%", "kbit/s", "Mbit/s", "Gbit/s", "kB", "MB", "GB",
    ];
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')']));
        match words.last_mut() {
            Some(last) if unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_units_stay() {
        assert_eq!(
            wrap("a delay of 668 ms here", 14),
            ["a delay of", "668 ms here"]
        );
        assert_eq!(wrap("", 10), Vec::<String>::new());
    }
}

//! Lines, colours and tables. Nothing from outside passes without [`clean`]: a name must not
//! move the cursor or retitle the terminal.

use anstyle::{AnsiColor, Style as Paint};
use comfy_table::{CellAlignment, Table as Grid, presets};
use plumb_model::finding::Severity;
use plumb_model::grade::Grade;

use super::Style;
use crate::tables::{Kind, Table};

pub(super) const BOLD: Paint = Paint::new().bold();
pub(super) const FAINT: Paint = Paint::new().dimmed();
pub(super) const GOOD: Paint = AnsiColor::Green.on_default();
pub(super) const FAIR: Paint = AnsiColor::Yellow.on_default();
pub(super) const BAD: Paint = AnsiColor::Red.on_default();

/// A cell longer than this is cut: a kernel's name must not push a table off the screen.
const CELL_CHARS: usize = 28;

/// Text being set.
pub(super) struct Page<'a> {
    style: &'a Style,
    text: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(style: &'a Style) -> Self {
        Self {
            style,
            text: String::new(),
        }
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

    /// One line as it is.
    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Sentences, wrapped: `first` opens the first line and as many spaces open the others.
    pub(super) fn wrapped(&mut self, first: &str, paint: Paint, text: &str) {
        self.opened(first, first.chars().count(), paint, text);
    }

    /// The same where `first` is painted, and takes `indent` columns.
    pub(super) fn opened(&mut self, first: &str, indent: usize, paint: Paint, text: &str) {
        let room = self.style.width.saturating_sub(indent).max(20);
        let mut opening = first.to_owned();
        for line in wrap(&clean(text), room) {
            let line = format!("{opening}{}", self.paint(paint, &line));
            self.line(&line);
            opening = " ".repeat(indent);
        }
    }

    /// A table: title, head, rows, note.
    pub(super) fn table(&mut self, table: &Table) {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        grid.set_header(table.columns.iter().map(|column| column.name));
        let room = self.room_of_sentences(table);
        for row in &table.rows {
            let kinds = table.columns.iter().map(|column| column.kind);
            grid.add_row(row.cells.iter().zip(kinds).map(|(cell, kind)| match kind {
                Kind::Sentence => wrap(&clean(cell), room).join("\n"),
                _ => shorten(&clean(cell)),
            }));
        }
        for (index, column) in table.columns.iter().enumerate() {
            if let Some(set) = grid.column_mut(index) {
                set.set_padding((2, 0));
                if !matches!(column.kind, Kind::Text | Kind::Sentence) {
                    set.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        let title = self.paint(BOLD, &clean(&table.title));
        self.line(&title);
        let headless = table.columns.iter().all(|column| column.name.is_empty());
        // Only a table without sentences has rows that are better or worse, and a line for each row.
        let moods = std::iter::once(None)
            .chain(table.rows.iter().map(|row| Some(row.better)))
            .chain(std::iter::repeat(Some(None)));
        for (line, mood) in grid.lines().zip(moods).skip(usize::from(headless)) {
            let line = match mood {
                None => self.paint(FAINT, line.trim_end()),
                Some(Some(true)) => self.paint(GOOD, line.trim_end()),
                Some(Some(false)) => self.paint(BAD, line.trim_end()),
                Some(None) => line,
            };
            self.line(&line);
        }
        if let Some(note) = &table.note {
            self.wrapped("  ", FAINT, note);
        }
        self.blank();
    }
}

impl Page<'_> {
    /// Columns that are left for the last column, when it holds sentences.
    fn room_of_sentences(&self, table: &Table) -> usize {
        /// A sentence in fewer columns is a tower of words.
        const LEAST: usize = 30;
        /// Before every column.
        const PADDING: usize = 2;
        let others: usize = table
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.kind != Kind::Sentence)
            .map(|(index, column)| {
                let cells = table.rows.iter().filter_map(|row| row.cells.get(index));
                let widest = cells
                    .map(|cell| shorten(&clean(cell)).chars().count())
                    .max();
                widest.unwrap_or_default().max(column.name.chars().count()) + PADDING
            })
            .sum();
        self.style.width.saturating_sub(others + PADDING).max(LEAST)
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

/// Text without characters that command a terminal or reorder what is read (Unicode Cc, and the
/// bidirectional controls of UAX 9).
pub(super) fn clean(text: &str) -> String {
    let commands = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
    };
    text.chars()
        .map(|c| {
            if c == '\n' || c == '\t' {
                ' '
            } else if commands(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= CELL_CHARS {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(CELL_CHARS - 1).collect();
    cut.push('…');
    cut
}

/// Breaks text at spaces into lines of at most `width` characters; a longer word stands alone.
/// A number is not parted from its unit.
fn wrap(text: &str, width: usize) -> Vec<String> {
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

    #[test]
    fn no_command_reaches_the_terminal() {
        assert_eq!(
            clean("a\u{1b}[2Jb\u{9b}c\u{202e}d\ne"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d e"
        );
    }
}

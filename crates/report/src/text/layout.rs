//! Lines, colours and tables. Nothing from outside passes without [`clean`]: a name must not
//! move the cursor or retitle the terminal.

use anstyle::{AnsiColor, Style as Paint};
use comfy_table::{CellAlignment, Table as Grid, presets};
use plumb_model::finding::Severity;
use plumb_model::grade::Grade;
pub(super) use plumb_model::printable::line as clean;

use super::style::Style;
use crate::table::{Kind, Table};

pub(super) const BOLD: Paint = Paint::new().bold();
pub(super) const FAINT: Paint = Paint::new().dimmed();
pub(super) const GOOD: Paint = AnsiColor::Green.on_default();
pub(super) const FAIR: Paint = AnsiColor::Yellow.on_default();
pub(super) const BAD: Paint = AnsiColor::Red.on_default();

/// A cell longer than this takes several lines, and a longer word in it is cut: a kernel's name must not
/// push a table off the screen. The longest address of IPv6 fits.
const CELL_CHARS: usize = 39;

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
        let sentences = self.sentences(table);
        let columns = match sentences {
            Sentences::Beneath => table.columns.len().saturating_sub(1),
            Sentences::None | Sentences::Beside(_) => table.columns.len(),
        };
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| {
                let last = row.cells.len().saturating_sub(1);
                let set = |(index, cell): (usize, &String)| match sentences {
                    Sentences::Beside(room) if index == last => wrap(&clean(cell), room).join("\n"),
                    _ => fold(&clean(cell)),
                };
                row.cells
                    .iter()
                    .enumerate()
                    .take(columns)
                    .map(set)
                    .collect()
            })
            .collect();
        let grid = grid(table, &rows, columns);
        let title = self.paint(BOLD, &clean(&table.title));
        self.line(&title);
        let headless = table.columns.iter().all(|column| column.name.is_empty());
        let mut lines = grid.lines();
        if let Some(head) = lines.next().filter(|_| !headless) {
            let head = self.paint(FAINT, head.trim_end());
            self.line(&head);
        }
        for (row, cells) in table.rows.iter().zip(&rows) {
            let height = cells.iter().map(|cell| cell.lines().count()).max();
            for line in lines.by_ref().take(height.unwrap_or_default().max(1)) {
                let line = match row.better {
                    Some(true) => self.paint(GOOD, line.trim_end()),
                    Some(false) => self.paint(BAD, line.trim_end()),
                    None => line,
                };
                self.line(&line);
            }
            if let (Sentences::Beneath, Some(cell)) = (sentences, row.cells.get(columns)) {
                self.beneath(table.columns.get(columns).map(|column| column.name), cell);
            }
        }
        if let Some(note) = &table.note {
            self.wrapped("  ", FAINT, note);
        }
        self.blank();
    }

    /// A cell of the last column, under its row.
    fn beneath(&mut self, name: Option<&str>, cell: &str) {
        const INDENT: &str = "      ";
        let opening = match name {
            None | Some("") => INDENT.to_owned(),
            Some(name) => format!("{INDENT}{name}: "),
        };
        self.wrapped(&opening, Paint::new(), cell);
    }
}

/// Where the sentences of a table go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sentences {
    None,
    /// In its last column, which has so much room.
    Beside(usize),
    /// Each under its row, for want of room.
    Beneath,
}

impl Page<'_> {
    /// Where the sentences go: what is in the last column, where it is for sentences or holds words that
    /// take more than a cell.
    fn sentences(&self, table: &Table) -> Sentences {
        /// A sentence in fewer columns is a tower of words.
        const LEAST: usize = 30;
        const PADDING: usize = 2;
        let Some((last, others)) = table.columns.split_last() else {
            return Sentences::None;
        };
        let long = |cell: &String| cell.chars().count() > CELL_CHARS;
        let any = match last.kind {
            Kind::Sentence => true,
            Kind::Text => table
                .rows
                .iter()
                .filter_map(|row| row.cells.get(others.len()))
                .any(long),
            Kind::Number | Kind::Grade => false,
        };
        if !any {
            return Sentences::None;
        }
        let taken: usize = others
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let cells = table.rows.iter().filter_map(|row| row.cells.get(index));
                let widest = cells.map(|cell| widest_line(&fold(&clean(cell)))).max();
                widest.unwrap_or_default().max(column.name.chars().count()) + PADDING
            })
            .sum();
        match self.style.width.saturating_sub(taken + PADDING) {
            room if room < LEAST => Sentences::Beneath,
            room => Sentences::Beside(room),
        }
    }
}

/// The first columns of a table with what is in their cells.
fn grid(table: &Table, rows: &[Vec<String>], columns: usize) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING);
    grid.set_header(table.columns.iter().take(columns).map(|column| column.name));
    for cells in rows {
        grid.add_row(cells);
    }
    for (index, column) in table.columns.iter().take(columns).enumerate() {
        if let Some(set) = grid.column_mut(index) {
            set.set_padding((2, 0));
            if !matches!(column.kind, Kind::Text | Kind::Sentence) {
                set.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    grid
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

/// A cell in as many lines as it takes, each no longer than a cell.
fn fold(text: &str) -> String {
    if text.chars().count() <= CELL_CHARS {
        return text.to_owned();
    }
    let lines = wrap(text, CELL_CHARS);
    let lines: Vec<String> = lines.iter().map(|line| shorten(line)).collect();
    lines.join("\n")
}

fn widest_line(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or_default()
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

    fn set(table: &Table, width: usize) -> String {
        let style = Style {
            color: false,
            width,
        };
        let mut page = Page::new(&style);
        page.table(table);
        page.finish()
    }

    fn routes() -> Table {
        let mut table = Table::new(
            "Ways",
            &[
                ("route", Kind::Number),
                ("sent", Kind::Number),
                ("hops", Kind::Text),
            ],
        );
        for (number, last) in ["10.0.9.1", "10.0.9.2"].iter().enumerate() {
            let hops = format!("10.0.0.1 10.0.1.1 10.0.2.1 10.0.3.1 10.0.4.1 10.0.5.1 {last}");
            table.row([number.to_string(), "3".to_owned(), hops]);
        }
        table
    }

    #[test]
    fn what_takes_more_than_a_cell_is_shown_whole_beside_its_row_or_under_it() {
        for width in [40, 60, 100] {
            let text = set(&routes(), width);
            assert!(!text.contains('…'), "{text}");
            assert!(
                text.contains("10.0.9.1") && text.contains("10.0.9.2"),
                "{text}"
            );
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
        }
        assert!(set(&routes(), 40).contains("      hops: 10.0.0.1"));
    }

    #[test]
    fn a_cell_in_the_middle_takes_lines_and_a_row_keeps_its_colour() {
        let long = "one two three four five six seven eight nine ten";
        let address = "2001:db8:1111:2222:3333:4444:5555:6666";
        let mut table = Table::new("x", &[("", Kind::Text), ("n", Kind::Number)]);
        table.row([long.to_owned(), "1".to_owned()]);
        table.row([address.to_owned(), "2".to_owned()]);
        let text = set(&table, 80);
        assert!(long.split(' ').all(|word| text.contains(word)), "{text}");
        assert!(text.contains(address), "{text}");
        for row in &mut table.rows {
            row.better = Some(true);
        }
        let style = Style {
            color: true,
            width: 80,
        };
        let mut page = Page::new(&style);
        page.table(&table);
        let text = page.finish();
        let green = format!("{GOOD}");
        assert_eq!(text.matches(green.as_str()).count(), 3, "{text}");
    }
}

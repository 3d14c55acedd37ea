//! Tables in columns of characters, never wider than the page: a table that is, is set in several blocks of columns
//! under each other, each of which begins with the columns that name the rows.

use anstyle::Style as Paint;
use comfy_table::{CellAlignment, Table as Grid, presets};

use super::layout::{BAD, BOLD, FAINT, GOOD, Page, clean, wrap};
use crate::table::{Kind, Table};

/// A cell longer than this takes several lines, and a longer word in it is cut: a kernel's name must not
/// push a table off the screen. The longest address of IPv6 fits.
const CELL_CHARS: usize = 39;

/// Columns of characters before each column.
const PADDING: usize = 2;

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
        self.wrapped("", BOLD, &table.title);
        let blocks = blocks(table, &rows, columns, self.style.width);
        let last = blocks.len().saturating_sub(1);
        for (number, block) in blocks.iter().enumerate() {
            let beneath = sentences == Sentences::Beneath && number == last;
            self.block(table, &rows, block, beneath.then_some(columns));
        }
        if let Some(note) = &table.note {
            self.wrapped("  ", FAINT, note);
        }
        self.blank();
    }

    /// Some columns of a table, with the sentences of column `beneath` under the rows.
    fn block(
        &mut self,
        table: &Table,
        rows: &[Vec<String>],
        block: &[usize],
        beneath: Option<usize>,
    ) {
        let of_block = |row: &Vec<String>| -> Vec<String> {
            let cell = |index: &usize| row.get(*index).cloned().unwrap_or_default();
            block.iter().map(cell).collect()
        };
        let rows: Vec<Vec<String>> = rows.iter().map(of_block).collect();
        let grid = grid(table, &rows, block);
        let named = |index: &usize| {
            table
                .columns
                .get(*index)
                .is_some_and(|c| !c.name.is_empty())
        };
        let headless = !block.iter().any(named);
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
            if let Some((index, cell)) = beneath.and_then(|i| Some((i, row.cells.get(i)?))) {
                self.beneath(table.columns.get(index).map(|column| column.name), cell);
            }
        }
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

    /// Where the sentences go: what is in the last column, where it is for sentences or holds words that
    /// take more than a cell.
    fn sentences(&self, table: &Table) -> Sentences {
        /// A sentence in fewer columns is a tower of words.
        const LEAST: usize = 30;
        let Some((last, others)) = table.columns.split_last() else {
            return Sentences::None;
        };
        let long = |cell: &String| cell.chars().count() > CELL_CHARS;
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| row.cells.iter().map(|cell| fold(&clean(cell))).collect())
            .collect();
        let taken: usize = (0..others.len())
            .map(|index| width(table, &rows, index))
            .sum();
        // Remarks that do not fit beside their row.
        let remarks = last.kind == Kind::Text
            && last.name.is_empty()
            && !others.is_empty()
            && taken + width(table, &rows, others.len()) > self.style.width;
        let any = match last.kind {
            Kind::Sentence => true,
            Kind::Text => table
                .rows
                .iter()
                .filter_map(|row| row.cells.get(others.len()))
                .any(long),
            Kind::Number | Kind::Grade => false,
        };
        if !any && !remarks {
            return Sentences::None;
        }
        match self.style.width.saturating_sub(taken + PADDING) {
            room if room < LEAST => Sentences::Beneath,
            room => Sentences::Beside(room),
        }
    }
}

/// Columns of characters that a column takes, with what parts it from the one before.
fn width(table: &Table, rows: &[Vec<String>], index: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(index));
    let widest = cells
        .map(|cell| widest_line(cell))
        .max()
        .unwrap_or_default();
    let name = table
        .columns
        .get(index)
        .map_or(0, |column| column.name.chars().count());
    widest.max(name) + PADDING
}

/// The first columns of a table by blocks that are no wider than the page; each begins with the columns that name the
/// rows.
fn blocks(table: &Table, rows: &[Vec<String>], columns: usize, most: usize) -> Vec<Vec<usize>> {
    let keys: Vec<usize> = (0..keys(table, rows, columns, most)).collect();
    let begins: usize = keys.iter().map(|index| width(table, rows, *index)).sum();
    let mut blocks = vec![keys.clone()];
    let mut taken = begins;
    for index in keys.len()..columns {
        let wide = width(table, rows, index);
        match blocks.last_mut() {
            Some(block) if taken + wide <= most || block.len() == keys.len() => {
                block.push(index);
                taken += wide;
            }
            _ => {
                blocks.push(keys.iter().copied().chain([index]).collect());
                taken = begins + wide;
            }
        }
    }
    blocks
}

/// How many columns name the rows: the words before the first number, as far as they leave half of the page; the first
/// where no number follows.
fn keys(table: &Table, rows: &[Vec<String>], columns: usize, most: usize) -> usize {
    let kinds = || table.columns.iter().take(columns).map(|column| column.kind);
    let words = kinds().take_while(|kind| *kind == Kind::Text).count();
    if words == kinds().count() {
        return 1.min(columns);
    }
    let mut taken = 0;
    let fits = |index: &usize| {
        taken += width(table, rows, *index);
        taken <= most / 2
    };
    (0..words).take_while(fits).count().max(1)
}

/// Some columns of a table with what is in their cells.
fn grid(table: &Table, rows: &[Vec<String>], block: &[usize]) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING);
    let columns = || block.iter().filter_map(|index| table.columns.get(*index));
    grid.set_header(columns().map(|column| column.name));
    for cells in rows {
        grid.add_row(cells);
    }
    for (index, column) in columns().enumerate() {
        if let Some(set) = grid.column_mut(index) {
            set.set_padding((2, 0));
            if !matches!(column.kind, Kind::Text | Kind::Sentence) {
                set.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    grid
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

#[cfg(test)]
mod tests {
    use super::super::style::Style;
    use super::*;

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

    #[test]
    fn each_block_repeats_all_columns_that_name_a_row() {
        let mut table = Table::new(
            "x",
            &[
                ("", Kind::Text),
                ("to", Kind::Text),
                ("p50", Kind::Number),
                ("p95", Kind::Number),
            ],
        );
        table.row(["upload", "gateway", "1111111111", "2222222222"].map(str::to_owned));
        table.row(["upload", "first hop", "3333333333", "4444444444"].map(str::to_owned));
        let text = set(&table, 40);
        for named in ["gateway", "first hop"] {
            assert_eq!(text.matches(named).count(), 2, "{text}");
        }
        // Words that are values do not name rows.
        let mut values = Table::new(
            "x",
            &[("", Kind::Text), ("a", Kind::Text), ("b", Kind::Text)],
        );
        values.row(["name", "1111111111111111", "2222222222222222"].map(str::to_owned));
        assert_eq!(set(&values, 40).matches("1111111111111111").count(), 1);
    }

    #[test]
    fn a_table_wider_than_the_page_is_set_in_blocks_that_begin_alike() {
        let columns: Vec<(&'static str, Kind)> = ["", "alpha", "beta", "gamma", "delta"]
            .into_iter()
            .map(|name| (name, Kind::Number))
            .collect();
        let mut table = Table::new("wide", &columns);
        table.row(
            [
                "upload",
                "1111111111",
                "2222222222",
                "3333333333",
                "4444444444",
            ]
            .map(str::to_owned),
        );
        let text = set(&table, 40);
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert_eq!(text.matches("upload").count(), 2, "{text}");
        for value in ["1111111111", "2222222222", "3333333333", "4444444444"] {
            assert_eq!(text.matches(value).count(), 1, "{text}");
        }
        assert_eq!(set(&table, 100).matches("upload").count(), 1);
    }
}

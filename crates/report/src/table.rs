//! Tables of text, for the terminal and the page alike.

use plumb_model::distribution::Distribution;
use serde::Serialize;

use crate::number::ABSENT;

/// A table whose cells are text.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Table {
    /// What it shows, with the unit where the whole table has one.
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What must be known to read it.
    pub(crate) note: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// What a column holds, which decides how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Words, set from the left.
    Text,
    /// Numbers, set from the right.
    Number,
    Grade,
    /// A sentence, as long as it has to be; only in the last column.
    Sentence,
}

/// A row of a table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// In a comparison, whether the change is for the better.
    pub(crate) better: Option<bool>,
}

/// What can stand in a cell; a value that is not known is a dash.
pub(crate) trait Cell {
    fn cell(self) -> String;
}

impl Cell for String {
    fn cell(self) -> String {
        self
    }
}

impl Cell for &str {
    fn cell(self) -> String {
        self.to_owned()
    }
}

impl Cell for &String {
    fn cell(self) -> String {
        self.clone()
    }
}

impl<C: Cell> Cell for Option<C> {
    fn cell(self) -> String {
        self.map_or_else(|| ABSENT.to_owned(), Cell::cell)
    }
}

macro_rules! counts {
    ($($count:ty),*) => {$(
        impl Cell for $count {
            fn cell(self) -> String {
                self.to_string()
            }
        }
    )*};
}
counts!(i64, u8, u16, u32, u64, usize);

/// A value that leaves its cell empty where there is none, since a dash would say too much.
pub(crate) fn blank(value: Option<impl Cell>) -> String {
    value.map_or_else(String::new, Cell::cell)
}

/// A count that is only worth a cell where it is not zero.
pub(crate) fn counted(count: u64) -> String {
    blank((count > 0).then_some(count))
}

/// Things by how often they were: `a ×3, b ×1`.
pub(crate) fn by_count<'a>(each: impl IntoIterator<Item = (&'a String, &'a u64)>) -> String {
    let each = each.into_iter();
    each.map(|(what, times)| format!("{what} ×{times}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What is known of several things, parted by commas.
pub(crate) fn list(parts: impl IntoIterator<Item = Option<String>>) -> String {
    let known: Vec<_> = parts.into_iter().flatten().collect();
    known.join(", ")
}

/// A switch in words.
pub(crate) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, columns: &[(&'static str, Kind)]) -> Self {
        let columns = columns
            .iter()
            .map(|(name, kind)| Column { name, kind: *kind })
            .collect();
        Self {
            title: title.into(),
            columns,
            rows: Vec::new(),
            note: None,
        }
    }

    /// A table with a row for each of `rows`, to be given its columns one after the other.
    pub(crate) fn of<R>(title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Layout<R> {
        let subjects: Vec<R> = rows.into_iter().collect();
        let mut table = Self::new(title, &[]);
        for _ in &subjects {
            table.row([]);
        }
        Layout { table, subjects }
    }

    /// The same without the columns that hold nothing in any row.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        for index in (0..self.columns.len()).rev() {
            let empty = |row: &Row| row.cells.get(index).is_none_or(String::is_empty);
            if self.rows.iter().all(empty) {
                self.columns.remove(index);
                for row in self.rows.iter_mut().filter(|row| index < row.cells.len()) {
                    row.cells.remove(index);
                }
            }
        }
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row {
            cells: cells.into_iter().collect(),
            better: None,
        });
    }
}

/// A table being laid: each column has its head and how it shows what a row is of.
pub(crate) struct Layout<R> {
    table: Table,
    subjects: Vec<R>,
}

/// A value of a distribution, with its head.
pub(crate) type Figure = (&'static str, fn(&Distribution) -> f64);

pub(crate) const MIN: Figure = ("min", |d| d.min);
pub(crate) const P50: Figure = ("p50", |d| d.p50);
pub(crate) const P95: Figure = ("p95", |d| d.p95);
pub(crate) const P99: Figure = ("p99", |d| d.p99);
pub(crate) const MAX: Figure = ("max", |d| d.max);

impl<R> Layout<R> {
    pub(crate) fn column<C: Cell>(
        mut self,
        name: &'static str,
        kind: Kind,
        show: impl Fn(&R) -> C,
    ) -> Self {
        self.table.columns.push(Column { name, kind });
        for (row, subject) in self.table.rows.iter_mut().zip(&self.subjects) {
            row.cells.push(show(subject).cell());
        }
        self
    }

    /// A column of words.
    pub(crate) fn text<C: Cell>(self, name: &'static str, show: impl Fn(&R) -> C) -> Self {
        self.column(name, Kind::Text, show)
    }

    /// A column of numbers.
    pub(crate) fn num<C: Cell>(self, name: &'static str, show: impl Fn(&R) -> C) -> Self {
        self.column(name, Kind::Number, show)
    }

    /// A column of sentences; only the last.
    pub(crate) fn sentence<C: Cell>(self, name: &'static str, show: impl Fn(&R) -> C) -> Self {
        self.column(name, Kind::Sentence, show)
    }

    /// A column of numbers for each of some values of a distribution.
    pub(crate) fn figures<C: Cell, const N: usize>(
        self,
        figures: [Figure; N],
        of: impl Fn(&R) -> Option<Distribution>,
        show: impl Fn(Option<f64>) -> C,
    ) -> Self {
        figures.into_iter().fold(self, |layout, (name, get)| {
            layout.num(name, |row| show(of(row).as_ref().map(get)))
        })
    }

    pub(crate) fn done(self) -> Table {
        self.table
    }

    /// The table with what must be known to read it.
    pub(crate) fn noted(self, note: impl Into<String>) -> Table {
        let mut table = self.table;
        table.note = Some(note.into());
        table
    }

    /// The table with sentences under it, where there are any.
    pub(crate) fn noting<S: Into<String>>(self, notes: impl IntoIterator<Item = S>) -> Table {
        let notes: Vec<String> = notes.into_iter().map(Into::into).collect();
        let mut table = self.table;
        table.note = (!notes.is_empty()).then(|| notes.join(" "));
        table
    }
}

/// A table of names and what is known of them.
pub(crate) struct Facts(Table);

impl Facts {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self(Table::new(title, &[("", Kind::Text), ("", Kind::Sentence)]))
    }

    /// A fact, where it is known.
    pub(crate) fn fact(&mut self, name: &str, text: impl Into<Option<String>>) {
        if let Some(text) = text.into().filter(|text| !text.is_empty()) {
            self.0.row([name.to_owned(), text]);
        }
    }

    pub(crate) fn into_table(self) -> Table {
        self.0
    }
}

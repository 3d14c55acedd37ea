//! A table that is written row by row, in one of several forms.

use std::io;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    /// A time of day, UTC.
    Time,
    Count,
    Number,
}

/// A column: its name, and what its values are.
pub(super) type Column = (&'static str, Type);

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    Text(&'a str),
    /// µs since 1970, known to the microsecond.
    Moment(i64),
    /// s since 1970, known to the second.
    Second(i64),
    Count(u64),
    Number(f64),
    /// A number of which no more is known than its whole part.
    Whole(f64),
    /// What is not known.
    Nothing,
}

impl Cell<'_> {
    /// A number that may not be known.
    pub(super) fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Nothing, Self::Number)
    }
}

/// Where rows go. Their cells come in the order of the columns.
pub(super) trait Sheet {
    fn cell(&mut self, cell: Cell<'_>);

    fn next(&mut self) -> io::Result<()>;

    /// Writes what waits, and ends the table.
    fn end(self: Box<Self>) -> io::Result<()>;
}

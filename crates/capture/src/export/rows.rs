//! A row for each segment, as CSV (RFC 4180) or as an object of JSON a line.

mod csv;
mod json;
mod row;

use std::io::{self, Write};

use crate::followed::{Followed, Observer};
use row::Row;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Csv,
    JsonLines,
}

/// Writes a row for each segment. Payload is never among it.
pub struct Rows<W> {
    out: W,
    form: Form,
    /// When the first packet of the capture came.
    began_ns: Option<u64>,
    line: String,
    failed: Option<io::Error>,
}

impl<W: Write> Rows<W> {
    /// Begins with the names of the columns, where the form has them.
    pub fn begin(out: W, form: Form) -> Self {
        let mut rows = Self {
            out,
            form,
            began_ns: None,
            line: String::new(),
            failed: None,
        };
        if form == Form::Csv {
            csv::head(&mut rows.line);
            rows.put();
        }
        rows
    }

    fn put(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(self.line.as_bytes()).err();
        }
        self.line.clear();
    }

    /// Writes what is left of the rows.
    ///
    /// # Errors
    /// When not all of them could be written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

impl<W: Write> Observer for Rows<W> {
    fn begin(&mut self, unix_ns: u64) {
        self.began_ns.get_or_insert(unix_ns);
    }

    fn segment(&mut self, followed: &Followed<'_>) {
        let row = Row {
            followed,
            began_ns: self.began_ns.unwrap_or(followed.unix_ns),
        };
        match self.form {
            Form::Csv => csv::row(&mut self.line, &row),
            Form::JsonLines => json::row(&mut self.line, &row),
        }
        self.put();
    }

    fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}

#[cfg(test)]
#[path = "rows/tests.rs"]
mod tests;

//! CSV (RFC 4180): times of RFC 3339, and nothing between the commas of what is not known.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use jiff::Timestamp;

use super::sheet::{Cell, Column, Sheet};

pub(super) struct Csv<W> {
    out: W,
    /// The row so far, with a comma after each value.
    line: String,
}

impl<W: Write> Csv<W> {
    pub(super) fn begin(out: W, columns: &[Column]) -> io::Result<Self> {
        let line = columns.iter().map(|(name, _)| format!("{name},")).collect();
        let mut this = Self { out, line };
        this.next()?;
        Ok(this)
    }

    fn put(&mut self, value: impl fmt::Display) {
        // Writing to text does not fail.
        let _ = write!(self.line, "{value},");
    }

    /// Text within quotation marks where it needs them. Characters that command a terminal become blanks.
    fn text(&mut self, text: &str) {
        let text = text.replace(char::is_control, " ");
        match text.contains([',', '"']) {
            true => self.put(format_args!("\"{}\"", text.replace('"', "\"\""))),
            false => self.put(text),
        }
    }
}

impl<W: Write> Sheet for Csv<W> {
    fn cell(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Text(text) => self.text(text),
            Cell::Moment(us) => match Timestamp::from_microsecond(us) {
                Ok(time) => self.put(format_args!("{time:.6}")),
                Err(_) => self.put(""),
            },
            Cell::Second(at_s) => match Timestamp::from_second(at_s) {
                Ok(time) => self.put(time),
                Err(_) => self.put(""),
            },
            Cell::Count(count) => self.put(count),
            Cell::Number(number) => self.put(number),
            Cell::Whole(number) => self.put(format_args!("{number:.0}")),
            Cell::Nothing => self.put(""),
        }
    }

    fn next(&mut self) -> io::Result<()> {
        self.line.pop();
        self.line.push_str("\r\n");
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::export::sheet::Type;

    proptest! {
        /// However a name is written, it is one value of one row.
        #[test]
        fn any_text_is_one_value(text in "\\PC{0,20}|[,\"\r\n\u{1b}a]{0,9}") {
            let mut out = Vec::new();
            let mut rows = Csv::begin(&mut out, &[("a", Type::Text), ("b", Type::Count)]).unwrap();
            rows.cell(Cell::Text(&text));
            rows.cell(Cell::Count(1));
            rows.next().unwrap();
            Box::new(rows).end().unwrap();
            let line = String::from_utf8(out).unwrap();
            let line = line.strip_prefix("a,b\r\n").unwrap();
            let mut quoted = false;
            let commas = line.chars().filter(|c| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            });
            prop_assert_eq!(commas.count(), 1);
            prop_assert_eq!(line.matches(['\r', '\n', '\u{1b}']).count(), 2);
        }
    }
}

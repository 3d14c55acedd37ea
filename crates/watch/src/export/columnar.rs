//! Apache Parquet, packed by Snappy: each column by itself, with its type, and null for what is not known.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::sheet::{Cell, Column, Sheet, Type};

/// Rows of a group: they wait in memory until the group is written, in 20 MB of the widest table.
const GROUP_ROWS: usize = 1 << 17;

pub(super) struct Columnar<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Values>,
    /// The column of the next cell.
    at: usize,
    /// Rows that wait to be a group.
    rows: usize,
}

/// The values of a column that are known, and for each row 1 where it has one, else 0.
struct Values {
    known: Known,
    levels: Vec<i16>,
}

enum Known {
    Texts(Vec<ByteArray>),
    /// Times in µs since 1970, or counts.
    Whole(Vec<i64>),
    Numbers(Vec<f64>),
}

impl Values {
    fn of(kind: Type) -> Self {
        Self {
            known: match kind {
                Type::Text => Known::Texts(Vec::new()),
                Type::Time | Type::Count => Known::Whole(Vec::new()),
                Type::Number => Known::Numbers(Vec::new()),
            },
            levels: Vec::new(),
        }
    }

    fn add(&mut self, cell: Cell<'_>) {
        let whole = match cell {
            Cell::Moment(us) => Some(us),
            Cell::Second(at_s) => at_s.checked_mul(1_000_000),
            Cell::Count(count) => i64::try_from(count).ok(),
            Cell::Text(_) | Cell::Number(_) | Cell::Whole(_) | Cell::Nothing => None,
        };
        let is_known = match (&mut self.known, cell) {
            (Known::Texts(texts), Cell::Text(text)) => {
                texts.push(text.into());
                true
            }
            (Known::Numbers(numbers), Cell::Number(number) | Cell::Whole(number)) => {
                numbers.push(number);
                true
            }
            (Known::Whole(values), _) => {
                values.extend(whole);
                whole.is_some()
            }
            _ => false,
        };
        self.levels.push(i16::from(is_known));
    }

    fn write(&mut self, to: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(self.levels.as_slice());
        match (&self.known, to) {
            (Known::Texts(texts), ColumnWriter::ByteArrayColumnWriter(to)) => {
                to.write_batch(texts, levels, None)?;
            }
            (Known::Whole(values), ColumnWriter::Int64ColumnWriter(to)) => {
                to.write_batch(values, levels, None)?;
            }
            (Known::Numbers(numbers), ColumnWriter::DoubleColumnWriter(to)) => {
                to.write_batch(numbers, levels, None)?;
            }
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        }
        self.levels.clear();
        match &mut self.known {
            Known::Texts(texts) => texts.clear(),
            Known::Whole(values) => values.clear(),
            Known::Numbers(numbers) => numbers.clear(),
        }
        Ok(())
    }
}

impl<W: Write + Send> Columnar<W> {
    pub(super) fn begin(out: W, columns: &[Column]) -> io::Result<Self> {
        let fields = columns.iter().map(|(name, kind)| {
            let kind = match kind {
                Type::Text => format!("binary {name} (UTF8)"),
                Type::Time => format!("int64 {name} (TIMESTAMP(MICROS,true))"),
                Type::Count => format!("int64 {name}"),
                Type::Number => format!("double {name}"),
            };
            format!("optional {kind};")
        });
        let fields = fields.collect::<String>();
        let schema = parse_message_type(&format!("message history {{ {fields} }}"));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("plumb ", env!("CARGO_PKG_VERSION")).to_owned());
        let writer = SerializedFileWriter::new(
            out,
            Arc::new(schema.map_err(failed)?),
            Arc::new(properties.build()),
        );
        Ok(Self {
            writer: writer.map_err(failed)?,
            columns: columns.iter().map(|(_, kind)| Values::of(*kind)).collect(),
            at: 0,
            rows: 0,
        })
    }

    /// Writes the rows that wait as a group.
    fn group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for values in &mut self.columns {
            if let Some(mut column) = group.next_column()? {
                values.write(column.untyped())?;
                column.close()?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> Sheet for Columnar<W> {
    fn cell(&mut self, cell: Cell<'_>) {
        if let Some(column) = self.columns.get_mut(self.at) {
            column.add(cell);
        }
        self.at += 1;
    }

    fn next(&mut self) -> io::Result<()> {
        self.at = 0;
        self.rows += 1;
        match self.rows < GROUP_ROWS {
            true => Ok(()),
            false => self.group().map_err(failed),
        }
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.group().map_err(failed)?;
        self.writer.close().map_err(failed).map(drop)
    }
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

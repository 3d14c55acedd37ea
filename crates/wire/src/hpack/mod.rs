//! HPACK, the compression of HTTP/2's fields (RFC 7541): a decoder for what a server sends, within bounds, and an
//! encoder that keeps no state.

mod huffman;
mod table;

pub use table::Field;
use table::{ENTRY_BYTES, Table};

/// Why fields cannot be read. Whatever follows on the connection cannot be either: the tables of both ends differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// It ends within a field.
    #[error("a field is cut off")]
    Truncated,
    /// A number is beyond what an index or a length can be.
    #[error("a number is too large")]
    Number,
    /// No entry has that index.
    #[error("an index of no entry")]
    Index,
    /// The Huffman code is violated.
    #[error("a string is no Huffman code")]
    Huffman,
    /// The table is to be larger than allowed, or changes its size between fields.
    #[error("the table's size is changed against the rules")]
    TableSize,
    /// There are more fields than this end takes.
    #[error("the fields are larger than {0} bytes")]
    TooLarge(usize),
}

/// Reads the blocks of fields of one direction of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// A block's fields may be so large, by the count of RFC 9113, section 6.5.2.
    max_list_bytes: usize,
}

impl Decoder {
    /// A decoder whose dynamic table may have `max_table_bytes`, and that takes blocks of fields up to `max_list_bytes`
    /// uncompressed.
    pub fn new(max_table_bytes: usize, max_list_bytes: usize) -> Self {
        Self {
            table: Table::new(max_table_bytes),
            max_list_bytes,
        }
    }

    /// The fields of a block.
    ///
    /// # Errors
    /// When they cannot be read or are too large; the connection is of no use then.
    pub fn decode(&mut self, block: &[u8]) -> Result<Vec<Field>, HpackError> {
        let mut reader = Reader(block);
        let mut fields = Vec::new();
        let mut list_bytes = 0_usize;
        while let Some(first) = reader.0.first().copied() {
            let (field, keeps) = match first {
                // Section 6.1: indexed.
                0x80.. => {
                    let index = reader.number(7)?;
                    (self.table.get(index).ok_or(HpackError::Index)?, false)
                }
                // Section 6.2.1: a literal that enters the table.
                0x40.. => (self.literal(&mut reader, 6)?, true),
                // Section 6.3: the table's size, before the first field alone (section 4.2).
                0x20.. => {
                    let size = reader.number(5)?;
                    let applied = fields.is_empty() && self.table.resize(size);
                    applied.then_some(()).ok_or(HpackError::TableSize)?;
                    continue;
                }
                // Sections 6.2.2 and 6.2.3: literals that do not.
                _ => (self.literal(&mut reader, 4)?, false),
            };
            list_bytes += field.0.len() + field.1.len() + ENTRY_BYTES;
            if list_bytes > self.max_list_bytes {
                return Err(HpackError::TooLarge(self.max_list_bytes));
            }
            if keeps {
                self.table.insert(field.clone());
            }
            fields.push(field);
        }
        Ok(fields)
    }

    fn literal(&self, reader: &mut Reader<'_>, prefix: u32) -> Result<Field, HpackError> {
        let name = match reader.number(prefix)? {
            0 => reader.string()?,
            index => self.table.get(index).ok_or(HpackError::Index)?.0,
        };
        Ok((name, reader.string()?))
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, HpackError> {
        let (first, rest) = self.0.split_first().ok_or(HpackError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Section 5.1: a number in the last `prefix` bits, which are fewer than eight, and what follows. Up to four bytes
    /// follow: 2²⁸ is beyond everything that is counted here.
    fn number(&mut self, prefix: u32) -> Result<usize, HpackError> {
        let most = (1_usize << prefix) - 1;
        let mut value = usize::from(self.byte()?) & most;
        if value < most {
            return Ok(value);
        }
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(HpackError::Number)
    }

    fn string(&mut self) -> Result<Vec<u8>, HpackError> {
        let compressed = self.0.first().is_some_and(|first| first & 0x80 != 0);
        let length = self.number(7)?;
        let (bytes, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(HpackError::Truncated)?;
        self.0 = rest;
        match compressed {
            true => huffman::decode(bytes).ok_or(HpackError::Huffman),
            false => Ok(bytes.to_vec()),
        }
    }
}

/// Fields as a block that changes no table: from the static table where they are in it, else as they are.
pub fn encode<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        match table::find(name.as_bytes(), value.as_bytes()) {
            Some((index, true)) => number(&mut out, 0x80, 7, index),
            found => {
                // Without indexing (section 6.2.2).
                number(&mut out, 0, 4, found.map_or(0, |(index, _)| index));
                if found.is_none() {
                    string(&mut out, name);
                }
                string(&mut out, value);
            }
        }
    }
    out
}

fn string(out: &mut Vec<u8>, text: &str) {
    number(out, 0, 7, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn number(out: &mut Vec<u8>, pattern: u8, prefix: u32, value: usize) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests;

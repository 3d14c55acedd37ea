//! Records on a data connection that is loaded and probed at once: payload, and between its pieces
//! requests and their answers, as HTTP/2 puts several streams on one connection (RFC 9113).
//!
//! A record is a head of 8 bytes, big-endian, and a body:
//!
//! ```text
//!  0  kind    u8: 1 payload, 2 request, 3 answer
//!  1  length  u24: bytes of the body
//!  4  id      u32: of a request, which its answer repeats; 0 for payload
//! ```
//! Requests and answers have no body: each is as small as one can be.

/// Bytes of the head of a record.
pub const HEAD_BYTES: usize = 8;

/// Largest body: a whole record is one record of TLS then (2^14 bytes, RFC 8446 section 5.1), and
/// as long as a frame of HTTP/2 is unless both ends agree on more (RFC 9113 section 4.2).
pub const MAX_BODY_BYTES: usize = (1 << 14) - HEAD_BYTES;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// So many bytes of plain payload.
    Payload(usize),
    /// Something that is to be answered.
    Request(u32),
    /// The answer to it.
    Answer(u32),
}

/// Bytes that are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// No kind of record.
    #[error("a record of unknown kind {0}")]
    Kind(u8),
    /// More than a record of that kind may have.
    #[error("a record with a body of {0} bytes")]
    Length(usize),
}

impl Record {
    /// Its head. A payload longer than [`MAX_BODY_BYTES`] is announced as that long.
    pub fn head(self) -> [u8; HEAD_BYTES] {
        let (kind, length, id) = match self {
            Self::Payload(length) => (1, length.min(MAX_BODY_BYTES) as u32, 0),
            Self::Request(id) => (2, 0, id),
            Self::Answer(id) => (3, 0, id),
        };
        let [_, l0, l1, l2] = length.to_be_bytes();
        let [i0, i1, i2, i3] = id.to_be_bytes();
        [kind, l0, l1, l2, i0, i1, i2, i3]
    }

    fn of(head: [u8; HEAD_BYTES]) -> Result<Self, RecordError> {
        let [kind, l0, l1, l2, id @ ..] = head;
        let (length, id) = (
            u32::from_be_bytes([0, l0, l1, l2]) as usize,
            u32::from_be_bytes(id),
        );
        let (record, most) = match kind {
            1 => (Self::Payload(length), MAX_BODY_BYTES),
            2 => (Self::Request(id), 0),
            3 => (Self::Answer(id), 0),
            kind => return Err(RecordError::Kind(kind)),
        };
        if length > most {
            return Err(RecordError::Length(length));
        }
        Ok(record)
    }
}

/// Reads records from bytes that come in portions of any size.
#[derive(Debug, Default)]
pub struct Reader {
    head: [u8; HEAD_BYTES],
    have: usize,
    body_left: usize,
}

impl Reader {
    /// Takes the next record from the front of `bytes`. Payload is returned in as many parts as it arrives in; `None`
    /// when `bytes` end before there is something to return.
    ///
    /// # Errors
    /// When it is no record; what follows can then not be read either.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Record>, RecordError> {
        loop {
            if self.body_left > 0 {
                let here = self.body_left.min(bytes.len());
                *bytes = bytes.get(here..).unwrap_or_default();
                self.body_left -= here;
                return Ok((here > 0).then_some(Record::Payload(here)));
            }
            while self.have < HEAD_BYTES {
                let (Some((first, rest)), Some(place)) =
                    (bytes.split_first(), self.head.get_mut(self.have))
                else {
                    return Ok(None);
                };
                *place = *first;
                *bytes = rest;
                self.have += 1;
            }
            self.have = 0;
            match Record::of(self.head)? {
                Record::Payload(length) => self.body_left = length,
                record => return Ok(Some(record)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Everything that comes of `portions`, adjoining payload put together.
    fn read(portions: &[&[u8]]) -> Result<Vec<Record>, RecordError> {
        let mut reader = Reader::default();
        let mut found = Vec::new();
        for mut portion in portions.iter().copied() {
            while let Some(record) = reader.next(&mut portion)? {
                match (found.last_mut(), record) {
                    (Some(Record::Payload(all)), Record::Payload(more)) => *all += more,
                    (_, record) => found.push(record),
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn a_head_is_as_specified() {
        assert_eq!(Record::Payload(0x0203).head(), [1, 0, 2, 3, 0, 0, 0, 0]);
        assert_eq!(
            Record::Request(0x0405_0607).head(),
            [2, 0, 0, 0, 4, 5, 6, 7]
        );
        assert_eq!(Record::Answer(1).head(), [3, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert_eq!(read(&[&[9; 8]]), Err(RecordError::Kind(9)));
        assert_eq!(
            read(&[&[2, 0, 0, 1, 0, 0, 0, 0]]),
            Err(RecordError::Length(1))
        );
        assert_eq!(
            read(&[&[1, 0, 0x40, 0, 0, 0, 0, 0]]),
            Err(RecordError::Length(1 << 14))
        );
    }

    fn records() -> impl Strategy<Value = Vec<Record>> {
        vec(
            prop_oneof![
                (1..200_usize).prop_map(Record::Payload),
                any::<u32>().prop_map(Record::Request),
                any::<u32>().prop_map(Record::Answer),
            ],
            0..20,
        )
    }

    proptest! {
        #[test]
        fn whatever_the_portions_the_records_are_the_same(records in records(), portion in 1..50_usize) {
            let mut bytes = Vec::new();
            let mut merged: Vec<Record> = Vec::new();
            for record in records {
                bytes.extend(record.head());
                if let Record::Payload(length) = record {
                    bytes.resize(bytes.len() + length, 0xff);
                }
                match (merged.last_mut(), record) {
                    (Some(Record::Payload(all)), Record::Payload(more)) => *all += more,
                    (_, record) => merged.push(record),
                }
            }
            let portions: Vec<_> = bytes.chunks(portion).collect();
            prop_assert_eq!(read(&portions).unwrap(), merged);
        }

        #[test]
        fn any_bytes_are_read_to_their_end_or_refused(bytes in vec(any::<u8>(), 0..300)) {
            let mut left = bytes.as_slice();
            let mut reader = Reader::default();
            while let Ok(Some(_)) = reader.next(&mut left) {}
        }
    }
}

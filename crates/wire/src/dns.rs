//! As much of DNS (RFC 1035) as a probe needs: a question, and the head of its answer.

/// Bytes of the header (RFC 1035, section 4.1.1).
const HEADER_BYTES: usize = 12;

/// Port of the service.
pub const PORT: u16 = 53;

/// Longest name, with its lengths and the root's (RFC 1035, section 3.1).
const MAX_NAME_BYTES: usize = 255;

/// Kinds of records (RFC 1035, section 3.2.2; RFC 3596).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum RecordKind {
    A = 1,
    /// The servers of a zone.
    Ns = 2,
    Txt = 16,
    Aaaa = 28,
}

const INTERNET: u16 = 1;

/// A question to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    name: Vec<u8>,
    kind: RecordKind,
}

/// The name cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no name that DNS has: its parts between dots have 1 to 63 bytes, and all of it at most 253"
)]
pub struct NameError(String);

impl Query {
    /// Asks for the records of a name; `.` or nothing is the root.
    ///
    /// # Errors
    /// When it is no name.
    pub fn new(name: &str, kind: RecordKind) -> Result<Self, NameError> {
        let mut bytes = Vec::new();
        let trimmed = name.strip_suffix('.').unwrap_or(name);
        if !trimmed.is_empty() {
            for label in trimmed.split('.') {
                match u8::try_from(label.len()) {
                    Ok(length @ 1..=63) => bytes.push(length),
                    _ => return Err(NameError(name.to_owned())),
                }
                bytes.extend_from_slice(label.as_bytes());
            }
        }
        bytes.push(0);
        match bytes.len() <= MAX_NAME_BYTES {
            true => Ok(Self { name: bytes, kind }),
            false => Err(NameError(name.to_owned())),
        }
    }

    /// The message with that id, which asks the server to find the answer itself (RD).
    pub fn write(&self, id: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.name.len() + 4);
        out.extend_from_slice(&id.to_be_bytes());
        // Flags: recursion desired. One question, and nothing else.
        out.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&self.name);
        out.extend_from_slice(&(self.kind as u16).to_be_bytes());
        out.extend_from_slice(&INTERNET.to_be_bytes());
        out
    }

    /// The head of an answer to this question; `None` when it is no answer, or one to another
    /// question. Servers that refuse may leave the question out (RFC 2136 has them do so).
    pub fn answer(&self, bytes: &[u8]) -> Option<Answer> {
        let (id, rest) = bytes.split_first_chunk::<2>()?;
        let (flags, rest) = rest.split_first_chunk::<2>()?;
        let (counts, rest) = rest.split_first_chunk::<8>()?;
        let [high, low] = *flags;
        // QR and opcode.
        if high & 0b1111_1000 != 0b1000_0000 {
            return None;
        }
        let [q0, q1, a0, a1, ..] = *counts;
        if u16::from_be_bytes([q0, q1]) > 0 {
            let (name, rest) = rest.split_at_checked(self.name.len())?;
            let (kind, _) = rest.split_first_chunk::<2>()?;
            // Names are the same whatever their case (RFC 4343).
            if !name.eq_ignore_ascii_case(&self.name) || *kind != (self.kind as u16).to_be_bytes() {
                return None;
            }
        }
        Some(Answer {
            id: u16::from_be_bytes(*id),
            code: low & 0x0f,
            truncated: high & 2 != 0,
            records: u16::from_be_bytes([a0, a1]),
        })
    }
}

impl Query {
    /// The texts in an answer to this question, each of its strings put together; none where it is no answer. What is no
    /// UTF-8 is replaced.
    pub fn texts(&self, bytes: &[u8]) -> Vec<String> {
        let Some(answer) = self.answer(bytes) else {
            return Vec::new();
        };
        let asked = bytes.get(4..6).is_some_and(|count| count != [0, 0]);
        let question = if asked { self.name.len() + 4 } else { 0 };
        let mut rest = bytes.get(HEADER_BYTES + question..).unwrap_or_default();
        let mut texts = Vec::new();
        for _ in 0..answer.records {
            let Some((kind, data, behind)) = record(rest) else {
                break;
            };
            if kind == RecordKind::Txt as u16 {
                texts.push(joined_strings(data));
            }
            rest = behind;
        }
        texts
    }
}

/// The kind and data of a record (RFC 1035, section 4.1.3), and what is behind it.
fn record(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (kind, rest) = behind_name(bytes)?.split_first_chunk::<2>()?;
    // The class has two bytes, the time to live four.
    let (length, rest) = rest.get(6..)?.split_first_chunk::<2>()?;
    let (data, behind) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    Some((u16::from_be_bytes(*kind), data, behind))
}

/// The strings of a text, each behind its length (RFC 1035, section 3.3.14).
fn joined_strings(mut data: &[u8]) -> String {
    let mut joined = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let Some((string, behind)) = rest.split_at_checked(usize::from(*length)) else {
            break;
        };
        joined.extend_from_slice(string);
        data = behind;
    }
    String::from_utf8_lossy(&joined).into_owned()
}

/// Reads a name's bytes (RFC 1035, section 4.1.4) and returns what is behind it. What a pointer points at is not read.
fn behind_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (length, rest) = bytes.split_first()?;
        match length {
            0 => return Some(rest),
            1..=63 => bytes = rest.get(usize::from(*length)..)?,
            // A pointer of two bytes ends a name.
            0xc0.. => return rest.get(1..),
            _ => return None,
        }
    }
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The id of the question.
    pub id: u16,
    /// The response code, 0 for no error.
    pub code: u8,
    /// Whether it did not fit.
    pub truncated: bool,
    /// Records in the answer section.
    pub records: u16,
}

/// The name of a response code (IANA's DNS parameters, of which the header holds the first 16).
pub fn code_name(code: u8) -> &'static str {
    match code {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSET",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        _ => "an unassigned code",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    /// The example of RFC 1035, section 4.1: a question for the address of a host.
    #[test]
    fn the_bytes_are_those_of_rfc_1035() {
        let query = Query::new("f.isi.arpa", RecordKind::A).unwrap();
        assert_eq!(
            query.write(0x1234),
            [
                0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'f', 3, b'i', b's', b'i', 4, b'a',
                b'r', b'p', b'a', 0, 0, 1, 0, 1
            ]
        );
        assert_eq!(Query::new(".", RecordKind::Ns).unwrap().write(0).len(), 17);
    }

    #[test]
    fn an_answer_is_known_by_its_question() {
        let query = Query::new("example.net", RecordKind::A).unwrap();
        let mut bytes = query.write(7);
        assert_eq!(query.answer(&bytes), None, "a question is no answer");
        bytes[2] = 0x81;
        bytes[3] = 0x83;
        bytes[7] = 2;
        let head = Answer {
            id: 7,
            code: 3,
            truncated: false,
            records: 2,
        };
        assert_eq!(query.answer(&bytes), Some(head));
        bytes[13] = b'E';
        assert_eq!(query.answer(&bytes), Some(head), "whatever the case");
        let other = Query::new("example.org", RecordKind::A).unwrap();
        assert_eq!(other.answer(&bytes), None);
        // Without the question, as a server that refuses may answer.
        assert_eq!(
            query
                .answer(&[0, 7, 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0])
                .unwrap()
                .code,
            5
        );
        assert_eq!(code_name(5), "REFUSED");
    }

    #[test]
    fn texts_are_read_behind_names_and_pointers() {
        let query = Query::new("a.b", RecordKind::Txt).unwrap();
        let mut bytes = query.write(7);
        bytes[2] = 0x81;
        bytes[7] = 2;
        bytes.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 12]);
        bytes.extend([
            1, b'a', 0, 0, 16, 0, 1, 0, 0, 0, 9, 0, 5, 1, b'x', 2, b'y', b'z',
        ]);
        assert_eq!(query.texts(&bytes), ["xyz"]);
        bytes.truncate(bytes.len() - 1);
        assert!(query.texts(&bytes).is_empty(), "cut off");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a.".repeat(130);
        for wrong in ["..", "a..b", &"a".repeat(64), &long] {
            assert!(Query::new(wrong, RecordKind::A).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80), name in "[a-z.]{0,20}") {
            if let Ok(query) = Query::new(&name, RecordKind::A) {
                let _ = (query.answer(&bytes), query.texts(&bytes));
                let mut own = query.write(9);
                own[2] |= 0x80;
                prop_assert_eq!(query.answer(&own).unwrap().id, 9);
                own[7] = 3;
                own.extend(&bytes);
                for end in 0..own.len() {
                    let _ = query.texts(&own[..end]);
                    let _ = query.answer(&own[..end]);
                }
            }
        }
    }
}

//! What a message asks or answers (RFC 3416, section 3).

use super::SnmpError;
use super::ber::{self, Reader};
use super::oid::Oid;
use super::value::{Binding, Value, binding_encoded, binding_read};

const GET: u8 = 0xa0;
const GET_NEXT: u8 = 0xa1;
const RESPONSE: u8 = 0xa2;
const GET_BULK: u8 = 0xa5;
const REPORT: u8 = 0xa8;

/// What a PDU is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asks for these objects.
    Get,
    /// Asks for the object after each.
    GetNext,
    /// Asks for the object after each of the first ones, and for so many after each of the others.
    GetBulk {
        non_repeaters: i32,
        max_repetitions: i32,
    },
    /// Answers; an error is of the binding of that number, from 1 on, or of none.
    Response { error: ErrorStatus, index: i32 },
    /// What an engine says in place of an answer (RFC 3412, section 7.1).
    Report,
}

/// What an agent says went wrong; zero is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorStatus(pub i32);

impl ErrorStatus {
    pub const NONE: Self = Self(0);
    pub const TOO_BIG: Self = Self(1);
    pub const NO_SUCH_NAME: Self = Self(2);

    /// In the words of RFC 3416.
    pub fn words(self) -> String {
        const WORDS: [&str; 19] = [
            "noError",
            "tooBig",
            "noSuchName",
            "badValue",
            "readOnly",
            "genErr",
            "noAccess",
            "wrongType",
            "wrongLength",
            "wrongEncoding",
            "wrongValue",
            "noCreation",
            "inconsistentValue",
            "resourceUnavailable",
            "commitFailed",
            "undoFailed",
            "authorizationError",
            "notWritable",
            "inconsistentName",
        ];
        let known = usize::try_from(self.0).ok().and_then(|n| WORDS.get(n));
        known.map_or_else(|| format!("error {}", self.0), |word| (*word).to_owned())
    }
}

/// A question or an answer, with its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    pub kind: Kind,
    /// What the answer has in common with its question.
    pub request_id: i32,
    pub bindings: Vec<Binding>,
}

impl Pdu {
    /// A question for these objects.
    pub fn question(kind: Kind, request_id: i32, objects: impl IntoIterator<Item = Oid>) -> Self {
        Self {
            kind,
            request_id,
            bindings: objects.into_iter().map(|oid| (oid, Value::Null)).collect(),
        }
    }

    /// The element that a message holds.
    pub fn encoded(&self) -> Vec<u8> {
        let (tag, first, second) = match self.kind {
            Kind::Get => (GET, 0, 0),
            Kind::GetNext => (GET_NEXT, 0, 0),
            Kind::GetBulk {
                non_repeaters,
                max_repetitions,
            } => (GET_BULK, non_repeaters, max_repetitions),
            Kind::Response { error, index } => (RESPONSE, error.0, index),
            Kind::Report => (REPORT, 0, 0),
        };
        let bindings: Vec<u8> = self.bindings.iter().flat_map(binding_encoded).collect();
        let numbers = [self.request_id, first, second].map(ber::integer).concat();
        let list = ber::element(ber::SEQUENCE, &bindings);
        ber::constructed(tag, &[&numbers, &list])
    }

    /// Reads the element that a message holds, and that has to be the last one.
    pub(super) fn read(mut reader: Reader<'_>) -> Result<Self, SnmpError> {
        let (tag, content) = reader.element()?;
        reader.end()?;
        if !matches!(tag, GET | GET_NEXT | RESPONSE | GET_BULK | REPORT) {
            return Err(SnmpError::Kind(tag));
        }
        let mut inside = Reader::new(content);
        let request_id = inside.integer()?;
        let (first, second) = (inside.integer()?, inside.integer()?);
        let mut list = inside.inside(ber::SEQUENCE)?;
        inside.end()?;
        let mut bindings = Vec::new();
        while !list.is_empty() {
            bindings.push(binding_read(&mut list)?);
        }
        let kind = match tag {
            GET => Kind::Get,
            GET_NEXT => Kind::GetNext,
            GET_BULK => Kind::GetBulk {
                non_repeaters: first,
                max_repetitions: second,
            },
            REPORT => Kind::Report,
            _ => Kind::Response {
                error: ErrorStatus(first),
                index: second,
            },
        };
        Ok(Self {
            kind,
            request_id,
            bindings,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::snmp::oid::tests::any_oid;
    use crate::snmp::value::tests::any_value;

    /// Any question or answer.
    pub(crate) fn any_pdu() -> impl Strategy<Value = Pdu> {
        let kind = prop_oneof![
            Just(Kind::Get),
            Just(Kind::GetNext),
            Just(Kind::Report),
            (any::<i32>(), any::<i32>()).prop_map(|(non_repeaters, max_repetitions)| {
                Kind::GetBulk {
                    non_repeaters,
                    max_repetitions,
                }
            }),
            (any::<i32>(), any::<i32>()).prop_map(|(error, index)| Kind::Response {
                error: ErrorStatus(error),
                index
            }),
        ];
        let bindings = proptest::collection::vec((any_oid(), any_value()), 0..5);
        (kind, any::<i32>(), bindings).prop_map(|(kind, request_id, bindings)| Pdu {
            kind,
            request_id,
            bindings,
        })
    }

    #[test]
    fn a_trap_is_no_answer() {
        assert_eq!(
            Pdu::read(Reader::new(&[0xa7, 0])),
            Err(SnmpError::Kind(0xa7))
        );
        assert_eq!(ErrorStatus(5).words(), "genErr");
        assert_eq!(ErrorStatus(-3).words(), "error -3");
    }

    proptest! {
        #[test]
        fn they_come_back(pdu in any_pdu()) {
            prop_assert_eq!(Pdu::read(Reader::new(&pdu.encoded())), Ok(pdu));
        }
    }
}

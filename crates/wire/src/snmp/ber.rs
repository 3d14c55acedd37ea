//! Elements of the Basic Encoding Rules, as SNMP restricts them (RFC 3417, section 8): tags of one byte and definite lengths.
//! A reader goes as deep as its caller calls it, so that no message decides how deep that is.

use super::SnmpError;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const SEQUENCE: u8 = 0x30;

/// Bytes of a length in its long form, at most: messages are shorter than 2^32.
const MOST_LENGTH_BYTES: u8 = 4;

/// Reads elements one after the other.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that were not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Sees that nothing is left.
    pub(super) fn end(&self) -> Result<(), SnmpError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(SnmpError::TooLong),
        }
    }

    /// The tag and the content of the next element.
    pub(super) fn element(&mut self) -> Result<(u8, &'a [u8]), SnmpError> {
        let [tag, first, rest @ ..] = self.0 else {
            return Err(SnmpError::CutShort);
        };
        // A tag of several bytes, which SNMP does not have.
        if tag & 0x1f == 0x1f {
            return Err(SnmpError::Type(*tag));
        }
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            // 0x80 is the indefinite form.
            0x80 => return Err(SnmpError::Length),
            long => {
                let count = long & 0x7f;
                if count > MOST_LENGTH_BYTES {
                    return Err(SnmpError::Length);
                }
                let (bytes, rest) = rest
                    .split_at_checked(usize::from(count))
                    .ok_or(SnmpError::CutShort)?;
                let length = bytes.iter().fold(0u32, |sum, b| sum << 8 | u32::from(*b));
                (usize::try_from(length).unwrap_or(usize::MAX), rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length).ok_or(SnmpError::CutShort)?;
        self.0 = rest;
        Ok((*tag, content))
    }

    /// The content of the next element, which has to have this tag.
    pub(super) fn content(&mut self, wanted: u8) -> Result<&'a [u8], SnmpError> {
        match self.element()? {
            (found, content) if found == wanted => Ok(content),
            (found, _) => Err(SnmpError::Tag { found, wanted }),
        }
    }

    /// A reader of what is in the next element.
    pub(super) fn inside(&mut self, wanted: u8) -> Result<Self, SnmpError> {
        self.content(wanted).map(Self)
    }

    pub(super) fn integer(&mut self) -> Result<i32, SnmpError> {
        signed(self.content(INTEGER)?)
    }
}

/// A number of 32 bits with a sign.
pub(super) fn signed(content: &[u8]) -> Result<i32, SnmpError> {
    let [first, ..] = content else {
        return Err(SnmpError::Length);
    };
    if content.len() > 4 {
        return Err(SnmpError::Number);
    }
    // The sign fills what is before the first byte.
    let fill = if first & 0x80 == 0 { 0 } else { u32::MAX };
    let bits = content.iter().fold(fill, |sum, b| sum << 8 | u32::from(*b));
    Ok(bits.cast_signed())
}

/// A number without a sign, which is not larger than `most`. Agents that leave out the zero before a first bit that is set
/// are common, and are read too, as other managers do.
pub(super) fn unsigned(content: &[u8], most: u64) -> Result<u64, SnmpError> {
    let digits = match content {
        [] => return Err(SnmpError::Length),
        [0, rest @ ..] => rest,
        all => all,
    };
    if digits.len() > 8 {
        return Err(SnmpError::Number);
    }
    let value = digits.iter().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
    match value <= most {
        true => Ok(value),
        false => Err(SnmpError::Number),
    }
}

/// An element of this tag and content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    out.push(tag);
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let length = content.len().to_be_bytes();
            let zeros = length.iter().take_while(|byte| **byte == 0).count();
            let digits = length.get(zeros..).unwrap_or_default();
            // A length has eight bytes at most.
            out.push(0x80 | digits.len() as u8);
            out.extend_from_slice(digits);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A sequence, or what is written like one, of these elements.
pub(super) fn constructed(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    element(tag, &parts.concat())
}

pub(super) fn integer(value: i32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    // The fewest bytes that keep the sign.
    let spare = |pair: &[u8]| {
        matches!(pair, [0, next] if next & 0x80 == 0)
            || matches!(pair, [0xff, next] if next & 0x80 != 0)
    };
    let skipped = bytes.windows(2).take_while(|pair| spare(pair)).count();
    element(INTEGER, bytes.get(skipped..).unwrap_or_default())
}

pub(super) fn unsigned_element(tag: u8, value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(7);
    let digits = bytes.get(zeros..).unwrap_or_default();
    match digits.first().is_some_and(|first| first & 0x80 != 0) {
        true => element(tag, &[&[0], digits].concat()),
        false => element(tag, digits),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_definite_and_within_the_message() {
        for (bytes, why) in [
            (&[0x04][..], SnmpError::CutShort),
            (&[0x04, 5, 1], SnmpError::CutShort),
            (&[0x30, 0x80, 0, 0], SnmpError::Length),
            (&[0x04, 0x85, 0, 0, 0, 0, 1, 9], SnmpError::Length),
            (&[0x04, 0x84, 0xff, 0xff, 0xff, 0xff], SnmpError::CutShort),
            (&[0x1f, 0x81, 1, 0], SnmpError::Type(0x1f)),
        ] {
            assert_eq!(Reader::new(bytes).element(), Err(why), "{bytes:x?}");
        }
        // A length may have more bytes than it needs.
        let mut reader = Reader::new(&[0x04, 0x82, 0, 1, 7]);
        assert_eq!(reader.element(), Ok((OCTET_STRING, &[7][..])));
    }

    #[test]
    fn numbers_are_within_their_type() {
        assert_eq!(signed(&[0xff; 5]), Err(SnmpError::Number));
        assert_eq!(signed(&[]), Err(SnmpError::Length));
        assert_eq!(unsigned(&[0xff; 4], u32::MAX.into()), Ok(u32::MAX.into()));
        assert_eq!(
            unsigned(&[0, 0xff, 0xff, 0xff, 0xff], u32::MAX.into()),
            Ok(u32::MAX.into())
        );
        assert_eq!(
            unsigned(&[1, 0, 0, 0, 0], u32::MAX.into()),
            Err(SnmpError::Number)
        );
        assert_eq!(unsigned(&[1; 9], u64::MAX), Err(SnmpError::Number));
        assert_eq!(integer(-129), [INTEGER, 2, 0xff, 0x7f]);
        assert_eq!(integer(128), [INTEGER, 2, 0, 0x80]);
    }

    proptest! {
        #[test]
        fn numbers_come_back(signed_value: i32, unsigned_value: u64) {
            prop_assert_eq!(Reader::new(&integer(signed_value)).integer(), Ok(signed_value));
            let bytes = unsigned_element(0x46, unsigned_value);
            let content = Reader::new(&bytes).content(0x46).unwrap();
            prop_assert_eq!(unsigned(content, u64::MAX), Ok(unsigned_value));
        }

        #[test]
        fn elements_come_back(content in proptest::collection::vec(any::<u8>(), 0..700), after in proptest::collection::vec(any::<u8>(), 0..9)) {
            let bytes = [element(OCTET_STRING, &content), after.clone()].concat();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.element(), Ok((OCTET_STRING, content.as_slice())));
            prop_assert_eq!(reader.rest(), after.as_slice());
        }
    }
}

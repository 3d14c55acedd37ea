//! Object identifiers: a path of numbers in the tree of all objects (RFC 2578, section 7.1.3).

use std::fmt;
use std::str::FromStr;

use super::SnmpError;

/// Numbers of an identifier, at most (RFC 2578, section 7.1.3).
pub const MOST_NUMBERS: usize = 128;

/// The first two numbers share a byte: 40 times the first, which is 0 to 2, and the second (X.690, section 8.19.4).
const FIRST_TIMES: u32 = 40;

/// An object identifier: 2 to 128 numbers, of which the first is 0 to 2. They are in the order in which an agent walks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Vec<u32>);

impl Oid {
    /// One of these numbers, where they make one.
    pub fn new(numbers: &[u32]) -> Option<Self> {
        let [first, second, ..] = numbers else {
            return None;
        };
        let second_fits = match first {
            0 | 1 => *second < FIRST_TIMES,
            2 => *second <= u32::MAX - 2 * FIRST_TIMES,
            _ => false,
        };
        (second_fits && numbers.len() <= MOST_NUMBERS).then(|| Self(numbers.to_vec()))
    }

    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    /// What follows `root` in it, where it is beneath that: the index of a row, for instance.
    pub fn beneath(&self, root: &Self) -> Option<&[u32]> {
        self.0.strip_prefix(root.0.as_slice())
    }

    /// The object beneath this one; `None` where it would be too long.
    pub fn with(&self, index: &[u32]) -> Option<Self> {
        Self::new(&[&self.0, index].concat())
    }

    /// The content of its element.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (first, rest) = match self.0.as_slice() {
            [first, second, rest @ ..] => (first * FIRST_TIMES + second, rest),
            _ => (0, &[][..]),
        };
        let mut out = Vec::with_capacity(self.0.len() + 8);
        for number in std::iter::once(&first).chain(rest) {
            // Seven bits a byte, all but the last marked.
            let digits = (u32::BITS - number.leading_zeros()).div_ceil(7).max(1);
            for digit in (0..digits).rev() {
                let mark = if digit == 0 { 0 } else { 0x80 };
                out.push((number >> (7 * digit)) as u8 & 0x7f | mark);
            }
        }
        out
    }

    /// Reads the content of an element.
    pub(super) fn read(content: &[u8]) -> Result<Self, SnmpError> {
        let mut numbers = Vec::with_capacity(content.len() + 1);
        let mut rest = content;
        while !rest.is_empty() {
            let length = 1 + rest.iter().take_while(|byte| **byte & 0x80 != 0).count();
            // What ends within a number, begins with a zero digit, or does not fit 32 bits.
            let (digits, after) = rest.split_at_checked(length).ok_or(SnmpError::Oid)?;
            if digits.first() == Some(&0x80) || length > 5 {
                return Err(SnmpError::Oid);
            }
            let number = digits
                .iter()
                .fold(0u64, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
            let number = u32::try_from(number).map_err(|_| SnmpError::Oid)?;
            if numbers.is_empty() {
                let first = (number / FIRST_TIMES).min(2);
                numbers.push(first);
                numbers.push(number - first * FIRST_TIMES);
            } else {
                numbers.push(number);
            }
            if numbers.len() > MOST_NUMBERS {
                return Err(SnmpError::Oid);
            }
            rest = after;
        }
        Self::new(&numbers).ok_or(SnmpError::Oid)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, number) in self.0.iter().enumerate() {
            let dot = if place == 0 { "" } else { "." };
            write!(f, "{dot}{number}")?;
        }
        Ok(())
    }
}

impl FromStr for Oid {
    type Err = SnmpError;

    fn from_str(text: &str) -> Result<Self, SnmpError> {
        let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        Self::new(&numbers.map_err(|_| SnmpError::Oid)?).ok_or(SnmpError::Oid)
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn any_oid() -> impl Strategy<Value = Oid> {
        let first = prop_oneof![(0u32..2, 0u32..40), (Just(2), 0..u32::MAX - 80)];
        let rest = proptest::collection::vec(any::<u32>(), 0..MOST_NUMBERS - 1);
        (first, rest)
            .prop_map(|((a, b), rest)| Oid::new(&[&[a, b], rest.as_slice()].concat()).unwrap())
    }

    #[test]
    fn bytes_are_those_of_x_690() {
        let oid: Oid = "1.3.6.1.4.1.8072".parse().unwrap();
        assert_eq!(oid.bytes(), [0x2b, 6, 1, 4, 1, 0xbf, 0x08]);
        // X.690, section 8.19.5.
        assert_eq!("2.999.3".parse::<Oid>().unwrap().bytes(), [0x88, 0x37, 3]);
        assert_eq!(Oid::read(&[0]).unwrap().to_string(), "0.0");
    }

    #[test]
    fn what_is_no_identifier_is_refused() {
        for text in ["", "1", "3.1", "1.40", "1.3.x", "1.3.4294967296", "1..3"] {
            assert!(text.parse::<Oid>().is_err(), "{text}");
        }
        for bytes in [
            &[][..],
            &[0x2b, 0x80, 1],
            &[0x2b, 0x81],
            &[0x2b, 0x90, 0x80, 0x80, 0x80, 0],
            &[1; 128],
        ] {
            assert_eq!(Oid::read(bytes), Err(SnmpError::Oid), "{bytes:x?}");
        }
        assert_eq!(Oid::read(&[1; 127]).unwrap().numbers().len(), MOST_NUMBERS);
        assert!(Oid::read(&[1; 127]).unwrap().with(&[1]).is_none());
    }

    #[test]
    fn the_order_is_that_of_walks() {
        let order = ["1.3.6", "1.3.6.1", "1.3.6.1.9", "1.3.6.1.10", "1.3.6.2"];
        let oids: Vec<Oid> = order.iter().map(|text| text.parse().unwrap()).collect();
        assert!(oids.is_sorted());
        let [root, _, row, ..] = &oids[..] else {
            panic!()
        };
        assert_eq!(row.beneath(root), Some(&[1, 9][..]));
        assert_eq!(root.beneath(row), None);
    }

    proptest! {
        #[test]
        fn they_come_back(oid in any_oid()) {
            prop_assert_eq!(Oid::read(&oid.bytes()), Ok(oid.clone()));
            prop_assert_eq!(oid.to_string().parse(), Ok(oid));
        }

        #[test]
        fn any_bytes_are_one_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(oid) = Oid::read(&bytes) {
                prop_assert_eq!(oid.bytes(), bytes);
            }
        }
    }
}

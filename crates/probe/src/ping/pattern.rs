//! What fills packets behind plumb's own mark: some lines and modems fail for certain bits alone.

use std::fmt;
use std::str::FromStr;

/// Bytes at most, as ping has it.
const MAX_BYTES: usize = 16;

/// Bytes that are written again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pattern {
    bytes: [u8; MAX_BYTES],
    count: u8,
}

impl Pattern {
    pub const NONE: Self = Self {
        bytes: [0; MAX_BYTES],
        count: 0,
    };

    /// The bytes; none for zeros.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.count.into()).unwrap_or_default()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no pattern: write up to {MAX_BYTES} bytes in hexadecimal, such as ff or a55a")]
pub struct PatternError(String);

impl FromStr for Pattern {
    type Err = PatternError;

    /// Hexadecimal digits, two a byte; a last one alone is a byte too (ping(8), -p).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || PatternError(text.to_owned());
        let digits: Option<Vec<u8>> = text
            .chars()
            .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
            .collect();
        let digits = digits.filter(|digits| (1..=2 * MAX_BYTES).contains(&digits.len()));
        let mut pattern = Self::default();
        for (byte, pair) in pattern
            .bytes
            .iter_mut()
            .zip(digits.ok_or_else(wrong)?.chunks(2))
        {
            *byte = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
            pattern.count += 1;
        }
        Ok(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_bytes_in_hexadecimal() {
        let bytes = |text: &str| text.parse::<Pattern>().map(|p| p.bytes().to_vec());
        assert_eq!(bytes("ff"), Ok(vec![0xff]));
        assert_eq!(bytes("A55a0"), Ok(vec![0xa5, 0x5a, 0]));
        assert_eq!(bytes(&"12".repeat(16)).map(|b| b.len()), Ok(16));
        assert!(Pattern::default().bytes().is_empty());
        for wrong in ["", "0xff", "fg", "é", &"1".repeat(33)] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}

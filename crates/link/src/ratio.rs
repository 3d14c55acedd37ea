//! A share or a probability, written `1%`, `0.1 %` or `0.01`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::text_or_number;

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(f64);

/// What was written is no ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a ratio: write 0 % to 100 %, or 0 to 1")]
pub struct RatioError(String);

impl Ratio {
    pub const ZERO: Self = Self(0.0);
    pub const ONE: Self = Self(1.0);

    /// From a number; `None` when it is not from 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    pub fn value(self) -> f64 {
        self.0
    }
}

impl std::str::FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (text, 1.0),
        };
        let value = number.trim().parse::<f64>().ok().map(|n| n / scale);
        value
            .and_then(Self::new)
            .ok_or_else(|| RatioError(text.to_owned()))
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_or_number(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_or_share() {
        for (text, value) in [("1%", 0.01), ("0.5 %", 0.005), ("0.25", 0.25), ("1", 1.0)] {
            assert_eq!(text.parse::<Ratio>().map(Ratio::value), Ok(value));
        }
        for text in ["101%", "-1%", "NaN", "much", ""] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }
}

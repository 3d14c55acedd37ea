//! Grades for latency under load, from a table that somebody else published.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the table: the bufferbloat grades of DSLReports (FAQ 17930), also used by others.
pub const DSLREPORTS: &str = "dslreports-faq-17930";

/// Upper bounds of the increase in seconds, and the mark below each; above the last it is F.
const DSLREPORTS_TABLE: [(f64, Grade); 5] = [
    (0.005, Grade::APlus),
    (0.030, Grade::A),
    (0.060, Grade::B),
    (0.200, Grade::C),
    (0.400, Grade::D),
];

/// A mark; later is worse. The table has no E.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Grade {
    /// Less than 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl Grade {
    /// The mark of an increase of the round trip under load.
    ///
    /// DSLReports averages; plumb hands it the 95th percentile, which is never kinder: one bad
    /// moment in twenty is what a caller hears.
    pub fn of_increase(seconds: f64) -> Self {
        DSLREPORTS_TABLE
            .iter()
            .find(|(below, _)| seconds < *below)
            .map_or(Self::F, |(_, grade)| *grade)
    }

    /// The mark as printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_exclusive_above() {
        for (ms, grade) in [
            (0.0, "A+"),
            (5.0, "A"),
            (29.9, "A"),
            (60.0, "C"),
            (399.0, "D"),
            (400.0, "F"),
        ] {
            assert_eq!(Grade::of_increase(ms / 1e3).name(), grade, "{ms} ms");
        }
    }
}

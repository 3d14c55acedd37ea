//! Grades for latency under load, from a table published by others.

use crate::units::human_seconds;
use crate::vocabulary;

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

vocabulary! {
    /// A mark; later is worse. The table has no E.
    pub enum Grade {
        /// Less than 5 ms.
        APlus = "A+",
        /// Less than 30 ms.
        A = "A",
        /// Less than 60 ms.
        B = "B",
        /// Less than 200 ms.
        C = "C",
        /// Less than 400 ms.
        D = "D",
        /// 400 ms and more.
        F = "F",
    }
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

    /// Below which increase this mark begins to be given, in seconds; F has no such bound.
    pub fn below_s(self) -> Option<f64> {
        DSLREPORTS_TABLE
            .iter()
            .find(|(_, grade)| *grade == self)
            .map(|(below, _)| *below)
    }

    /// The next better mark; A+ has none.
    pub fn better(self) -> Option<Self> {
        DSLREPORTS_TABLE
            .iter()
            .rev()
            .map(|(_, grade)| *grade)
            .find(|grade| *grade < self)
    }

    /// Why an increase has its mark, and what the next better one takes, in one sentence.
    pub fn explain(increase_s: f64) -> String {
        let grade = Self::of_increase(increase_s);
        let from = grade.better().and_then(Self::below_s);
        let bounds = match (from, grade.below_s()) {
            (None, Some(below)) => format!("below {}", human_seconds(below)),
            (Some(from), Some(below)) => {
                format!(
                    "from {} to below {}",
                    human_seconds(from),
                    human_seconds(below)
                )
            }
            (from, None) => format!("from {}", human_seconds(from.unwrap_or(0.0))),
        };
        let mut text = format!(
            "{} is {}, {bounds}",
            human_seconds(increase_s),
            grade.name()
        );
        if let (Some(better), Some(from)) = (grade.better(), from) {
            text.push_str(&format!(
                "; {} needs less than {}, {} less",
                better.name(),
                human_seconds(from),
                human_seconds((increase_s - from).max(0.0))
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_what_the_next_better_one_takes() {
        assert_eq!(Grade::explain(0.002), "2.0 ms is A+, below 5.0 ms");
        assert_eq!(
            Grade::explain(0.2486),
            "249 ms is D, from 200 ms to below 400 ms; C needs less than 200 ms, 48.6 ms less"
        );
        assert_eq!(
            Grade::explain(0.7),
            "700 ms is F, from 400 ms; D needs less than 400 ms, 300 ms less"
        );
        assert_eq!(Grade::APlus.better(), None);
        assert_eq!(Grade::F.better(), Some(Grade::D));
    }

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

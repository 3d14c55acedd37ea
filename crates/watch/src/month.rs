//! A calendar month of UTC. Pure.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// A month of a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    first: Date,
}

impl Month {
    /// The month in which that time is, s since 1970; `None` beyond the year 9999.
    pub fn of(at_s: i64) -> Option<Self> {
        let time = Timestamp::from_second(at_s).ok()?;
        let first = time.to_zoned(TimeZone::UTC).date().first_of_month();
        Some(Self { first })
    }

    /// The month after it; `None` after the year 9999.
    pub fn next(self) -> Option<Self> {
        let first = self.first.checked_add(Span::new().months(1)).ok()?;
        Some(Self { first })
    }

    /// When it begins, s since 1970.
    pub fn from_s(self) -> i64 {
        let begin = self.first.to_zoned(TimeZone::UTC);
        begin.map_or(i64::MAX, |begin| begin.timestamp().as_second())
    }

    /// When the next one begins, s since 1970.
    pub fn to_s(self) -> i64 {
        self.next().map_or(i64::MAX, Self::from_s)
    }

    /// All months from that one to this, both of them too.
    pub fn since(self, first: Self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(first), |month| month.next()).take_while(move |m| *m <= self)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.first.year(), self.first.month())
    }
}

impl FromStr for Month {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no month: write it as 2026-11");
        // What reads dates takes more forms than one.
        let is_plain = text.len() == 7 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let first: Date = format!("{text}-01").parse().map_err(|_| wrong())?;
        let month = Self { first };
        match is_plain && month.from_s() >= 0 {
            true => Ok(month),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn months_follow_each_other() {
        let month: Month = "2024-02".parse().unwrap();
        assert_eq!(month.to_s() - month.from_s(), 29 * 86_400);
        assert_eq!(Month::of(month.to_s() - 1), Some(month));
        assert_eq!(Month::of(month.to_s()), month.next());
        let last: Month = "2025-01".parse().unwrap();
        let all: Vec<_> = last.since(month).map(|month| month.to_string()).collect();
        assert_eq!(
            (all.len(), all[0].as_str(), all[11].as_str()),
            (12, "2024-02", "2025-01")
        );
        assert_eq!(month.since(last).count(), 0);
        for wrong in [
            "",
            "2024",
            "2024-13",
            "24-01",
            "2024-1",
            "2024-01-01",
            "202401",
            "1969-12",
            "jan",
        ] {
            assert!(wrong.parse::<Month>().is_err(), "{wrong}");
        }
        assert_eq!(Month::of(i64::MAX), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            if let Ok(month) = text.parse::<Month>() {
                prop_assert_eq!(month.to_string(), text);
            }
        }
    }
}

//! A time of the past in the form that users type.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use plumb_model::units::parse_duration;

/// A time, or how long ago it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// In s since 1970.
    At(i64),
    Ago(Duration),
}

impl When {
    /// In s since 1970.
    pub(super) fn at_s(self, now_s: i64) -> i64 {
        match self {
            Self::At(at_s) => at_s,
            Self::Ago(ago) => now_s.saturating_sub(ago.as_secs().try_into().unwrap_or(i64::MAX)),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse::<Timestamp>() {
            return Ok(Self::At(time.as_second()));
        }
        let is_date = text.len() == 10 && text.matches('-').count() == 2;
        let midnight = |date: Date| date.to_zoned(TimeZone::UTC).ok();
        if let Some(day) = text.parse().ok().filter(|_| is_date).and_then(midnight) {
            return Ok(Self::At(day.timestamp().as_second()));
        }
        let days = text
            .strip_suffix('d')
            .and_then(|days| days.parse::<u32>().ok());
        match (days, parse_duration(text)) {
            (Some(days), _) => Ok(Self::Ago(Duration::from_secs(u64::from(days) * 86_400))),
            (None, Ok(ago)) => Ok(Self::Ago(ago)),
            (None, Err(_)) => Err(
                "write a date of UTC as 2026-11-01, a time as 2026-11-01T12:00:00Z, or how long ago as 6h or 30d".to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_time_is_a_date_a_moment_or_so_long_ago() {
        for (text, at_s) in [
            ("1970-01-02", 86_400),
            ("1970-01-02T00:00:01Z", 86_401),
            ("1970-01-02T01:00:00+01:00", 86_400),
            ("2h", 1_000_000 - 7200),
            ("3d", 1_000_000 - 3 * 86_400),
        ] {
            let when: When = text.parse().unwrap();
            assert_eq!(when.at_s(1_000_000), at_s, "{text}");
        }
        for wrong in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-11",
            "7",
            "-1d",
            "1970-01-02T00:00:01",
        ] {
            assert!(wrong.parse::<When>().is_err(), "{wrong}");
        }
    }
}

//! Quantities with their units, and how people write them (`20mbit`, `500kB`, `250ms`).
//!
//! Decimal prefixes are powers of ten (SI), `Ki`, `Mi`, `Gi` are powers of two (IEC 80000-13).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What was written is not a quantity of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {wanted}: write it like {example}")]
pub struct ParseUnitError {
    text: String,
    wanted: &'static str,
    example: &'static str,
}

/// A rate in bits a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of `bps` bits a second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// The rate in bits a second.
    pub const fn bps(self) -> u64 {
        self.0
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&si(self.0 as f64, "bit/s"))
    }
}

impl FromStr for BitRate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUnitError {
            text: text.to_owned(),
            wanted: "a bit rate",
            example: "20mbit, 1.5Gbit/s, 800kbit or 20M",
        };
        let (number, unit) = split(text).ok_or_else(error)?;
        // Read as bits it would be wrong by a factor of eight.
        if unit.trim_end_matches(['/', 'p', 's']).ends_with('B') {
            return Err(error());
        }
        let unit = unit.to_ascii_lowercase();
        let unit = unit
            .strip_suffix("/s")
            .or_else(|| unit.strip_suffix("ps"))
            .unwrap_or(&unit);
        let prefix = match unit {
            // A prefix alone, as iperf3 takes it.
            "" | "k" | "m" | "g" | "t" => unit,
            _ => unit
                .strip_suffix("bits")
                .or_else(|| unit.strip_suffix("bit"))
                .or_else(|| unit.strip_suffix('b'))
                .ok_or_else(error)?,
        };
        let scale = prefix_scale(prefix).ok_or_else(error)?;
        whole(number * scale).map(Self).ok_or_else(error)
    }
}

/// An amount of data in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(u64);

impl ByteCount {
    /// An amount of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The amount in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&si(self.0 as f64, "B"))
    }
}

impl FromStr for ByteCount {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUnitError {
            text: text.to_owned(),
            wanted: "an amount of data",
            example: "500kB, 2GB or 64KiB",
        };
        let (number, unit) = split(text).ok_or_else(error)?;
        let unit = unit.to_ascii_lowercase();
        let prefix = unit
            .strip_suffix("bytes")
            .or_else(|| unit.strip_suffix("byte"))
            .or_else(|| unit.strip_suffix('b'))
            .unwrap_or(&unit);
        let scale = prefix_scale(prefix).ok_or_else(error)?;
        whole(number * scale).map(Self).ok_or_else(error)
    }
}

/// Reads a time such as `250ms`, `1.5s`, `40us`, `2m`.
///
/// # Errors
/// When the text is not a number of at least zero followed by a unit of time.
pub fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    let error = || ParseUnitError {
        text: text.to_owned(),
        wanted: "a time",
        example: "250ms, 1.5s or 40us",
    };
    let (number, unit) = split(text).ok_or_else(error)?;
    let seconds_per_unit = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    // Through whole nanoseconds, so that "18ms" is exactly 18 ms.
    whole(number * seconds_per_unit * 1e9)
        .map(Duration::from_nanos)
        .ok_or_else(error)
}

/// A number with the SI prefix that leaves one to three digits before the point.
pub fn si(value: f64, unit: &str) -> String {
    // From half below a thousand on it would be rounded to four digits.
    let (scale, prefix) = match value.abs() {
        v if v >= 999.5e9 => (1e12, "T"),
        v if v >= 999.5e6 => (1e9, "G"),
        v if v >= 999.5e3 => (1e6, "M"),
        v if v >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let scaled = value / scale;
    let digits = if prefix.is_empty() || scaled.abs() >= 100.0 {
        0
    } else if scaled.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.digits$} {prefix}{unit}")
}

/// The same as the beginning of a sentence.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// A share as people read it, however small: `20 %`, `0.01 %`, `2.0e-8 %`.
pub fn share(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let text = match percent {
        0.0 => "0".to_owned(),
        p if p >= 10.0 => format!("{p:.0}"),
        p if p >= 0.001 => {
            let text = format!("{p:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        p => format!("{p:.1e}"),
    };
    format!("{text} %")
}

/// Seconds as people read them: `18.2 ms`, `640 µs`, `1.25 s`, `1 h 36 min`.
pub fn human_seconds(seconds: f64) -> String {
    match seconds.abs() {
        s if s >= 120.0 && s.is_finite() => long_time(seconds),
        s if s >= 1.0 => format!("{seconds:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", seconds * 1e3),
        s if s >= 0.001 => format!("{:.1} ms", seconds * 1e3),
        0.0 => "0 ms".to_owned(),
        _ => format!("{:.0} µs", seconds * 1e6),
    }
}

/// Minutes, hours and days, in two units.
fn long_time(seconds: f64) -> String {
    const LARGEST_FIRST: [(f64, &str); 4] =
        [(86_400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s")];
    let sign = if seconds < 0.0 { "-" } else { "" };
    let seconds = seconds.abs();
    for pair in LARGEST_FIRST.windows(2) {
        let [(large, large_name), (small, small_name)] = pair else {
            continue;
        };
        // Rounded to the smaller unit first, so that none shows 60 of the next.
        let small_units = (seconds / small).round();
        let per_large = (large / small).round();
        if small_units < per_large {
            continue;
        }
        let many = (small_units / per_large).floor();
        let large_name = match many {
            1.0 => large_name.trim_end_matches('s'),
            _ => large_name,
        };
        let rest = small_units - many * per_large;
        return if many >= 1000.0 {
            format!("{sign}{many} {large_name}")
        } else {
            format!("{sign}{many} {large_name} {rest} {small_name}")
        };
    }
    format!("{sign}{seconds:.0} s")
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

fn prefix_scale(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

/// Rounds to a whole number that both a `u64` and an `f64` hold exactly enough.
fn whole(value: f64) -> Option<u64> {
    // 2^63: above it the cast would saturate and hide the mistake.
    (value.is_finite() && (0.0..9.223_372_036_854_775e18).contains(&value))
        .then(|| value.round() as u64)
}

macro_rules! quantity_serde {
    ($type:ty, $make:path, $get:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(self.$get())
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(untagged)]
                enum Written {
                    Number(u64),
                    Text(String),
                }
                match Written::deserialize(deserializer)? {
                    Written::Number(n) => Ok($make(n)),
                    Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
                }
            }
        }
    };
}
quantity_serde!(BitRate, BitRate::from_bps, bps);
quantity_serde!(ByteCount, ByteCount::from_bytes, bytes);

/// A time as [`parse_duration`] reads it back exactly: `250ms`, `7us`.
pub fn duration(time: Duration) -> String {
    match time.as_nanos() {
        n if n % 1_000_000_000 == 0 => format!("{}s", n / 1_000_000_000),
        n if n % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{}us", n / 1_000),
        n => format!("{n}ns"),
    }
}

/// For `#[serde(with = "plumb_model::units::duration_text")]`.
pub mod duration_text {
    use super::*;

    /// Writes the time as text that [`deserialize`] reads back exactly.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(d: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration(*d))
    }

    /// Reads what [`parse_duration`] reads, or a number of seconds.
    ///
    /// # Errors
    /// When it is neither.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Seconds(f64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Seconds(s) => Duration::try_from_secs_f64(s).map_err(serde::de::Error::custom),
            Written::Text(text) => parse_duration(&text).map_err(serde::de::Error::custom),
        }
    }
}

/// For `#[serde(default, with = "plumb_model::units::optional_duration_text")]`: a time that may be absent.
pub mod optional_duration_text {
    use super::*;

    /// Writes the time as [`duration_text`] does, or nothing.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => duration_text::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads what [`duration_text`] does.
    ///
    /// # Errors
    /// When it is no time.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        duration_text::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_as_people_write_them() {
        for (text, bps) in [
            ("20mbit", 20_000_000),
            ("1gbit", 1_000_000_000),
            ("1.5Gbit/s", 1_500_000_000),
            ("100 Mbps", 100_000_000),
            ("800kbit", 800_000),
            ("9600", 9600),
            ("20M", 20_000_000),
            ("10G", 10_000_000_000),
            ("1.5k", 1_500),
        ] {
            assert_eq!(text.parse(), Ok(BitRate::from_bps(bps)), "{text}");
        }
        for text in [
            "", "mbit", "-1mbit", "1xbit", "1e400", "20ms", "20MB/s", "20MBps", "20B",
        ] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!("500kB".parse(), Ok(ByteCount::from_bytes(500_000)));
        assert_eq!("64KiB".parse(), Ok(ByteCount::from_bytes(65_536)));
        assert_eq!("2GB".parse(), Ok(ByteCount::from_bytes(2_000_000_000)));
        assert_eq!(parse_duration("18ms"), Ok(Duration::from_millis(18)));
        assert_eq!(parse_duration("0.25ms"), Ok(Duration::from_micros(250)));
        assert!(parse_duration("18").is_err());
    }

    #[test]
    fn readable_numbers() {
        assert_eq!(si(19_080_000.0, "bit/s"), "19.1 Mbit/s");
        assert_eq!(si(941_000_000.0, "bit/s"), "941 Mbit/s");
        assert_eq!(human_seconds(0.0182), "18.2 ms");
        assert_eq!(human_seconds(0.7), "700 ms");
        assert_eq!(human_seconds(119.99), "119.99 s");
        assert_eq!(human_seconds(120.0), "2 min 0 s");
        assert_eq!(human_seconds(-179.7), "-3 min 0 s");
        assert_eq!(human_seconds(5755.06), "1 h 36 min");
        assert_eq!(human_seconds(7200.0), "2 h 0 min");
        assert_eq!(human_seconds(172_799.0), "2 days 0 h");
        assert_eq!(human_seconds(8_000_000.15), "92 days 14 h");
        assert_eq!(human_seconds(90_000.0), "1 day 1 h");
        assert_eq!(human_seconds(1e12), "11574074 days");
        assert_eq!(
            [share(0.2), share(1e-4), share(2e-10)],
            ["20 %", "0.01 %", "2.0e-8 %"]
        );
        assert_eq!(si(999.7e3, "bit/s"), "1.00 Mbit/s");
        assert_eq!(si(999.4e3, "bit/s"), "999 kbit/s");
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in ".{0,40}") {
            let _ = text.parse::<BitRate>();
            let _ = text.parse::<ByteCount>();
            let _ = parse_duration(&text);
        }
    }
}

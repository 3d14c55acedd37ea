//! How much a queue may hold: bytes, packets, or the time that the line needs to send it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use plumb_model::units::{BitRate, ByteCount, duration, parse_duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::backlog::Backlog;
use crate::settings::text_or_number;

/// The bound of a queue, written `500kB`, `1000p` or `250ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Bytes(u64),
    /// Packets as they are on the wire.
    Packets(u64),
    /// As many bytes, with framing, as the line sends in this time at its present rate.
    Time(Duration),
}

impl Limit {
    /// Whether a queue may hold this much before a line of this rate.
    pub(crate) fn allows(self, held: Backlog, rate: BitRate) -> bool {
        match self {
            Self::Bytes(bytes) => held.ip_bytes <= bytes,
            Self::Packets(packets) => held.packets <= packets,
            Self::Time(time) => held.wire_bytes <= bytes_in(time, rate),
        }
    }

    /// How many packets of the size of `one` still go beside what is held.
    pub(crate) fn room(self, held: Backlog, one: Backlog, rate: BitRate) -> u64 {
        let (limit, held, one) = match self {
            Self::Bytes(bytes) => (bytes, held.ip_bytes, one.ip_bytes),
            Self::Packets(packets) => (packets, held.packets, one.packets),
            Self::Time(time) => (bytes_in(time, rate), held.wire_bytes, one.wire_bytes),
        };
        limit
            .saturating_sub(held)
            .checked_div(one)
            .unwrap_or(u64::MAX)
    }
}

/// Whole bytes that a line sends in a time.
fn bytes_in(time: Duration, rate: BitRate) -> u64 {
    let bytes = time.as_nanos().saturating_mul(u128::from(rate.bps())) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What was written is not a queue limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a queue limit: write bytes (500kB), packets (1000p) or time (250ms), more than none"
)]
pub struct LimitError(String);

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let limit = Self::parse(text.trim()).ok_or_else(|| LimitError(text.to_owned()))?;
        if matches!(
            limit,
            Self::Bytes(0) | Self::Packets(0) | Self::Time(Duration::ZERO)
        ) {
            return Err(LimitError(text.to_owned()));
        }
        Ok(limit)
    }
}

impl Limit {
    fn parse(text: &str) -> Option<Self> {
        if let Some(packets) = text.strip_suffix('p').and_then(|n| n.trim().parse().ok()) {
            return Some(Self::Packets(packets));
        }
        if let Ok(time) = parse_duration(text) {
            return Some(Self::Time(time));
        }
        let bytes = text.parse::<ByteCount>().ok()?;
        Some(Self::Bytes(bytes.bytes()))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}B"),
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Time(time) => f.write_str(&duration(*time)),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_or_number(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_packets_or_time() {
        assert_eq!("500kB".parse(), Ok(Limit::Bytes(500_000)));
        assert_eq!("1000p".parse(), Ok(Limit::Packets(1000)));
        assert_eq!("250ms".parse(), Ok(Limit::Time(Duration::from_millis(250))));
        for limit in [
            Limit::Bytes(7),
            Limit::Packets(7),
            Limit::Time(Duration::from_nanos(7_000_001)),
            Limit::Time(Duration::from_micros(7)),
        ] {
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        let quarter = Limit::Time(Duration::from_millis(250));
        assert_eq!(quarter.to_string(), "250ms");
        assert!("0".parse::<Limit>().is_err() && "0ms".parse::<Limit>().is_err());
        let error = "many".parse::<Limit>().map_err(|e| e.to_string());
        assert!(error.is_err_and(|e| e.contains("'many'") && e.contains("1000p")));
    }

    #[test]
    fn time_is_bytes_at_the_rate_of_the_line() {
        // 700 ms at 20 Mbit/s are 1.75 MB: 1152 frames of 1518 bytes.
        let limit = Limit::Time(Duration::from_millis(700));
        let rate = BitRate::from_bps(20_000_000);
        let frame = Backlog {
            packets: 1,
            ip_bytes: 1500,
            wire_bytes: 1518,
        };
        assert_eq!(limit.room(Backlog::default(), frame, rate), 1152);
        let held = Backlog {
            packets: 1152,
            ip_bytes: 1152 * 1500,
            wire_bytes: 1152 * 1518,
        };
        assert!(limit.allows(held, rate) && !limit.allows(held + frame, rate));
    }
}

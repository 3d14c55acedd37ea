//! The round trip that CAKE is tuned for: a time, or one of the keywords of tc-cake(8).

use std::time::Duration;

use plumb_model::units::{duration_text, parse_duration};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// `internet`.
pub(super) const DEFAULT: Duration = Duration::from_millis(100);

/// tc-cake(8), "Round trip time parameters".
const KEYWORDS: [(&str, Duration); 7] = [
    ("datacentre", Duration::from_micros(100)),
    ("lan", Duration::from_millis(1)),
    ("metro", Duration::from_millis(10)),
    ("regional", Duration::from_millis(30)),
    ("internet", DEFAULT),
    ("oceanic", Duration::from_millis(300)),
    ("satellite", Duration::from_secs(1)),
];

pub(super) fn serialize<S: Serializer>(rtt: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    duration_text::serialize(rtt, serializer)
}

/// Reads a time or a keyword.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let keyword = KEYWORDS.iter().find(|(keyword, _)| *keyword == text);
    match keyword {
        Some((_, rtt)) => Ok(*rtt),
        None => parse_duration(&text).map_err(|_| {
            let keywords = KEYWORDS.map(|(keyword, _)| keyword).join(", ");
            D::Error::custom(format!(
                "'{text}' is not a round trip: write a time such as 100ms, or one of {keywords}"
            ))
        }),
    }
}

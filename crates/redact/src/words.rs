//! The words that plumb itself writes, as `build.rs` collects them.

use std::collections::HashSet;
use std::io::Read as _;

use flate2::read::DeflateDecoder;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/words.deflate"));

/// Units and endings that stand behind a number.
const BEHIND_NUMBERS: &[&str] = &[
    "%", "°", "s", "ms", "µs", "ns", "us", "min", "h", "d", "b", "kb", "mb", "gb", "kib", "mib",
    "gib", "hz", "khz", "mhz", "ghz", "bit", "kbit", "mbit", "gbit", "k", "m", "g", "x", "×", "th",
    "st", "nd", "rd", "dbm", "db", "km", "pps", "c",
];

/// Words, in lower case.
pub(crate) struct Words(HashSet<Box<str>>);

impl Words {
    pub(crate) fn built_in() -> Self {
        let mut text = String::new();
        // It was packed by the build; what could not be read would keep no word.
        let _ = DeflateDecoder::new(PACKED).read_to_string(&mut text);
        Self(text.lines().map(Into::into).collect())
    }

    /// Whether plumb itself writes that word.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.contains(word.to_lowercase().as_str())
    }

    pub(crate) fn is_unit(unit: &str) -> bool {
        BEHIND_NUMBERS.contains(&unit.to_lowercase().as_str())
    }
}

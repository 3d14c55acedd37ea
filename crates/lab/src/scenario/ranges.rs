//! `[vary]`: settings that may vary, and between what.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Settings that may vary: `LINK.up.CELL.KEY` and from what to what.
pub type Ranges = BTreeMap<String, Range>;

/// `["10mbit", "50mbit"]`: from the first to the second, every value as likely.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "[Bound; 2]")]
pub struct Range {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A bound may be written as text or as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Bound {
    Text(String),
    Whole(i64),
    Number(f64),
}

impl From<[Bound; 2]> for Range {
    fn from(bounds: [Bound; 2]) -> Self {
        let [from, to] = bounds.map(|bound| match bound {
            Bound::Text(text) => text,
            Bound::Whole(number) => number.to_string(),
            Bound::Number(number) => number.to_string(),
        });
        Self { from, to }
    }
}

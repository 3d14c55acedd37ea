//! What a database knows of an address.

use plumb_model::results::path::MapPlace;

/// What is known of a network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Number of the autonomous system.
    pub asn: Option<u32>,
    pub name: Option<String>,
    pub place: Option<MapPlace>,
}

/// Degrees within a bound.
pub fn degrees(text: &str, bound: f64) -> Option<f64> {
    let value: f64 = text.trim().parse().ok()?;
    (value.abs() <= bound).then_some(value)
}

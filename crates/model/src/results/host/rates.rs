//! Counters over time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How fast the machine's counters grew. The values of each interval are the series of the
/// measurement, by the same names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatesResult {
    /// Time between two looks, as asked.
    pub interval_s: f64,
    /// Intervals seen.
    pub intervals: u64,
    /// Growth in a second over all intervals, of the counters that changed: `eth0.rx_bytes`,
    /// `TcpRetransSegs`, `softnet.dropped` …
    pub per_s: BTreeMap<String, f64>,
}

//! How fast counters grow over time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How fast the counters of a machine grew. The values of each interval are the series of the measurement, by the same
/// names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatesResult {
    /// Time between two readings in seconds, as asked for.
    pub interval_s: f64,
    /// Number of intervals that were seen.
    pub intervals: u64,
    /// Growth in a second over all intervals, of the counters that changed, such as `eth0.rx_bytes`, `TcpRetransSegs`
    /// and `softnet.dropped`.
    pub per_s: BTreeMap<String, f64>,
}

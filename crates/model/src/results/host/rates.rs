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
    /// Growth of the same counters over all intervals. Empty in Runs of versions that did not report it.
    #[serde(default)]
    pub grown: BTreeMap<String, u64>,
    /// How far the wall clock was set meanwhile, in seconds; positive where it was set forward. Corrections of its rate
    /// are no such step. Null in Runs of versions that did not report it.
    #[serde(default)]
    pub clock_set_s: Option<f64>,
}

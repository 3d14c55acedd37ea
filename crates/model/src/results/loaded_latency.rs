//! Latency under load: of all traffic together, of each class of it, and of each part of the path.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::distribution::Distribution;
use crate::grade::Grade;
use crate::protocol::Protocol;
use crate::vocabulary;

/// Round trips while the path was loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedLatencyResult {
    /// Direction of the load.
    pub direction: Direction,
    /// Protocol of the probes.
    pub protocol: Protocol,
    /// Round trips before the load.
    pub idle_rtt_s: Distribution,
    /// Round trips from two seconds after the load began until it ended.
    pub rtt_s: Distribution,
    /// `rtt_s` above the idle median.
    pub increase_s: Distribution,
    /// Share of probes lost in the same time.
    pub loss_ratio: f64,
    /// Payload carried to the client.
    pub down_bps: Option<f64>,
    /// Payload carried from the client.
    pub up_bps: Option<f64>,
    /// Mark for the 95th percentile of the increase; null when it was not measured, when more than
    /// 5 % of the probes were lost and it could be a worse one with them, or when a loaded direction
    /// carried nothing.
    pub grade: Option<Grade>,
    /// The published table that the grade comes from, or would where it is withheld.
    pub grade_table: Option<String>,
    /// Round-trips a minute; only with a method.
    pub rpm: Option<f64>,
    /// How `rpm` was measured; `ietf` only when measured as the draft says.
    pub rpm_method: Option<String>,
    /// How long the queue took to empty after the load stopped, when it was seen to.
    pub drain_s: Option<f64>,
    /// Each class of traffic by itself, by its name such as `EF`, where the load had several.
    #[serde(default)]
    pub classes: BTreeMap<String, ClassLatency>,
    /// Where on the path the increase arose, where places on the way could be probed too.
    #[serde(default)]
    pub path: Option<PathQueueing>,
    /// What repeats in the round trips and rates; nothing where nothing was seen three times, or
    /// where noise may have done it.
    #[serde(default)]
    pub periodic: Vec<Periodic>,
}

/// A periodic structure, such as a reallocation of capacity every 15 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Periodic {
    /// The series that it is in: `rtt`, `down_bps` or `up_bps`.
    pub series: String,
    /// What repeats in it.
    pub of: PeriodicOf,
    /// How long it takes.
    pub period_s: f64,
    /// Mean correlation of values whole periods apart, 0…1.
    pub strength_ratio: f64,
    /// How sure it is that noise did not do it, 0…1.
    pub confidence: f64,
    /// How many whole periods were seen.
    pub times_seen: u64,
}

vocabulary! {
    /// What repeats in a series.
    pub enum PeriodicOf {
        /// The level: it comes back to the same values.
        Level = "level",
        /// The instants at which the level changes, whatever it changes to.
        Changes = "changes",
    }
}

/// What one class of traffic got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassLatency {
    /// Its DSCP (RFC 2474).
    pub dscp: u8,
    /// Payload that its flows carried to the client; absent where it had none.
    pub down_bps: Option<f64>,
    /// Payload that its flows carried from the client; absent where it had none.
    pub up_bps: Option<f64>,
    /// Round trips of probes that bore its DSCP, before the load.
    pub idle_rtt_s: Option<Distribution>,
    /// The same under load, without its first two seconds.
    pub rtt_s: Option<Distribution>,
    /// `rtt_s` above the idle median of the class.
    pub increase_s: Option<Distribution>,
    /// Share of its probes lost under load.
    pub loss_ratio: Option<f64>,
}

/// Which part of the path delayed packets under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathQueueing {
    /// The places that were probed beside the far end, nearest first.
    pub places: Vec<PlaceLatency>,
    /// What the load added to the round trip between this host and its gateway: Wi-Fi, cables and
    /// the queues of both ends of them.
    pub local_increase_s: Distribution,
    /// What it added beyond the gateway: each round trip to the far end, less that to the gateway
    /// at the same time, above the difference of the idle medians.
    pub beyond_increase_s: Distribution,
    /// Share of the mean increase that arose before the gateway; absent where the far end's round
    /// trips hardly increased.
    pub local_ratio: Option<f64>,
}

/// Round trips to a place on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceLatency {
    /// Which.
    pub place: PathPlace,
    /// Its address.
    pub address: String,
    /// What it was made to answer.
    pub method: PlaceMethod,
    /// Round trips before the load.
    pub idle_rtt_s: Distribution,
    /// The same under load, without its first two seconds.
    pub rtt_s: Distribution,
    /// `rtt_s` above the idle median.
    pub increase_s: Distribution,
    /// Share of its probes lost under load.
    pub loss_ratio: f64,
}

vocabulary! {
    /// A place on the way to the far end.
    pub enum PathPlace {
        /// The router that this host sends to.
        Gateway = "gateway",
        /// The next router, at the other end of the line.
        FirstHopBeyond = "first-hop-beyond",
    }
}

impl PathPlace {
    /// How many hops away it is.
    pub fn hops(self) -> u8 {
        match self {
            Self::Gateway => 1,
            Self::FirstHopBeyond => 2,
        }
    }
}

/// What a place on the way answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceMethod {
    /// Echo requests to its own address.
    Echo,
    /// Echo requests to the far end whose hop limit ended there (ICMP time exceeded).
    HopLimit,
}

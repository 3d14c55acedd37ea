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
    /// Round-trip times before the load, in seconds.
    pub idle_rtt_s: Distribution,
    /// Round-trip times in seconds, from when slow start is over (two seconds, or twelve idle round trips) until the load
    /// ended.
    pub rtt_s: Distribution,
    /// Increase of `rtt_s` above the idle median, in seconds.
    pub increase_s: Distribution,
    /// Share of probes, 0 to 1, that were lost in the same time.
    pub loss_ratio: f64,
    /// Payload in bit/s that was carried to the client. Null where that direction was not loaded.
    pub down_bps: Option<f64>,
    /// Payload in bit/s that was carried from the client. Null where that direction was not loaded.
    pub up_bps: Option<f64>,
    /// Mark for the 95th percentile of the increase; null when it was not measured, when more than
    /// 5 % of the probes were lost and it could be a worse one with them, or when a loaded direction
    /// carried nothing.
    pub grade: Option<Grade>,
    /// The published table that the grade comes from, or would come from where it is withheld. Null where there is
    /// none.
    pub grade_table: Option<String>,
    /// Round trips a minute. Null where they were not measured.
    pub rpm: Option<f64>,
    /// How `rpm` was measured; `ietf` only when measured as the draft has it. Null where it was not measured.
    pub rpm_method: Option<String>,
    /// How long packets waited in each direction meanwhile. Null where the clocks of the two hosts could not be compared.
    #[serde(default)]
    pub one_way: Option<Box<OneWayQueueing>>,
    /// How long the queue took to empty after the load stopped, in seconds. Null where it was not seen to.
    pub drain_s: Option<f64>,
    /// Each class of traffic by itself, by its name such as `EF`, where the load had several.
    #[serde(default)]
    pub classes: BTreeMap<String, ClassLatency>,
    /// Where on the path the increase arose. Null where no hop could be probed too.
    pub path: Option<PathQueueing>,
    /// What repeats in the round trips and rates. Empty where nothing was seen three times, or where noise may have
    /// done it.
    #[serde(default)]
    pub periodic: Vec<Periodic>,
}

/// How long packets waited in each direction, by the clocks of both hosts: what each took above the fastest one of that
/// direction since the probes began. The difference of the clocks cancels out; what a queue delays all the time does not
/// show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayQueueing {
    /// From this host to the far end, in seconds.
    pub up_s: Distribution,
    /// From the far end to this host, in seconds.
    pub down_s: Distribution,
}

/// A periodic structure, such as a reallocation of capacity every 15 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Periodic {
    /// The series that it is in: `rtt`, `down_bps` or `up_bps`.
    pub series: String,
    /// What repeats in the series.
    pub of: PeriodicOf,
    /// Length of one period in seconds.
    pub period_s: f64,
    /// Mean correlation of values whole periods apart, a ratio from 0 to 1.
    pub strength_ratio: f64,
    /// How sure it is that noise did not do it, 0 to 1.
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

/// What one class of traffic met under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassLatency {
    /// DSCP of the class (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// Payload in bit/s that its flows carried to the client. Null where it had none.
    pub down_bps: Option<f64>,
    /// Payload in bit/s that its flows carried from the client. Null where it had none.
    pub up_bps: Option<f64>,
    /// Round-trip times in seconds of probes with its DSCP, before the load. Null where none was answered.
    pub idle_rtt_s: Option<Distribution>,
    /// Round-trip times in seconds under load, without slow start. Null where nothing was answered.
    pub rtt_s: Option<Distribution>,
    /// Increase of `rtt_s` above the idle median of the class, in seconds. Null where either is unknown.
    pub increase_s: Option<Distribution>,
    /// Share of its probes, 0 to 1, that were lost under load. Null where none was sent.
    pub loss_ratio: Option<f64>,
}

/// Which part of the path delayed packets under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathQueueing {
    /// The hops that were probed beside the far end, nearest first.
    pub places: Vec<PlaceLatency>,
    /// What the load added to the round-trip time between this host and its gateway, in seconds: Wi-Fi, cables and the
    /// queues at both ends of them.
    pub local_increase_s: Distribution,
    /// What the load added beyond the gateway, in seconds: each round trip to the far end, less that to the gateway at
    /// the same time, above the difference of the idle medians.
    pub beyond_increase_s: Distribution,
    /// Share of the mean increase, 0 to 1, that arose before the gateway. Null where the far end's round trips hardly
    /// increased.
    pub local_ratio: Option<f64>,
}

/// Round trips to a hop of the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceLatency {
    /// The hop that was probed.
    pub place: PathPlace,
    /// IP address of that hop.
    pub address: String,
    /// What made the hop answer.
    pub method: PlaceMethod,
    /// Round-trip times in seconds before the load.
    pub idle_rtt_s: Distribution,
    /// Round-trip times in seconds under load, without slow start.
    pub rtt_s: Distribution,
    /// Increase of `rtt_s` above the idle median, in seconds.
    pub increase_s: Distribution,
    /// Share of its probes, 0 to 1, that were lost under load.
    pub loss_ratio: f64,
}

vocabulary! {
    /// A hop on the path to the far end.
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

/// What made a hop answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceMethod {
    /// Echo requests to its own address.
    Echo,
    /// Echo requests to the far end whose hop limit ended there (ICMP time exceeded).
    HopLimit,
}

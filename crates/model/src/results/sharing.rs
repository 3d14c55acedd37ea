//! How streams beside each other shared a direction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// How the streams of a direction shared it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sharing {
    /// Jain's fairness index of what the streams carried over the whole phase (RFC 5166, section 2.3.1): 1 when all
    /// carried the same, one over their number when one carried everything. Null where nothing was carried.
    pub jain_index: Option<f64>,
    /// The same index of each second by itself, which shows whether the streams were even at every time. Null where no
    /// second carried anything.
    pub jain_index_each_second: Option<Distribution>,
    /// Groups of equal streams, as asked for.
    pub groups: Vec<GroupShare>,
}

/// What a group of equal streams had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupShare {
    /// Congestion control that its senders ran.
    pub cc: String,
    /// Number of the group's first stream.
    pub first_stream: u32,
    /// How many streams the group has.
    pub streams: u32,
    /// Payload in bit/s that reached the receiver, all streams of the group together.
    pub bps: f64,
    /// Share of all payload of the direction, 0 to 1, that the group carried.
    pub share_ratio: f64,
    /// Share that the group would have if all streams carried the same, 0 to 1.
    pub even_share_ratio: f64,
}

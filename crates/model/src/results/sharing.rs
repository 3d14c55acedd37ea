//! How streams beside each other shared a direction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// How the streams of a direction shared it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sharing {
    /// Jain's fairness index of what the streams carried over the whole phase (RFC 5166, section
    /// 2.3.1): 1 when all carried the same, one over their number when one carried everything.
    /// Absent where nothing was carried.
    pub jain_index: Option<f64>,
    /// The same of each second by itself, which shows whether they were even at every time.
    pub jain_index_each_second: Option<Distribution>,
    /// Groups of equal streams, as asked for.
    pub groups: Vec<GroupShare>,
}

/// What a group of equal streams had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupShare {
    /// Congestion control that its senders ran.
    pub cc: String,
    /// Its streams, by the number of the first and how many they are.
    pub first_stream: u32,
    /// How many.
    pub streams: u32,
    /// Payload that reached the receiver, all its streams together.
    pub bps: f64,
    /// Its part of what all streams of the direction carried.
    pub share_ratio: f64,
    /// The part that it would have if all streams carried the same.
    pub even_share_ratio: f64,
}

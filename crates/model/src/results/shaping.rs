//! What was found out for a shaper: the rate that keeps latency low, and what the line adds to each packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::vocabulary;

/// The highest rate of a shaper at which latency under load stays low, found in blocks of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapedRateResult {
    /// Direction of the load.
    pub direction: Direction,
    /// Why the search ended.
    pub ended: ShapedEnd,
    /// Rate of the shaper in bit/s, with framing. Null where none is needed or helps.
    pub rate_bps: Option<f64>,
    /// What the shaper costs and brings. Null where it was not measured both ways.
    pub trade: Option<ShapedTrade>,
    /// The most in bit/s that passed the shaper while a full processor of this machine held it up. Null where none did.
    pub processor_bps: Option<f64>,
    /// Median of the idle round trips in seconds, above which latency is added.
    pub idle_rtt_s: f64,
    /// Blocks of the search, in order.
    pub blocks: Vec<ShapedBlock>,
}

/// What a shaper costs and brings, as means of blocks that took turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapedTrade {
    /// Carried in bit/s without the shaper, with framing.
    pub off_bps: f64,
    /// Carried in bit/s with the shaper, with framing.
    pub on_bps: f64,
    /// Added latency in seconds, its 95th percentile, without the shaper.
    pub off_added_s: f64,
    /// Added latency in seconds, its 95th percentile, with the shaper.
    pub on_added_s: f64,
}

/// A short block of load, and what it showed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapedBlock {
    /// Rate of the shaper in bit/s. Null where it was off.
    pub rate_bps: Option<f64>,
    /// Carried in bit/s, with framing.
    pub carried_bps: f64,
    /// Added latency in seconds, its 95th percentile. Null where no probe came back.
    pub added_p95_s: Option<f64>,
    /// Share of its time that the busiest processor of the machine that shapes worked. Null where that is not known.
    pub busiest_processor_ratio: Option<f64>,
}

vocabulary! {
    /// Why a search for a shaper's rate ended.
    pub enum ShapedEnd {
        /// The rate kept latency low again and again.
        Found = "found",
        /// Latency stays low without a shaper too.
        NotNeeded = "not-needed" as "no shaper needed",
        /// Latency is high even far below the line's rate: the queue is not before this line.
        LateAtAnyRate = "late-at-any-rate" as "late at any rate",
        /// Even far below the line's rate this machine's processor cannot carry the shaper.
        ProcessorFull = "processor-full" as "processor too slow",
        /// The time was over, and the rate is the best guess.
        OutOfTime = "out-of-time" as "best guess",
    }
}

/// What a line adds to each packet, from floods of packets of several sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramingResult {
    /// Direction of the floods.
    pub direction: Direction,
    /// Framing in the words of tc-cake(8). Null where the floods do not show it.
    pub framing: Option<String>,
    /// Another framing that explains them nearly as well. Null where there is none.
    pub or: Option<String>,
    /// What the line sends in bit/s, with framing. Null where the framing is not known.
    pub rate_bps: Option<f64>,
    /// Packets a second that pass, whatever their size. Null where no such limit shows.
    pub packets_per_s: Option<f64>,
    /// Median distance of what arrived from what the framing predicts, as a share. Null where it is not known.
    pub error_ratio: Option<f64>,
    /// The floods, in order.
    pub floods: Vec<FramingFlood>,
}

/// A flood of packets of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramingFlood {
    /// Size of the IP packets in bytes.
    pub ip_bytes: u32,
    /// Packets sent a second.
    pub sent_pps: f64,
    /// Packets received a second.
    pub received_pps: f64,
}

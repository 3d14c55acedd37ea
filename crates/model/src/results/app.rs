//! How an application fared, or traffic that is like its.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::distribution::Distribution;

/// How the traffic of a profile fared in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppResult {
    /// Name of the profile.
    pub profile: String,
    /// What it stands for.
    pub stands_for: String,
    /// Direction of the data.
    pub direction: Direction,
    /// Payload that was received.
    pub bps: Option<f64>,
    /// Share of the packets sent that did not arrive.
    pub loss_ratio: Option<f64>,
    /// One-way delay; absent where the clocks of the ends could not be compared.
    pub one_way_delay_s: Option<Distribution>,
    /// That is known to within this, either way.
    pub one_way_delay_uncertainty_s: Option<f64>,
    /// Packet delay variation: delay above the smallest (RFC 5481, section 4.2).
    pub delay_variation_s: Option<Distribution>,
    /// What a telephone call would have been like.
    pub voice: Option<VoiceScore>,
    /// What a player of video in segments would have shown.
    #[serde(default)]
    pub playback: Option<Playback>,
    /// What the application needs, and whether it had it.
    pub goals: Vec<Goal>,
    /// Whether all goals were met; absent where one of them could not be measured and the others
    /// were.
    pub good: Option<bool>,
}

/// Something that an application needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Which number it is about, and its unit by its suffix.
    pub field: String,
    /// What it was; absent when it could not be measured.
    pub value: Option<f64>,
    /// What it may be at most, or must be at least.
    pub limit: f64,
    /// Whether the limit is the least that it must be, and not the most that it may be.
    pub at_least: bool,
    /// Whether it was met.
    pub met: Option<bool>,
}

/// What a player of live video would have shown that comes in segments over TCP (DASH, ISO/IEC
/// 23009-1; HLS, RFC 8216).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Playback {
    /// How long a segment lasts, and how often there is another one.
    pub segment_s: f64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Segments that came whole.
    pub segments: u64,
    /// From the first question until there was enough to begin; absent where there never was.
    pub startup_s: Option<f64>,
    /// How often the picture stood still because the next segment was not whole.
    pub stalls: u64,
    /// For how long in all.
    pub stalled_s: f64,
    /// Share of the time since the beginning of the picture.
    pub stalled_ratio: f64,
}

/// What a telephone call would have been like, by the E-model (ITU-T G.107) with its default values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VoiceScore {
    /// Codec that it is computed for.
    pub codec: String,
    /// Transmission rating R, 0 to 100.
    pub r: f64,
    /// Mean opinion score, 1 to 4.5.
    pub mos: f64,
    /// How G.107 calls such a rating.
    pub category: String,
    /// From mouth to ear: smallest one-way delay, jitter buffer, and the time that fills a packet.
    pub mouth_to_ear_s: f64,
    /// Jitter buffer that rates best.
    pub jitter_buffer_s: f64,
    /// Share of the packets that the network lost.
    pub loss_ratio: f64,
    /// Share of the packets that came too late for the jitter buffer.
    pub late_ratio: f64,
    /// Mean length of runs of losses against losses by chance, at least 1.
    pub burst_ratio: f64,
}

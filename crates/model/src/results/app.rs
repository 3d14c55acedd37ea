//! How an application fared, or traffic that is like its.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::distribution::Distribution;

/// How the traffic of a profile fared in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppResult {
    /// Name of the application profile.
    pub profile: String,
    /// The application that the profile represents.
    pub stands_for: String,
    /// Direction of the data.
    pub direction: Direction,
    /// Payload in bit/s that was received. Null where the receiver could not be asked any more.
    pub bps: Option<f64>,
    /// Share of the packets sent, 0 to 1, that did not arrive. Null where the receiver reports none, as over TCP.
    pub loss_ratio: Option<f64>,
    /// One-way delay in seconds. Null where the clocks of the ends could not be compared.
    pub one_way_delay_s: Option<Distribution>,
    /// Error that the one-way delay may have in either direction, in seconds. Null where there is no delay.
    pub one_way_delay_uncertainty_s: Option<f64>,
    /// Packet delay variation in seconds: delay above the smallest (RFC 5481, section 4.2). Null where no packet came.
    pub delay_variation_s: Option<Distribution>,
    /// How a telephone call would have sounded. Null where the profile is no call, or where it is unknown.
    pub voice: Option<VoiceScore>,
    /// What a player of video in segments would have shown. Null where the profile is no such video.
    pub playback: Option<Playback>,
    /// What the application needs, and whether it had it.
    pub goals: Vec<Goal>,
    /// Whether all goals were met. Null where that is unknown of one of them and all others were.
    pub good: Option<bool>,
}

/// Something that an application needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Name of the number that the goal is about; its suffix is the unit.
    pub field: String,
    /// Value of that number. Null where it could not be measured.
    pub value: Option<f64>,
    /// What it may be at most, or must be at least.
    pub limit: f64,
    /// Whether the limit is the least that it must be, and not the most that it may be.
    pub at_least: bool,
    /// Whether the goal was met. Null where the value could not be measured, or where its error leaves that open.
    pub met: Option<bool>,
}

/// What a player of live video would have shown that comes in segments over TCP (DASH, ISO/IEC
/// 23009-1; HLS, RFC 8216).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Playback {
    /// Length of a segment in seconds, and the time from one to the next.
    pub segment_s: f64,
    /// Length of a segment in bytes.
    pub segment_bytes: u64,
    /// Segments that came whole.
    pub segments: u64,
    /// Time in seconds from the first request until there was enough to begin. Null where there never was.
    pub startup_s: Option<f64>,
    /// How often the picture stood still because the next segment was not whole.
    pub stalls: u64,
    /// Time in seconds that the picture stood still in all.
    pub stalled_s: f64,
    /// Share of the time since the picture began, 0 to 1, that it stood still.
    pub stalled_ratio: f64,
}

/// What a telephone call would have been like, by the E-model (ITU-T G.107) with its default values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VoiceScore {
    /// Codec that the score is computed for.
    pub codec: String,
    /// Transmission rating R, 0 to 100.
    pub r: f64,
    /// Mean opinion score, 1 to 4.5.
    pub mos: f64,
    /// How G.107 calls such a rating.
    pub category: String,
    /// Delay from mouth to ear in seconds: smallest one-way delay, jitter buffer, and the time that fills a packet.
    pub mouth_to_ear_s: f64,
    /// Jitter buffer that rates best, in seconds.
    pub jitter_buffer_s: f64,
    /// Share of the packets, 0 to 1, that the network lost.
    pub loss_ratio: f64,
    /// Share of the packets, 0 to 1, that came too late for the jitter buffer.
    pub late_ratio: f64,
    /// Ratio of the mean length of runs of losses to the mean length for losses by chance, at least 1.
    pub burst_ratio: f64,
}

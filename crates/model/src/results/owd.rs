//! Each way of a path by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TimestampSource;
use super::udp::{LossPattern, OneWayDelay, Reordering};
use crate::distribution::Distribution;
use crate::protocol::Protocol;
use crate::vocabulary;

/// Delay, loss and order on the way there and on the way back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwdResult {
    /// What the probes were made of.
    pub protocol: Protocol,
    /// Address probed.
    pub address: String,
    /// UDP port probed.
    pub port: u16,
    /// The packets were authenticated (RFC 8762, section 4.4).
    pub authenticated: bool,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered, duplicates not counted.
    pub answered: u64,
    /// Probes that our own machine refused to send.
    pub send_errors: u64,
    /// Answers that our own socket dropped for want of buffer.
    pub dropped_here: u64,
    /// Answers that this host discarded because their checksum was wrong: the path corrupted them, and they count
    /// as lost. At most so many: of UDP the kernel's counters are of all sockets together.
    #[serde(default)]
    pub corrupted: u64,
    /// Round trips, without the time at the far end.
    pub rtt_s: Option<Distribution>,
    /// Whose clock stamped the packets at this end.
    pub timestamps: TimestampSource,
    /// The way from here to the far end.
    pub up: OwdWay,
    /// The way back.
    pub down: OwdWay,
    /// Probes without an answer of which it is not known on which way they were lost: after the
    /// last that was answered, and all where the far end does not count.
    pub lost_unplaced: u64,
    /// The far end counts what it receives, which tells the two ways' losses apart.
    pub far_counts: bool,
    /// The two clocks.
    pub clocks: OwdClocks,
}

/// One way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwdWay {
    /// Packets known to have been sent this way: up to the last that was answered.
    pub sent: Option<u64>,
    /// Of these, those that arrived, duplicates not counted.
    pub received: Option<u64>,
    /// Of these, those that did not.
    pub lost: Option<u64>,
    /// Share of the packets sent.
    pub loss_ratio: Option<f64>,
    /// How losses follow each other; absent where losses of both ways lie between the same two
    /// answers, so that their order is not known.
    pub losses: Option<LossPattern>,
    /// Packets that arrived again.
    pub duplicates: Option<u64>,
    /// How packets overtook each other; of those whose answers came back.
    pub reordering: Reordering,
    /// The delay; absent where the clocks could not be compared.
    pub delay: Option<OneWayDelay>,
    /// Inter-packet delay variation (RFC 5481, section 4.1).
    pub ipdv_s: Option<Distribution>,
    /// Packet delay variation (RFC 5481, section 4.2): delay above the smallest.
    pub pdv_s: Option<Distribution>,
    /// Interarrival jitter (RFC 3550, section 6.4.1).
    pub jitter_s: Option<Distribution>,
    /// Smallest and largest hop limit with which packets arrived, where that is told.
    pub hop_limits: Option<[u8; 2]>,
}

/// What is known of the clocks of the two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwdClocks {
    /// What the delays rest on.
    pub method: ClockMethod,
    /// The far host's clock less this one's, at the middle of the measurement.
    pub offset_s: Option<f64>,
    /// The delays are known to within this, either way.
    pub uncertainty_s: Option<f64>,
    /// How much faster the far clock runs, as a share; it was taken out of the delays. Absent where
    /// it cannot be told from zero.
    pub skew_ratio: Option<f64>,
    /// The skew is known to within this (two standard errors).
    pub skew_uncertainty_ratio: Option<f64>,
    /// What this host's kernel says of its clock.
    pub here: Option<ClockState>,
    /// What the far end says of its.
    pub far: Option<ClockState>,
    /// PTP clocks that this host has (Linux Documentation/driver-api/ptp.rst), such as `ptp0`.
    pub ptp_devices: Vec<String>,
}

vocabulary! {
    /// What one-way delays rest on.
    pub enum ClockMethod {
        /// The clocks were compared over the path itself: how a constant difference of the two ways
        /// is shared is not known.
        Compared = "compared",
        /// Both hosts say that their clocks are synchronised, and to more than a comparison could.
        Synchronised = "synchronised",
        /// Whoever measured said that both ends read the same clock.
        Same = "same",
        /// A clock was stepped meanwhile, or too little was answered: there are no delays.
        None = "none",
    }
}

/// What a host says of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockState {
    /// Whether an external source, such as NTP or PTP, sets it.
    pub synchronised: bool,
    /// It is off by no more than this, where that is told.
    pub max_error_s: Option<f64>,
}

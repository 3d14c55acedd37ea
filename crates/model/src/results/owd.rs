//! Each way of a path by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TimestampSource;
use super::udp::{LossPattern, OneWayDelay, Reordering};
use crate::distribution::Distribution;
use crate::protocol::Protocol;
use crate::vocabulary;

/// Delay, loss and order on the forward path and on the reverse path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwdResult {
    /// What the probes were made of.
    pub protocol: Protocol,
    /// IP address that was probed.
    pub address: String,
    /// UDP port that was probed.
    pub port: u16,
    /// Whether the packets were authenticated (RFC 8762, section 4.4).
    pub authenticated: bool,
    /// Probes that left this host.
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
    /// Round-trip times in seconds, without the time at the far end. Null where nothing was answered.
    pub rtt_s: Option<Distribution>,
    /// Whose clock stamped the packets at this end.
    pub timestamps: TimestampSource,
    /// The path from this host to the far end.
    pub up: OwdWay,
    /// The path from the far end to this host.
    pub down: OwdWay,
    /// Probes without an answer of which it is unknown in which direction they were lost: those after the last that was
    /// answered, and all where the far end does not count.
    pub lost_unplaced: u64,
    /// Whether the far end counts what it receives, which shows the losses of each direction.
    pub far_counts: bool,
    /// What is known of the two clocks.
    pub clocks: OwdClocks,
}

/// One direction of the path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwdWay {
    /// Packets known to have been sent in this direction, up to the last that was answered. Null where the far end does
    /// not count.
    pub sent: Option<u64>,
    /// Packets among them that arrived, duplicates not counted. Null where the far end does not count.
    pub received: Option<u64>,
    /// Packets among them that did not arrive. Null where the far end does not count.
    pub lost: Option<u64>,
    /// Share of the packets sent, 0 to 1, that did not arrive. Null where the far end does not count.
    pub loss_ratio: Option<f64>,
    /// How losses follow each other. Null where losses of both directions are between the same two answers, so that
    /// their order is unknown.
    pub losses: Option<LossPattern>,
    /// Packets that arrived again. Null where that is unknown.
    pub duplicates: Option<u64>,
    /// How packets overtook each other; of those whose answers came back.
    pub reordering: Reordering,
    /// One-way delay. Null where the clocks could not be compared.
    pub delay: Option<OneWayDelay>,
    /// Inter-packet delay variation in seconds (RFC 5481, section 4.1). Null with fewer than two answers.
    pub ipdv_s: Option<Distribution>,
    /// Packet delay variation in seconds (RFC 5481, section 4.2): delay above the smallest. Null where nothing was
    /// answered.
    pub pdv_s: Option<Distribution>,
    /// Interarrival jitter in seconds (RFC 3550, section 6.4.1). Null with fewer than two answers.
    pub jitter_s: Option<Distribution>,
    /// Smallest and largest hop limit with which packets arrived. Null where it is not reported.
    pub hop_limits: Option<[u8; 2]>,
}

/// What is known of the clocks of the two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwdClocks {
    /// How the clocks were compared, which the delays rest on.
    pub method: ClockMethod,
    /// Clock of the far host less the clock of this host in seconds, at the middle of the measurement. Null where the
    /// clocks could not be compared.
    pub offset_s: Option<f64>,
    /// Error that the delays may have in either direction, in seconds. Null where there are none.
    pub uncertainty_s: Option<f64>,
    /// How much faster the far clock runs, as a share; it was taken out of the delays. Null where it cannot be
    /// distinguished from zero.
    pub skew_ratio: Option<f64>,
    /// Error that the skew may have, as a share (two standard errors). Null where there is no skew.
    pub skew_uncertainty_ratio: Option<f64>,
    /// What this host's kernel reports of its clock. Null where it could not be read.
    pub here: Option<ClockState>,
    /// What the far end reports of its clock. Null where it reports nothing.
    pub far: Option<ClockState>,
    /// PTP clocks that this host has (Linux Documentation/driver-api/ptp.rst), such as `ptp0`.
    pub ptp_devices: Vec<String>,
}

vocabulary! {
    /// What one-way delays rest on.
    pub enum ClockMethod {
        /// The clocks were compared over the path itself: how a constant difference of the two directions is shared is
        /// unknown.
        Compared = "compared",
        /// Both hosts say that their clocks are synchronised, and to more than a comparison could.
        Synchronised = "synchronised",
        /// The user said that both ends read the same clock.
        Same = "same",
        /// A clock was stepped meanwhile, or too little was answered: there are no delays.
        None = "none",
    }
}

/// What a host reports of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockState {
    /// Whether an external source, such as NTP or PTP, sets it.
    pub synchronised: bool,
    /// Largest error of the clock in seconds. Null where it is not reported.
    pub max_error_s: Option<f64>,
}

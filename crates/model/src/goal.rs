//! What a check was asked for: how thorough it is to be, what the path is to be good for, and what is paid for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::vocabulary;

vocabulary! {
    /// What a path is to be good for: it decides what a check measures first, and what counts as a fault.
    pub enum Purpose {
        /// Voice and video calls.
        Call = "call",
        /// Games that need quick answers.
        Game = "game",
        /// Video streamed from a server.
        Video = "video",
        /// Virtual reality that a far machine renders.
        Vr = "vr",
        /// Pages of the web.
        Web = "web",
        /// Large files that a user waits for.
        Transfer = "transfer",
        /// Large files in the background, which must not disturb others.
        Backup = "backup",
    }
}

vocabulary! {
    /// How thorough a check is.
    pub enum Effort default Usual {
        /// At most 20 s; it does not clear the path of what takes longer to see.
        Quick = "quick",
        /// At most 60 s.
        Usual = "default",
        /// At most 5 minutes, with every instrument.
        Thorough = "thorough",
    }
}

vocabulary! {
    /// What users complain of, each with the metrics that it comes to (PERT Performance Guides, table 1.3).
    pub enum Complaint {
        /// Answers come late: delay, round trip, delay variation.
        Response = "response",
        /// Transfers are slow: rate, packet size, windows.
        Throughput = "throughput",
        /// Things break off: loss, delay variation, outages.
        Reliability = "reliability",
    }
}

/// What a check was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// How thorough it was to be.
    pub effort: Effort,
    /// Whether only this machine, its link, gateway and resolver were to be looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// Whether the gateway could be asked about its line (UPnP IGD).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
    /// What the path is to be good for. Absent where nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
    /// Rate that the path is to carry in either direction, in bit/s. Absent where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<f64>,
    /// Round trip that the path is to have under load at most, in seconds. Absent where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_s: Option<f64>,
    /// Rates that are paid for. Absent where they were not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<LinePlan>,
    /// What the user complains of. Absent where nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complaint: Option<Complaint>,
}

/// Rates of a line as they are sold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinePlan {
    /// Towards this host, in bit/s.
    pub down_bps: f64,
    /// Away from this host, in bit/s.
    pub up_bps: f64,
}

//! What a check was asked for: how thorough it is to be, what the path is to be good for, and what is paid for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::direction::OneDirection;
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
    /// The cable that joins the two machines, with nothing between them. Absent where none was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable: Option<Cable>,
    /// What the user complains of. Absent where nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complaint: Option<Complaint>,
}

/// A cable from one machine to the other, back to back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cable {
    /// Rate of the slower of the two ports, in bit/s, which both run at. Null where it is not known.
    pub port_bps: Option<f64>,
}

impl Asked {
    /// The rate that a direction is to reach, and what asks for it: the rate that was asked for, else what is paid for, else the cable's
    /// port. None where there is none of them.
    pub fn expected_bps(&self, direction: OneDirection) -> Option<(f64, Expected)> {
        let plan = self.plan.map(|plan| match direction {
            OneDirection::Up => plan.up_bps,
            OneDirection::Down => plan.down_bps,
        });
        let port_bps = self.cable.and_then(|cable| cable.port_bps);
        let asked = self.rate_bps.map(|bps| (bps, Expected::Asked));
        let paid = plan.map(|bps| (bps, Expected::Paid));
        let port = port_bps.map(|bps| (bps, Expected::Port));
        asked.or(paid).or(port).filter(|(bps, _)| *bps > 0.0)
    }
}

/// Why a rate is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The user asked for it.
    Asked,
    /// It is paid for.
    Paid,
    /// The two machines are joined by a cable whose ports run at it.
    Port,
}

impl Expected {
    /// As in "of 1 Gbit/s paid for".
    pub fn words(self) -> &'static str {
        match self {
            Self::Asked => "asked for",
            Self::Paid => "paid for",
            Self::Port => "of the port",
        }
    }
}

/// Rates of a line as they are sold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinePlan {
    /// Towards this host, in bit/s.
    pub down_bps: f64,
    /// Away from this host, in bit/s.
    pub up_bps: f64,
}

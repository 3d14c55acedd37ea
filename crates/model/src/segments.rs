//! One path in parts: what was found towards hosts in its middle and towards its end, and between which of them it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Cause, Place, Severity};
use crate::vocabulary;

/// Version of the document.
pub const SCHEMA: &str = "plumb.segments/1";

/// Checks of hosts along one path, and in which of its segments each finding is. Segment 0 is between this machine and the first
/// host, segment 1 between the first host and the second, and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Segments {
    /// Version of the document, always `plumb.segments/1`.
    pub schema: String,
    /// The hosts in the order of the path; the last is its end.
    pub hosts: Vec<SegmentHost>,
    /// What was found towards any of them, the worst first.
    pub findings: Vec<SegmentFinding>,
    /// Where rates fall, packets become smaller, and most of the round trip arises.
    pub steps: Vec<SegmentStep>,
    /// What must be known of the hosts and their checks.
    pub notes: Vec<String>,
}

/// A host on the path, and what its checks measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentHost {
    /// The name by which it was checked.
    pub name: String,
    /// Its address; `null` where it is unknown.
    pub address: Option<String>,
    /// How many hops it is away; `null` where its path was not seen to its end.
    pub hops: Option<u8>,
    /// The shortest round trip of the idle path in seconds; `null` where none is known.
    pub idle_rtt_s: Option<f64>,
    /// What an upload to it carried, in bit/s; `null` where none was possible.
    pub up_bps: Option<f64>,
    /// What a download from it carried, in bit/s; `null` where none was possible.
    pub down_bps: Option<f64>,
    /// The largest packet that the path to it carries, in bytes; `null` where it is unknown.
    pub path_mtu_bytes: Option<u32>,
}

vocabulary! {
    /// Whether the path to a host has what was found towards another.
    pub enum Share {
        /// It has as much of it, or most.
        Has = "has",
        /// It has none of it, or far less, and what was measured would have shown it.
        Lacks = "lacks",
        /// What was measured there does not decide it.
        Unsure = "unsure",
    }
}

/// A finding and where on the path it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentFinding {
    /// The cause that the finding reports.
    pub cause: Cause,
    /// Where the check of one host puts it.
    pub place: Place,
    /// The worst of it.
    pub severity: Severity,
    /// What the check found that says most of it.
    pub summary: String,
    /// The segments in which it may be: one where they can be distinguished; none where it is not on the path to the end.
    pub segments: Vec<usize>,
    /// The host, by its place in `hosts`, that may have it alone: in that machine, or on a branch of the path that only it uses.
    /// `null` where that is excluded.
    pub only_at: Option<usize>,
    /// Each host's share of it, in the order of `hosts`.
    pub shares: Vec<HostShare>,
}

/// Whether the path to one host has a finding, and why that is unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostShare {
    /// Whether it has it.
    pub share: Share,
    /// Why it is unsure, a clause; `null` where it is not.
    pub why: Option<String>,
}

vocabulary! {
    /// What changes along a path without a fault.
    pub enum StepOf {
        /// The rate of an upload, in bit/s.
        Up = "up",
        /// The rate of a download, in bit/s.
        Down = "down",
        /// The largest packet, in bytes.
        PacketSize = "packet-size",
        /// The shortest round trip of the idle path, in seconds.
        RoundTrip = "round-trip",
    }
}

/// Where a value of the path changes to what it is at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentStep {
    /// Which value of the path changes.
    pub of: StepOf,
    /// The value before it; `null` where it is unknown, as in the first segment.
    pub before: Option<f64>,
    /// The value after it: of the path.
    pub after: f64,
    /// The segments in which it may be.
    pub segments: Vec<usize>,
}

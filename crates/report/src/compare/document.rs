//! The document of a comparison.

use plumb_model::finding::{Cause, Place, Severity};
use plumb_model::grade::Grade;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::ChangeUnit;

/// Version of the document; the number rises when a reader of the old one would misread it.
pub const SCHEMA: &str = "plumb.compare/1";

/// What changed between two Runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The first Run.
    pub before: RunRef,
    /// The second Run.
    pub after: RunRef,
    /// What it comes to, in one sentence.
    pub summary: String,
    /// The marks of each loaded phase that has one in either Run.
    pub grades: Vec<GradeChange>,
    /// Every number that either Run has.
    pub rows: Vec<Change>,
    /// What became of the findings.
    pub findings: FindingChanges,
    /// In what the Runs are not like with like.
    pub notes: Vec<String>,
}

/// Which Run it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRef {
    /// Its id.
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// What it measured, as the user typed it.
    pub target: Option<String>,
}

/// The mark of a phase in both Runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GradeChange {
    /// The loaded direction.
    pub phase: Direction,
    /// The mark in the first Run.
    pub before: Option<Grade>,
    /// The mark in the second Run.
    pub after: Option<Grade>,
}

/// One number in both Runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Name of the field in the result; its suffix says the unit.
    pub name: String,
    /// `idle`, `up`, `down`, `both` or `after`.
    pub phase: String,
    /// Direction of the data, for a rate.
    pub direction: Option<Direction>,
    /// Protocol of the probes, for a latency.
    pub protocol: Option<Protocol>,
    /// What else it is of: `udp`, `quic`, an application, a kind of transaction, a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What the number counts.
    pub unit: ChangeUnit,
    /// The number in the first Run.
    pub before: Option<f64>,
    /// The number in the second Run.
    pub after: Option<f64>,
    /// After less before.
    pub change: Option<f64>,
    /// The same as a share of before; absent where before is zero.
    pub change_ratio: Option<f64>,
    /// Whether it is for the better; absent where the change is within what two measurements of
    /// the same path differ by, or where more is neither better nor worse.
    pub better: Option<bool>,
}

/// What became of the findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingChanges {
    /// In the first Run alone, although what they rest on was measured again.
    pub gone: Vec<FindingRef>,
    /// In the second Run alone.
    pub new: Vec<FindingRef>,
    /// In both, as the second has it.
    pub still: Vec<FindingRef>,
    /// In the first Run alone, and the second did not measure again what they rest on, as when it was
    /// interrupted: nothing is known of them.
    #[serde(default)]
    pub unmeasured: Vec<FindingRef>,
}

/// A finding in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRef {
    /// What it is.
    pub cause: Cause,
    /// Where it is.
    #[serde(rename = "where")]
    pub place: Place,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence with the numbers in it.
    pub summary: String,
}

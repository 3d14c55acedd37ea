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
    /// Version of the document, always `plumb.compare/1`.
    pub schema: String,
    /// Identity of the first Run.
    pub before: RunRef,
    /// Identity of the second Run.
    pub after: RunRef,
    /// What it comes to, in one sentence.
    pub summary: String,
    /// The marks of each loaded phase that has one in either Run.
    pub grades: Vec<GradeChange>,
    /// Every number that either Run has.
    pub rows: Vec<Change>,
    /// What became of the findings.
    pub findings: FindingChanges,
    /// Differences between the Runs that make numbers hard to compare.
    pub notes: Vec<String>,
}

/// A Run that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRef {
    /// Identity of the Run, a UUIDv7 (RFC 9562).
    pub id: String,
    /// When the Run began, RFC 3339 in UTC.
    pub started: String,
    /// The far end as the user typed it. Null where the Run has none.
    pub target: Option<String>,
}

/// The grade of a phase in both Runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GradeChange {
    /// Direction that was loaded in the phase.
    pub phase: Direction,
    /// Grade in the first Run. Null where it has none.
    pub before: Option<Grade>,
    /// Grade in the second Run. Null where it has none.
    pub after: Option<Grade>,
}

/// One number in both Runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Name of the field in the result; its suffix says the unit.
    pub name: String,
    /// Phase of the number: `idle`, `up`, `down`, `both` or `after`.
    pub phase: String,
    /// Direction of the data. Null where the number is of no direction.
    pub direction: Option<Direction>,
    /// Protocol of the probes. Null where the number is of no probes.
    pub protocol: Option<Protocol>,
    /// What else the number is of: `udp`, `quic`, an application, a kind of transaction, a port. Absent where it is of
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Unit of the number.
    pub unit: ChangeUnit,
    /// Value in the first Run. Null where that Run has none.
    pub before: Option<f64>,
    /// Value in the second Run. Null where that Run has none.
    pub after: Option<f64>,
    /// The value after less the value before. Null where either is missing.
    pub change: Option<f64>,
    /// The change as a share of the value before. Null where that is zero or missing.
    pub change_ratio: Option<f64>,
    /// Whether the change is for the better. Null where the change is within what two measurements of the same path
    /// differ by, or where more is neither better nor worse.
    pub better: Option<bool>,
}

/// What became of the findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingChanges {
    /// Findings of the first Run alone, although what they rest on was measured again.
    pub gone: Vec<FindingRef>,
    /// Findings of the second Run alone.
    pub new: Vec<FindingRef>,
    /// Findings of both Runs, as the second has them.
    pub still: Vec<FindingRef>,
    /// Findings of the first Run alone of which nothing is known: the second did not measure again what they rest on,
    /// as when it was interrupted.
    #[serde(default)]
    pub unmeasured: Vec<FindingRef>,
}

/// A finding in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRef {
    /// The cause that the finding reports.
    pub cause: Cause,
    /// The place on the path that the cause is in.
    #[serde(rename = "where")]
    pub place: Place,
    /// How much the cause matters.
    pub severity: Severity,
    /// One sentence with the numbers in it.
    pub summary: String,
    /// Why nothing is known of it. Absent where it was not measured again, or is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

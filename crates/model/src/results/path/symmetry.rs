//! The forward path and the reverse path, compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether packets take the same path in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathSymmetry {
    /// Whether the forward path and the reverse path are the same, by all lines together.
    pub routes: Sameness,
    /// Hops of the forward path. Null where the target did not answer.
    pub forward_hops: Option<u8>,
    /// Hops of the reverse path. Null where it does not reach this host.
    pub return_hops: Option<u8>,
    /// What shows whether two lines are the same.
    pub comparison: Comparison,
    /// Lines of the forward path from this host on, each beside its line of the reverse path.
    pub lines: Vec<LineBothWays>,
}

/// A line between two routers, as both paths crossed it or did not. The forward path shows its far end and
/// the reverse path its near one, because routers answer from the side that they were asked on. Where the
/// ways differ, an address may also be of the line by which the router's own answer left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineBothWays {
    /// The hop of the forward path behind the line. Null where the forward path has no such line.
    pub forward_ttl: Option<u8>,
    /// The hop of the reverse path behind the line, which stands before it on the forward path. Null where the reverse
    /// path has no such line.
    pub return_ttl: Option<u8>,
    /// Whether both are of one line, or of one router.
    pub sameness: Sameness,
}

/// Whether two things are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sameness {
    /// They are the same.
    Same,
    /// They are not the same.
    Differ,
    /// It cannot be decided: a hop does not answer, or the addresses show nothing.
    Unknown,
}

/// What shows whether two hops are of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Both ends of a line have addresses of one small network (/30, IPv6 /126, or smaller).
    Networks,
    /// Routers answer with one address whichever way they are asked.
    Addresses,
    /// Nothing: no two hops have anything in common.
    Nothing,
}

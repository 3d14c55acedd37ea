//! Why the far end does not do what it was asked.

use serde::{Deserialize, Serialize};

/// Why a phase, or a trace, does not take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Another one runs for the same address, or the server carries all that it may.
    Busy,
    /// More streams than the server allows, or none.
    Streams,
    /// Longer than the server allows, or no time at all.
    Duration,
    /// The number is not greater than the number of the phase before, or the name of the congestion control is invalid.
    Malformed,
    /// Not all data connections came in time, or the client stopped before they had.
    NotAttached,
    /// It asks for a file at the server's end, which the server does not lend, or without a limit.
    Disk,
    /// The server may not do it, by its configuration or its machine's.
    NotPermitted,
    /// The server's machine could not start it.
    Failed,
    /// A reason of a later version.
    #[serde(other)]
    Unknown,
}

//! What every receiver counts over time, and how any stream ends.

use plumb_model::printable;
use serde::{Deserialize, Serialize};

use crate::native::spec::MAX_TEXT_BYTES;

/// What a receiver had counted at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Seconds since the start of the phase.
    pub t_s: f64,
    /// Payload received until then.
    pub bytes: u64,
    /// What else a receiver of datagrams had counted; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramCount>,
}

/// How a stream ended by itself, before it was stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Seconds since the start of the phase.
    pub t_s: f64,
    /// What the socket said.
    pub error: String,
}

/// What a receiver of datagrams had counted at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCount {
    /// Packets that were due until then: those that arrived, and those lost between packets that arrived.
    pub due: u64,
    /// Packets of `due` that never arrived.
    pub lost: u64,
    /// How long those that came since the count before took; absent where none came.
    pub delay: Option<DelayAbove>,
}

/// Delays above the smallest of their stream, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayAbove {
    pub mean_ns: u64,
    pub max_ns: u64,
}

/// What is left of a text from the network: one bounded line that may be shown.
pub fn clip(text: String) -> String {
    let mut bytes = 0;
    printable::line(&text)
        .chars()
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= MAX_TEXT_BYTES
        })
        .collect()
}

pub(super) fn clip_end(end: StreamEnd) -> StreamEnd {
    StreamEnd {
        error: clip(end.error),
        ..end
    }
}

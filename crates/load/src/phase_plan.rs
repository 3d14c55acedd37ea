//! What a phase is to carry.

use std::time::Duration;

use plumb_wire::native::control::flow::Flows;

use crate::file::StreamFile;

/// What a phase is to carry.
#[derive(Debug, Clone)]
pub struct PhasePlan {
    pub flows: Vec<Flows>,
    /// How long it runs.
    pub duration: Duration,
    /// Payload, of both directions, after which it ends early.
    pub byte_limit: Option<u64>,
    /// Whether it ends when the rate of each direction has become steady.
    pub until_steady: bool,
    /// What the streams up send, in place of bytes from memory.
    pub from: Option<StreamFile>,
    /// Where what the streams down bring goes to, in place of nowhere.
    pub to: Option<StreamFile>,
}

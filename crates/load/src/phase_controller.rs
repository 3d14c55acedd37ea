//! Conducting a phase while it runs: what there is to see, and what can be decided.

use std::time::Duration;

pub use crate::responsiveness_probes::{Probe, Probes};
pub use crate::traffic::Looked;

/// What is seen of a phase at an instant.
#[derive(Debug)]
pub struct Seen {
    /// Since the phase began.
    pub elapsed: Duration,
    /// What had been carried at the latest sample.
    pub looked: Looked,
    /// What came of probes since the last time.
    pub probes: Probes,
}

/// What is to be done until the next time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Conduct {
    /// The phase continues; so many pairs of probes go out each second, one of each pair on a connection of its own and
    /// one on a loaded connection.
    Probe {
        /// None at all where it is zero.
        pairs_per_s: f64,
    },
    /// The phase is over.
    End,
}

/// Decides how long a phase lasts and how often it is probed.
pub trait Conductor {
    /// Is asked about every 50 ms.
    fn look(&mut self, seen: Seen) -> Conduct;
}

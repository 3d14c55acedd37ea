//! What rules look at: the measurements of a path. How to find one among them stands in [`evidence`](crate::evidence).

use plumb_model::goal::Asked;
use plumb_model::results::Direction;
use plumb_model::run::{HostFacts, Measurement, Run};

use crate::facts::{Log, Recorder};

/// What is known of a path.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    pub measurements: &'a [Measurement],
    pub local: &'a HostFacts,
    /// The far machine, where it reported its facts.
    pub far: Option<&'a HostFacts>,
    /// What the check was asked for, where it was one.
    pub asked: Option<&'a Asked>,
    /// Where rules keep what they compared; nowhere for most readers.
    pub(crate) log: Option<&'a Log>,
}

impl<'a> Case<'a> {
    /// What a Run knows.
    pub fn of(run: &'a Run) -> Self {
        Self {
            measurements: &run.measurements,
            local: &run.local.host,
            far: run.target.as_ref().and_then(|target| target.host.as_ref()),
            asked: run.asked.as_ref(),
            log: None,
        }
    }

    /// The same case for a rule that asks another rule, whose facts are not its own.
    pub(crate) fn unrecorded(&self) -> Self {
        Self { log: None, ..*self }
    }

    /// Answers what a rule asks of a direction, or of none.
    pub(crate) fn facts(&self, direction: impl Into<Option<Direction>>) -> Recorder<'a> {
        Recorder::new(self.log, direction.into())
    }
}

/// How much of a path the measurements are to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it: an all-clear is given where everything that one needs is healthy.
    Path,
    /// A part: what is wrong is found, and nothing is cleared.
    Part,
}

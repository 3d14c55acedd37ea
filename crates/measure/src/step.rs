//! One measurement in a plan: what it needs, and what it returns.

use crate::error::MeasureError;
use crate::session::Session;
use crate::yields::Yield;

/// One measurement in a plan. Whatever the far end does, it ends: each says by when.
pub trait Step {
    /// What is measured, in a few words that go on "… was not measured": "the path", "the phase 'up'".
    fn name(&self) -> String;

    /// Whether it needs the session with a responder; without one it is left out.
    fn needs_responder(&self) -> bool {
        false
    }

    /// Its part of the budget of bytes, against the parts of the steps that are still to come.
    fn weight(&self) -> u64 {
        0
    }

    /// Measures.
    ///
    /// # Errors
    /// When nothing could be measured. What was measured in part is returned, with what it lacks.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError>;
}

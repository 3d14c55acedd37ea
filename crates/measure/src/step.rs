//! One measurement in a plan: what it needs, and what it returns.

use plumb_diagnose::host::Audit;

use crate::error::MeasureError;
use crate::record::Measured;
use crate::session::Session;

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

/// What a step measured.
#[derive(Debug, Default)]
pub struct Yield {
    /// The measurements, in the order of the Run.
    pub measured: Vec<Measured>,
    /// What must be known to read them.
    pub notes: Vec<String>,
    /// Payload that was transferred, in bytes.
    pub bytes: u64,
    /// Why it is not all that was asked for, where it is not.
    pub shortfall: Option<MeasureError>,
    /// What a measurement of this machine says by itself.
    pub audit: Option<Audit>,
}

impl Yield {
    /// One measurement and nothing to say of it.
    pub fn of(measured: Measured) -> Self {
        Self {
            measured: vec![measured],
            ..Self::default()
        }
    }

    /// Adds a measurement.
    pub fn add(&mut self, measured: Measured) {
        self.measured.push(measured);
    }

    /// Adds a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds notes.
    pub fn notes<N: Into<String>>(&mut self, notes: impl IntoIterator<Item = N>) {
        self.notes.extend(notes.into_iter().map(Into::into));
    }
}

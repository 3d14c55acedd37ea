//! What a step of a plan returns.

use plumb_diagnose::host::Audit;

use crate::error::MeasureError;
use crate::record::Measured;

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

    pub fn add(&mut self, measured: Measured) {
        self.measured.push(measured);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn notes<N: Into<String>>(&mut self, notes: impl IntoIterator<Item = N>) {
        self.notes.extend(notes.into_iter().map(Into::into));
    }
}

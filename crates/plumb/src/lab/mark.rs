//! A Run made inside a laboratory is marked with how well that kept up meanwhile.

use plumb_lab::client::{self, LatenessWatch};
use plumb_lab::error::LabError;
use plumb_model::run::Run;

/// The mark of a Run that is being made; none outside a laboratory.
pub(crate) struct Mark(Option<Result<LatenessWatch, LabError>>);

impl Mark {
    /// Asks the laboratory to watch itself from now on.
    pub(crate) fn begin() -> Self {
        Self(client::inside().then(LatenessWatch::begin))
    }

    /// Marks the Run, which ends the watching.
    pub(crate) fn set(&mut self, mut run: Run) -> Run {
        match self.0.take().map(|lab| lab.and_then(LatenessWatch::end)) {
            Some(Ok(mark)) => run.local.lab = Some(mark),
            Some(Err(e)) => run.notes.push(format!(
                "The lab could not be asked how well it kept up: {e}"
            )),
            None => {}
        }
        run
    }
}

//! `plumb capture`: what captured packets show.

mod beside;
mod copy;
mod files;
mod follow;
mod live;

use plumb_capture::{Analysis, Filter, Named, Reader, Sides, Sieve, Source, Watch};
use plumb_model::results::Outcome;
use plumb_model::results::capture::CaptureFile;
use plumb_net::clock;

pub use self::beside::{Beside, Kept};
pub use self::copy::PacketCopy;
pub use self::files::{Files, Ring};
pub use self::follow::Follow;
pub use self::live::{Live, Wanted};
use crate::error::MeasureError;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Reads packets to their end, or until it is to stop.
pub struct CapturePackets<'a, S = Reader> {
    pub sources: Vec<Named<S>>,
    /// Which packets count; all of them without one.
    pub filter: Option<Filter>,
    /// Who looks on meanwhile.
    pub watch: Watch<'a>,
}

impl<S: Source> Step for CapturePackets<'_, S> {
    fn name(&self) -> String {
        "the capture".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let started_ns = clock::monotonic_ns();
        let sources = std::mem::take(&mut self.sources);
        let mut sieve = self.filter.take().map(Sieve::new);
        let watch = std::mem::take(&mut self.watch);
        let result = Analysis::of(sources, sieve.as_mut(), watch, &|| {
            !S::SEES_STOP && session.is_stopped()
        });
        let mut out = Yield::default();
        if let Some(sieve) = &sieve {
            let (passed_over, counted) = (sieve.passed_over(), result.packets);
            let all = passed_over.saturating_add(counted);
            out.note(format!(
                "The filter passed over {passed_over} of {all} packets."
            ));
        }
        note_incomplete(&mut out, result.files.iter());
        out.add(Measured::until_now(
            started_ns,
            Outcome::Capture(Box::new(result)),
        ));
        Ok(out)
    }
}

/// Matches captures of the same traffic at two places.
pub struct CaptureBothSides {
    /// The client's side first; `None` once they were read.
    pub files: Option<[Named; 2]>,
}

impl Step for CaptureBothSides {
    fn name(&self) -> String {
        "the two captures".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let started_ns = clock::monotonic_ns();
        let mut out = Yield::default();
        if let Some(files) = self.files.take() {
            let result = Sides::of(files, &|| session.is_stopped());
            note_incomplete(&mut out, result.sides.iter().map(|side| &side.file));
            let outcome = Outcome::CaptureSides(Box::new(result));
            out.add(Measured::until_now(started_ns, outcome));
        }
        Ok(out)
    }
}

fn note_incomplete<'a>(out: &mut Yield, files: impl Iterator<Item = &'a CaptureFile>) {
    for file in files {
        if let Some(why) = &file.incomplete {
            let packets = file.packets;
            out.note(format!(
                "{}: {why}. The {packets} packets before that count.",
                file.name
            ));
        }
    }
}

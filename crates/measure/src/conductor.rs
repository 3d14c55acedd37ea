//! Runs the steps of a plan one after the other into one Run, within a budget of bytes and time.
//!
//! Each step is recorded as it ends, so that what an interrupted or failed plan had measured is kept, and the maker
//! of the plan can look at the Run so far and ask for another step.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::{Client, ClientError};
use plumb_model::goal::Asked;
use plumb_model::run::Run;
use plumb_model::units::ByteCount;

use crate::budget::Budget;
use crate::error::MeasureError;
use crate::far_end::FarEnd;
use crate::progress::Watcher;
use crate::record::{Judgement, Record};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// A plan that is being carried out.
pub struct Conductor<'a> {
    record: Record,
    session: Session<'a>,
    budget: Budget,
    shortfall: Option<MeasureError>,
}

/// What a plan came to.
#[derive(Debug)]
pub struct Conducted {
    /// All that was measured.
    pub run: Run,
    /// Why it is not all that was asked for, where it is not.
    pub shortfall: Option<MeasureError>,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Went {
    /// It was measured and recorded.
    Recorded,
    /// It was measured in part, and what it lacks is recorded as well.
    InPart,
    /// It failed, or was not begun.
    Not,
}

impl<'a> Conductor<'a> {
    /// Begins a Run about the path to a far end. `command` is the verb and its arguments; there is no `address`
    /// where there are many targets.
    pub fn towards(
        command: Vec<String>,
        name: &str,
        address: impl Into<Option<IpAddr>>,
        watcher: &'a dyn Watcher,
        stop: &'a Arc<AtomicBool>,
    ) -> Self {
        Self::of(Record::begin(command, name, address), watcher, stop)
    }

    /// Continues a Run that was measured before.
    pub fn resume(run: Run, watcher: &'a dyn Watcher, stop: &'a Arc<AtomicBool>) -> Self {
        Self::of(Record::resume(run), watcher, stop)
    }

    /// Begins a Run about this machine alone.
    pub fn here(command: Vec<String>, watcher: &'a dyn Watcher, stop: &'a Arc<AtomicBool>) -> Self {
        Self::of(Record::here(command), watcher, stop)
    }

    /// Begins a Run about the path to a responder.
    pub fn with_responder(
        command: Vec<String>,
        name: &str,
        responder: Client,
        watcher: &'a dyn Watcher,
        stop: &'a Arc<AtomicBool>,
    ) -> Self {
        Self::with_far_end(
            command,
            name,
            FarEnd::Responder(Box::new(responder)),
            watcher,
            stop,
        )
    }

    /// Begins a Run about the path to who carries load.
    pub fn with_far_end(
        command: Vec<String>,
        name: &str,
        far_end: FarEnd,
        watcher: &'a dyn Watcher,
        stop: &'a Arc<AtomicBool>,
    ) -> Self {
        let mut this = Self::towards(command, name, far_end.address().ip(), watcher, stop);
        if let Some(responder) = far_end.responder() {
            let far = responder.welcome().host.clone();
            this.record.far_host(far.clone());
            this.session.far = Some(far);
        }
        this.session.far_end = Some(far_end);
        this
    }

    fn of(record: Record, watcher: &'a dyn Watcher, stop: &'a Arc<AtomicBool>) -> Self {
        Self {
            session: Session {
                watcher,
                stop: Arc::clone(stop),
                far_end: None,
                background: None,
                gateway: None,
                local: record.run().local.host.clone(),
                far: None,
                share: u64::MAX,
                deadline: None,
                next_id: String::new(),
            },
            record,
            budget: Budget::new(ByteCount::from_bytes(u64::MAX)),
            shortfall: None,
        }
    }

    /// The same with the most that all steps together may transfer.
    #[must_use]
    pub fn within(self, bytes: ByteCount) -> Self {
        Self {
            budget: Budget::new(bytes),
            ..self
        }
    }

    /// Keeps what the check was asked for in the Run.
    pub fn asked(&mut self, asked: Option<Asked>) {
        self.record.asked(asked);
    }

    /// Carries out a plan of this step alone.
    ///
    /// # Errors
    /// When nothing was measured.
    pub fn only(
        mut self,
        step: &mut dyn Step,
        judgement: Judgement,
    ) -> Result<Conducted, MeasureError> {
        self.step(step, 0);
        self.finish(judgement)
    }

    /// Lets the steps to come transfer so much more.
    pub fn grant(&mut self, bytes: ByteCount) {
        self.budget.grant(bytes);
    }

    /// The Run, as much of it as is recorded.
    pub fn run(&self) -> &Run {
        self.record.run()
    }

    /// What the steps share.
    pub fn session(&mut self) -> &mut Session<'a> {
        &mut self.session
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.record.note(note);
    }

    /// Runs steps in order; one that fails does not keep the others from running. The steps that come after them weigh
    /// `later`. Returns whether all of them were recorded whole.
    pub fn conduct<'s>(
        &mut self,
        steps: impl IntoIterator<Item = &'s mut (dyn Step + 's)>,
        later: u64,
    ) -> bool {
        let mut steps: Vec<_> = steps.into_iter().collect();
        let mut left: u64 = steps.iter().map(|step| step.weight()).sum();
        let mut whole = true;
        for step in &mut steps {
            left = left.saturating_sub(step.weight());
            whole &= self.step(*step, left.saturating_add(later)) == Went::Recorded;
        }
        whole
    }

    /// Runs one step and records it; the steps still to come weigh `later`.
    pub fn step(&mut self, step: &mut dyn Step, later: u64) -> Went {
        let far_end = self.session.far_end.as_ref();
        let has_responder = far_end.is_some_and(|far| far.responder().is_some());
        if self.session.is_stopped() || (step.needs_responder() && !has_responder) {
            return Went::Not;
        }
        if self.session.time_left() == Some(Duration::ZERO) {
            self.record.note(format!(
                "{} was not measured, because the time was over.",
                sentence(&step.name())
            ));
            return Went::Not;
        }
        self.session.share = match step.weight() {
            0 => self.budget.left(),
            weight => self.budget.share(weight, later),
        };
        self.session.next_id = self.record.next_id();
        match step.measure(&mut self.session) {
            Ok(found) => self.take(found),
            Err(error) => {
                if self.record.is_empty() {
                    // Nothing to keep: it is the answer.
                } else if !matches!(error, MeasureError::Cancelled) {
                    self.record.note(format!(
                        "{} was not measured: {error}.",
                        sentence(&step.name())
                    ));
                }
                self.fall_short(error);
                Went::Not
            }
        }
    }

    fn take(&mut self, found: Yield) -> Went {
        self.budget.spend(found.bytes);
        for measured in found.measured {
            self.record.add(measured);
        }
        for note in found.notes {
            self.record.note(note);
        }
        if let Some(audit) = found.audit {
            self.record.audited(audit);
        }
        match found.shortfall {
            Some(why) => {
                self.fall_short(why);
                Went::InPart
            }
            None => Went::Recorded,
        }
    }

    /// Keeps the first reason, which the others may follow from, and lets go of a responder that is lost.
    fn fall_short(&mut self, why: MeasureError) {
        if why.is_far_end_lost() {
            self.session.far_end = None;
        }
        self.shortfall.get_or_insert(why);
    }

    /// Ends the Run, and with it the session with the responder and the probes.
    ///
    /// # Errors
    /// When nothing at all was measured.
    pub fn finish(mut self, judgement: Judgement) -> Result<Conducted, MeasureError> {
        if let Some(gateway) = self.session.gateway.take() {
            self.record.add(gateway.end());
        }
        if let Some(background) = self.session.background.take() {
            for note in background.end() {
                self.record.note(note);
            }
        }
        match self.shortfall.take() {
            Some(why) if self.record.is_empty() => Err(why),
            None if self.record.is_empty() && self.session.is_stopped() => {
                Err(MeasureError::Cancelled)
            }
            shortfall => Ok(Conducted {
                run: self.record.finish(judgement),
                shortfall,
            }),
        }
    }
}

/// The same with a capital at its beginning.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

impl MeasureError {
    /// Whether the session with the responder is over.
    pub fn is_far_end_lost(&self) -> bool {
        matches!(
            self,
            Self::InPart { .. }
                | Self::Client(
                    ClientError::Lost { .. }
                        | ClientError::Ended { .. }
                        | ClientError::NotPlumb { .. }
                )
        )
    }
}

#[cfg(test)]
mod tests;

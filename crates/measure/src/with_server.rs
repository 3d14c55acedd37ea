//! The plan of what is measured against a server of others: the load of each direction, by that server's own protocol.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_load::Peer;

use crate::conductor::{Conducted, Conductor};
use crate::cut_short;
use crate::error::MeasureError;
use crate::phase::{Phase, PhaseSpec};
use crate::progress::Watcher;
use crate::record::Judgement;
use crate::session::Session;
use crate::step::Step;
use crate::with_responder::Plan;
use crate::yields::Yield;

/// Measures the load of the plan's directions; what else a plan has needs a responder, and is not asked for.
///
/// # Errors
/// When nothing was measured.
pub fn run(
    peer: &mut dyn Peer,
    address: IpAddr,
    plan: &Plan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let conductor = Conductor::towards(plan.command.clone(), &plan.name, address, watcher, stop);
    let mut conductor = conductor.within(plan.budget);
    let mut left = plan.directions.as_slice();
    let all: u64 = left.iter().map(|d| plan.times.weight(*d)).sum();
    let mut short = Vec::new();
    while let [direction, later @ ..] = left {
        let mut step = ServerPhase {
            peer: &mut *peer,
            spec: plan.spec(Some(*direction)),
            weight: plan.times.weight(*direction),
            ran: None,
        };
        conductor.step(&mut step, later.iter().map(|d| plan.times.weight(*d)).sum());
        let part = step.weight as f64 / all as f64;
        short.extend(step.ran.and_then(|phase| phase.cut_short(part)));
        left = later;
    }
    if let Some(note) = cut_short::note(&short, false) {
        conductor.note(note);
    }
    if conductor.session().is_stopped() {
        conductor.note("The measurement was stopped before its end.");
    }
    conductor.finish(Judgement::Part)
}

/// The load of one direction.
struct ServerPhase<'a> {
    peer: &'a mut dyn Peer,
    spec: PhaseSpec,
    weight: u64,
    /// The phase once it has run.
    ran: Option<Phase>,
}

impl Step for ServerPhase<'_> {
    fn name(&self) -> String {
        format!("the phase '{}'", self.spec.name())
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    /// Lasts as long as the phase, and at most a minute for a server that is busy or silent.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut spec = self.spec.clone();
        if !spec.bytes_are_the_goal {
            spec.byte_limit = Some(session.share);
        }
        let phase = Phase::run(self.peer, spec, session.watcher, &|| None, &session.stop)?;
        let mut found = Yield {
            bytes: phase.bytes(),
            ..Yield::default()
        };
        phase.record_rates(&mut found, &session.local, None);
        if let Some(why) = phase.lost() {
            found.shortfall = Some(MeasureError::InPart {
                why: why.to_owned(),
            });
        }
        self.ran = Some(phase);
        Ok(found)
    }
}

//! The plans of the verbs that find out what a shaper needs: its rate, or the framing of its line.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_load::Client;
use plumb_model::direction::OneDirection;
use plumb_model::framing::Framing;
use plumb_model::units::{ByteCount, si};

use super::framing_step::LineFraming;
use super::rate_step::{ShapedRate, Shaper};
use crate::conductor::{Conducted, Conductor, Went};
use crate::error::MeasureError;
use crate::idle::IdlePath;
use crate::probes::Aim;
use crate::progress::Watcher;
use crate::record::Judgement;

/// What both have in common.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The far end as the user typed it.
    pub name: String,
    /// The verb and its arguments, for the Run.
    pub command: Vec<String>,
    pub directions: Vec<OneDirection>,
    /// The most payload that may be transferred.
    pub budget: ByteCount,
}

impl Plan {
    /// How long it takes and how much it may transfer, for those who pay for it.
    pub fn announcement(&self) -> String {
        format!(
            "at most a minute in each direction against {}; it transfers at most {} (--budget changes that)",
            self.name,
            si(self.budget.bytes() as f64, "B")
        )
    }
}

/// Finds the rate of a shaper in each direction, of which `framing` says what it counts on each packet. The shaper is left
/// at whatever was tried last.
///
/// # Errors
/// When the responder refuses, or goes away before anything was measured.
pub fn search_rates(
    responder: Client,
    plan: &Plan,
    (shaper, framing): (&mut dyn Shaper, Framing),
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let aim = Aim {
        name: plan.name.clone(),
        address: responder.address(),
        echoes: responder.welcome().udp_port.is_some(),
        classes: Vec::new(),
        places: Vec::new(),
    };
    let command = plan.command.clone();
    let conductor = Conductor::with_responder(command, &plan.name, responder, watcher, stop);
    let mut conductor = conductor.within(plan.budget);
    conductor.step(&mut IdlePath::of_far_end(aim), 0);
    let later = (0..plan.directions.len() as u64).rev();
    for (direction, later) in plan.directions.iter().copied().zip(later) {
        let mut step = ShapedRate {
            shaper,
            direction,
            framing,
        };
        if conductor.step(&mut step, later) != Went::Recorded {
            break;
        }
    }
    conductor.finish(Judgement::AsAudited)
}

/// Finds what the line adds to each packet, in each direction.
///
/// # Errors
/// When the responder refuses, or goes away before anything was measured.
pub fn find_framing(
    responder: Client,
    plan: &Plan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let command = plan.command.clone();
    let conductor = Conductor::with_responder(command, &plan.name, responder, watcher, stop);
    let mut conductor = conductor.within(plan.budget);
    let later = (0..plan.directions.len() as u64).rev();
    for (direction, later) in plan.directions.iter().copied().zip(later) {
        if conductor.step(&mut LineFraming { direction }, later) != Went::Recorded {
            break;
        }
    }
    conductor.finish(Judgement::AsAudited)
}

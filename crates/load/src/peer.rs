//! Far ends that carry load: one interface, whatever protocol they speak.

use std::sync::atomic::AtomicBool;

use crate::control_client::ClientError;
use crate::outcome::PhaseOutcome;
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_watch::Progress;

/// A far end that carries load.
pub trait Peer {
    /// Runs a phase. `conductor` decides, while it runs, how densely it is probed and when it is over; at the latest it ends
    /// as the plan says. Once the load runs, `cancel` ends it within 100 ms, and what was measured until then is kept.
    ///
    /// # Errors
    /// When the far end refuses it, cannot do what the plan asks for, or goes away before the load runs.
    fn run_phase(
        &mut self,
        plan: &PhasePlan,
        conductor: &mut dyn Conductor,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<PhaseOutcome, ClientError>;
}

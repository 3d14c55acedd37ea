//! Far ends that carry load: one interface, whatever protocol they speak.

use std::sync::atomic::AtomicBool;

use plumb_model::results::Direction;

use crate::control_client::ClientError;
use crate::outcome::PhaseOutcome;
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_watch::Progress;

/// What loads a far end carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carries {
    pub down: bool,
    pub up: bool,
    /// Whether it carries both directions at once.
    pub both: bool,
    /// The most streams of a direction.
    pub streams: u32,
    /// Whether it takes datagrams as well as TCP.
    pub datagrams: bool,
}

impl Carries {
    /// Whatever is asked for.
    pub const EVERYTHING: Self = Self {
        down: true,
        up: true,
        both: true,
        streams: u32::MAX,
        datagrams: true,
    };

    /// Whether it carries that direction.
    pub fn has(self, direction: Direction) -> bool {
        match direction {
            Direction::Down => self.down,
            Direction::Up => self.up,
            Direction::Both => self.both,
        }
    }
}

/// What a Run calls the way in which the native protocol measures round trips a minute: the algorithm and formula of
/// draft-ietf-ippm-responsiveness, with records over TLS 1.3 in the place of HTTP/2.
pub const NATIVE_RPM: &str = "native-tls-records";

/// A far end that carries load.
pub trait Peer {
    /// How round trips a minute are measured with it.
    fn rpm_method(&self) -> &'static str {
        NATIVE_RPM
    }

    /// What loads it carries.
    fn carries(&self) -> Carries {
        Carries::EVERYTHING
    }

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

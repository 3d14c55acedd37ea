//! What the steps of a plan share while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_model::run::HostFacts;

use crate::background::Background;
use crate::far_end::FarEnd;
use crate::gateway::watch::Watch;
use crate::progress::Watcher;

/// What the steps of a plan share while it runs.
pub struct Session<'a> {
    /// Whom to show how it goes.
    pub watcher: &'a dyn Watcher,
    /// Set when the user wants it to end.
    pub stop: Arc<AtomicBool>,
    /// The far end that carries load; `None` where there is none, and when it is lost.
    pub far_end: Option<FarEnd>,
    /// The probes that run beside the steps, where a step has begun them.
    pub background: Option<Background>,
    /// The gateway's counters, where a step has begun to watch them.
    pub gateway: Option<Watch>,
    /// Facts of this host.
    pub local: HostFacts,
    /// Facts of the far host, where it reported them.
    pub far: Option<HostFacts>,
    /// Payload that the present step may transfer, in bytes.
    pub share: u64,
    /// When the plan has to be over.
    pub deadline: Option<Instant>,
    /// The name that the next measurement will have in the Run.
    pub next_id: String,
}

impl Session<'_> {
    /// Whether a server of others carries the load.
    pub fn has_server(&self) -> bool {
        let far_end = self.far_end.as_ref();
        far_end.is_some_and(|far| far.responder().is_none())
    }

    /// Whether the user wants it to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What is left of the plan's time; `None` where it has no end.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }
}

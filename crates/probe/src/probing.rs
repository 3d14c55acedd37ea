//! The thread that probes, and what can be seen of it from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumb_model::results::ProbeProtocol;
use plumb_net::datagram::set_exact_timers;

use crate::icmp::IcmpEcho;
use crate::log::ProbeLog;
use crate::plan::{Plan, ProbeError};
use crate::strategy::{self, Network};
use crate::udp::UdpEcho;

/// How far a probing has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Probes sent.
    pub sent: u64,
    /// Probes answered in time.
    pub received: u64,
    /// Round trip of the latest answer.
    pub last_rtt: Option<Duration>,
}

/// Reads how far a probing has come, from any thread.
#[derive(Debug, Clone, Default)]
pub struct ProgressHandle(Arc<Mutex<Progress>>);

impl ProgressHandle {
    /// As of now.
    pub fn read(&self) -> Progress {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, update: impl FnOnce(&mut Progress)) {
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A probing under way.
#[derive(Debug)]
pub struct Probing {
    thread: JoinHandle<ProbeLog>,
    stop: Arc<AtomicBool>,
    progress: ProgressHandle,
}

impl Probing {
    /// Opens the sockets, fetches the cookie for UDP, which takes a round trip and at most 3 s,
    /// and starts the thread in the caller's network namespace.
    ///
    /// The thread ends when the plan is fulfilled or `stop` is set, at most the plan's timeout
    /// and 100 ms later.
    ///
    /// # Errors
    /// When the plan is impossible, sockets are refused, or no UDP echo answers.
    pub fn start(plan: Plan, stop: Arc<AtomicBool>) -> Result<Self, ProbeError> {
        plan.check()?;
        match plan.protocol {
            ProbeProtocol::Icmp => Self::spawn(IcmpEcho::open(&plan)?, plan, stop),
            ProbeProtocol::Udp => Self::spawn(UdpEcho::open(&plan)?, plan, stop),
        }
    }

    fn spawn(
        mut network: impl Network + Send + 'static,
        plan: Plan,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ProbeError> {
        let progress = ProgressHandle::default();
        let (far_end, in_thread) = (plan.far_end(), (Arc::clone(&stop), progress.clone()));
        let thread = thread::Builder::new()
            .name("probe".into())
            .spawn(move || {
                // Without it probes leave up to 50 µs late, which their lateness tells.
                let _ = set_exact_timers();
                let (stop, progress) = in_thread;
                strategy::run(&mut network, &plan, &stop, &progress)
            })
            .map_err(|source| ProbeError::Local {
                far_end,
                what: "starting a thread",
                source,
            })?;
        Ok(Self {
            thread,
            stop,
            progress,
        })
    }

    /// How far it has come, for as long as the handle lives.
    pub fn progress(&self) -> ProgressHandle {
        self.progress.clone()
    }

    /// Asks it to end: no more probes, but those under way are waited for.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it has ended, so that [`Self::join`] would not wait.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    pub fn join(self) -> ProbeLog {
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Random numbers that tell this probing from others.
pub(crate) fn random_u32(far_end: &str) -> Result<u32, ProbeError> {
    getrandom::u32().map_err(|error| ProbeError::Local {
        far_end: far_end.to_owned(),
        what: "drawing a random number",
        source: std::io::Error::other(error.to_string()),
    })
}

/// A local failure, said with the name that the user typed.
pub(crate) fn local(plan: &Plan, what: &'static str) -> impl FnOnce(std::io::Error) -> ProbeError {
    let far_end = plan.far_end();
    move |source| ProbeError::Local {
        far_end,
        what,
        source,
    }
}

#[cfg(test)]
mod tests;

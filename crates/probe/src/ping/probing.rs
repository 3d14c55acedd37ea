//! The thread that probes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_net::datagram::set_exact_timers;

use crate::ping::connections::Connections;
use crate::ping::dns::DnsQuestions;
use crate::ping::icmp::IcmpEcho;
use crate::ping::irtt::IrttEcho;
use crate::ping::log::ProbeLog;
use crate::ping::plan::{Plan, ProbeError};
use crate::ping::progress::{ProgressHandle, Seen};
use crate::ping::stamp::StampEcho;
use crate::ping::strategy::{self, Network};
use crate::ping::udp::UdpEcho;
use crate::ping::udp_port::UdpPort;

/// A probing under way.
#[derive(Debug)]
pub struct Probing {
    thread: JoinHandle<ProbeLog>,
    stop: Arc<AtomicBool>,
    abandoned: Arc<AtomicBool>,
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
        Self::begin(plan, stop, None)
    }

    /// The same, and reports each probe as soon as its outcome is known. The channel ends with the probing.
    ///
    /// # Errors
    /// As [`Probing::start`].
    pub fn watched(
        plan: Plan,
        stop: Arc<AtomicBool>,
    ) -> Result<(Self, mpsc::Receiver<Seen>), ProbeError> {
        let (sender, receiver) = mpsc::channel();
        Ok((Self::begin(plan, stop, Some(sender))?, receiver))
    }

    fn begin(
        plan: Plan,
        stop: Arc<AtomicBool>,
        seen: Option<mpsc::Sender<Seen>>,
    ) -> Result<Self, ProbeError> {
        plan.check()?;
        let network: Box<dyn Network + Send> = match plan.protocol {
            Protocol::Icmp => Box::new(IcmpEcho::open(&plan)?),
            Protocol::Udp => Box::new(UdpEcho::open(&plan)?),
            Protocol::Stamp => Box::new(StampEcho::open(&plan)?),
            Protocol::Irtt => Box::new(IrttEcho::open(&plan)?),
            Protocol::UdpPort => Box::new(UdpPort::open(&plan)?),
            Protocol::Tcp | Protocol::Http | Protocol::Https => Box::new(Connections::open(&plan)),
            Protocol::Dns => Box::new(DnsQuestions::open(&plan)?),
            Protocol::Tls | Protocol::Quic | Protocol::WebSocket | Protocol::Transactions => {
                return Err(ProbeError::Protocol(plan.protocol));
            }
        };
        Self::spawn(network, plan, stop, seen)
    }

    fn spawn(
        mut network: Box<dyn Network + Send>,
        plan: Plan,
        stop: Arc<AtomicBool>,
        seen: Option<mpsc::Sender<Seen>>,
    ) -> Result<Self, ProbeError> {
        // Only the thread holds the sender, so that the listener learns when it has ended.
        let telling = seen.map(ProgressHandle::telling).unwrap_or_default();
        let progress = telling.silent();
        let abandoned = Arc::new(AtomicBool::new(false));
        let stops = (Arc::clone(&stop), Arc::clone(&abandoned));
        let far_end = plan.far_end();
        let thread = thread::Builder::new()
            .name("probe".into())
            .spawn(move || {
                // Without it probes leave up to 50 µs late, which shows in their lateness.
                let _ = set_exact_timers();
                let (stop, abandoned) = stops;
                strategy::run(&mut *network, &plan, (&stop, &abandoned), &telling)
            })
            .map_err(|source| ProbeError::Local {
                far_end,
                what: "starting a thread",
                source,
            })?;
        Ok(Self {
            thread,
            stop,
            abandoned,
            progress,
        })
    }

    /// How far it has come, for as long as the handle lives.
    pub fn progress(&self) -> ProgressHandle {
        self.progress.clone()
    }

    /// What it has seen so far; probes that are not answered yet count as lost. `None` where it has ended, or does not
    /// answer within a second: then [`Self::join`] returns the reason.
    pub fn so_far(&self) -> Option<ProbeLog> {
        /// Ten times as long as it sleeps at most.
        const PATIENCE: Duration = Duration::from_secs(1);
        let answer = self.progress.ask();
        if self.is_finished() {
            return None;
        }
        answer.recv_timeout(PATIENCE).ok()
    }

    /// Asks it to end: no more probes, but those under way are waited for.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends it without waiting for anything: the far end is gone.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
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

#[cfg(test)]
mod tests;

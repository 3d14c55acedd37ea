//! The thread that probes, and what can be seen of it from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumb_model::results::ProbeProtocol;
use plumb_net::datagram::{DatagramSocket, set_exact_timers};

use crate::connections::Connections;
use crate::dns::DnsQuestions;
use crate::icmp::IcmpEcho;
use crate::log::ProbeLog;
use crate::plan::{Plan, ProbeError};
use crate::stamp::StampEcho;
use crate::strategy::{self, Network};
use crate::udp::UdpEcho;
use crate::udp_port::UdpPort;

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

/// What became of one probe, told as soon as it is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// A probe was answered in time.
    Answered {
        /// Number of the probe, from 0.
        sequence: u32,
        /// Its payload.
        size_bytes: usize,
        /// The round trip.
        rtt: Duration,
        /// The hop limit of the answer, where the protocol tells.
        hop_limit: Option<u8>,
        /// When the answer was in hand, ns of CLOCK_REALTIME.
        at_ns: u64,
    },
    /// Another answer to the same probe.
    Again {
        /// Number of the probe.
        sequence: u32,
    },
    /// No answer came within the timeout.
    Lost {
        /// Number of the probe.
        sequence: u32,
    },
    /// Something else that came back, or our own machine's refusal, in words.
    Told(String),
}

/// Reads how far a probing has come, from any thread.
#[derive(Debug, Clone, Default)]
pub struct ProgressHandle {
    progress: Arc<Mutex<Progress>>,
    /// Who is told of each probe.
    seen: Option<mpsc::Sender<Seen>>,
}

impl ProgressHandle {
    /// As of now.
    pub fn read(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle that tells of each probe.
    pub(crate) fn telling(seen: mpsc::Sender<Seen>) -> Self {
        Self {
            seen: Some(seen),
            ..Self::default()
        }
    }

    /// Tells whoever wants to know of each probe; one that does not listen any more is no error.
    pub(crate) fn tell(&self, seen: impl FnOnce() -> Seen) {
        if let Some(sender) = &self.seen {
            let _ = sender.send(seen());
        }
    }

    pub(crate) fn update(&self, update: impl FnOnce(&mut Progress)) {
        update(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
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
        Self::begin(plan, stop, None)
    }

    /// The same, and tells of each probe as soon as it is known what became of it. The channel
    /// ends with the probing.
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
        match plan.protocol {
            ProbeProtocol::Icmp => Self::spawn(IcmpEcho::open(&plan)?, plan, stop, seen),
            ProbeProtocol::Udp => Self::spawn(UdpEcho::open(&plan)?, plan, stop, seen),
            ProbeProtocol::Stamp => Self::spawn(StampEcho::open(&plan)?, plan, stop, seen),
            ProbeProtocol::UdpPort => Self::spawn(UdpPort::open(&plan)?, plan, stop, seen),
            ProbeProtocol::Tcp | ProbeProtocol::Http | ProbeProtocol::Https => {
                Self::spawn(Connections::open(&plan), plan, stop, seen)
            }
            ProbeProtocol::Dns => Self::spawn(DnsQuestions::open(&plan)?, plan, stop, seen),
        }
    }

    fn spawn(
        mut network: impl Network + Send + 'static,
        plan: Plan,
        stop: Arc<AtomicBool>,
        seen: Option<mpsc::Sender<Seen>>,
    ) -> Result<Self, ProbeError> {
        // The thread alone can tell, so that whoever listens learns when it has ended.
        let telling = seen.map(ProgressHandle::telling).unwrap_or_default();
        let progress = ProgressHandle {
            seen: None,
            ..telling.clone()
        };
        let (far_end, in_thread) = (plan.far_end(), (Arc::clone(&stop), telling));
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

/// What the plan asks of the packets that a socket sends.
pub(crate) fn prepare(socket: &DatagramSocket, plan: &Plan) -> Result<(), ProbeError> {
    if let Some(dscp) = plan.dscp {
        socket
            .set_dscp(dscp)
            .map_err(local(plan, "marking its packets with a DSCP"))?;
    }
    if let Some(hops) = plan.hop_limit {
        socket
            .set_hop_limit(hops)
            .map_err(local(plan, "limiting how far its packets go"))?;
    }
    if let Some(mode) = plan.path_mtu {
        socket
            .set_path_mtu_discovery(mode)
            .map_err(local(plan, "saying whether its packets may be fragmented"))?;
    }
    Ok(())
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

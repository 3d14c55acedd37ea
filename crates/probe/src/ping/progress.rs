//! How far a probing has come, and what became of each probe, for a watcher.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::ping::log::ProbeLog;
use crate::ping::sample::Said;

/// How far a probing has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub sent: u64,
    /// Probes answered in time.
    pub received: u64,
    /// Round trip of the latest answer.
    pub last_rtt: Option<Duration>,
}

/// The outcome of one probe, reported once it is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// A probe was answered in time.
    Answered {
        /// Number of the probe, from 0.
        sequence: u32,
        /// Its payload; 0 where the protocol leaves none to choose.
        size_bytes: usize,
        rtt: Duration,
        /// The hop limit of the answer, where the protocol reports it.
        hop_limit: Option<u8>,
        /// What the answer was, where the protocol has several.
        said: Option<Said>,
        /// When the answer was in hand, ns of CLOCK_REALTIME.
        at_ns: u64,
    },
    /// Another answer to the same probe.
    Again {
        /// Number of the probe.
        sequence: u32,
    },
    /// The probe after it leaves, and it is not answered yet.
    Outstanding {
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
    /// The receiver of each probe's outcome.
    seen: Option<mpsc::Sender<Seen>>,
    /// Who waits for what was seen so far.
    asked: Arc<Mutex<Option<mpsc::Sender<ProbeLog>>>>,
}

impl ProgressHandle {
    pub fn read(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle that reports each probe.
    pub(crate) fn telling(seen: mpsc::Sender<Seen>) -> Self {
        Self {
            seen: Some(seen),
            ..Self::default()
        }
    }

    /// Another handle that reports no probes.
    pub(crate) fn silent(&self) -> Self {
        Self {
            seen: None,
            ..self.clone()
        }
    }

    /// Shows the listener each probe; one that does not listen any more is no error.
    pub(crate) fn tell(&self, seen: impl FnOnce() -> Seen) {
        if let Some(sender) = &self.seen {
            let _ = sender.send(seen());
        }
    }

    /// Asks the probing for what it has seen so far; the answer comes as soon as it wakes, and the channel ends
    /// without one where it has ended.
    pub(crate) fn ask(&self) -> mpsc::Receiver<ProbeLog> {
        let (sender, receiver) = mpsc::channel();
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Who has asked since the last time.
    pub(crate) fn asker(&self) -> Option<mpsc::Sender<ProbeLog>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.take()
    }

    pub(crate) fn update(&self, update: impl FnOnce(&mut Progress)) {
        update(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

//! Requests while a phase runs: on connections of their own ("foreign"), and on the loaded ones, at the rate that the
//! conductor sets.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

use crate::loaded::Loaded;
use crate::phase_state::Stage;
use crate::streams::FarEnd;
use crate::transactions::ask::on_its_own;
use crate::transactions::log::Timing;
use crate::transactions::{Broken, TransactionStream};

/// How often it looks whether something is due: short against a round trip.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Connections of their own under way at once: a third of what the responder greets from one
/// address, and a hundred a second on a path of 200 ms.
const MOST_FOREIGN: usize = 64;

/// Longest wait for such a connection: three lost SYNs in a row (1 + 2 + 4 s, RFC 6298).
pub(crate) const FOREIGN_WITHIN: Duration = Duration::from_secs(10);

/// Who makes connections that carry one request.
pub(crate) trait Foreign: Send + Sync + fmt::Debug {
    /// Makes one, which may take [`FOREIGN_WITHIN`], and asks.
    ///
    /// # Errors
    /// When it fails, or the phase is over.
    fn ask(&self, stage: &Stage) -> Result<Timing, Broken>;
}

/// Foreign requests of the native protocol.
#[derive(Debug)]
pub(crate) struct ToResponder {
    /// The stream in whose name they are made.
    pub(crate) stream: TransactionStream,
    pub(crate) far: FarEnd,
}

impl Foreign for ToResponder {
    fn ask(&self, stage: &Stage) -> Result<Timing, Broken> {
        let TransactionStream { number, flow, .. } = &self.stream;
        let mut scratch = vec![0; flow.bytes() as usize];
        on_its_own(
            *number,
            flow,
            &self.far,
            FOREIGN_WITHIN,
            &mut scratch,
            stage,
        )
    }
}

/// What came of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Probe {
    /// It had a connection of its own.
    Foreign {
        /// When it was answered, since the phase began.
        at: Duration,
        connect: Duration,
        /// TLS's handshake after it, where there was one.
        handshake: Option<Duration>,
        /// From the request to the answer.
        response: Duration,
    },
    /// It went between the payload of a loaded connection.
    InBand {
        /// When it was answered, since the phase began.
        at: Duration,
        /// From the request to the answer.
        response: Duration,
    },
}

/// What came of the requests of a while.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Probes {
    /// Those that were answered.
    pub answered: Vec<Probe>,
    /// Connections of their own that failed.
    pub failed: u64,
    /// What the last of them said.
    pub error: Option<String>,
    /// Requests that were not made because too many were under way.
    pub left_out: u64,
    /// Requests that are under way now.
    pub under_way: u64,
    /// Loaded connections that have broken so far.
    pub broken_connections: u64,
}

/// Asks while a phase runs. Dropping it ends it, within [`LOOK_EVERY`] of the end of the stage;
/// what is under way then ends by itself, within [`FOREIGN_WITHIN`].
#[derive(Debug)]
pub(crate) struct Prober {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    stage: Arc<Stage>,
    connections: Vec<Arc<dyn Loaded>>,
    foreign: Option<Arc<dyn Foreign>>,
    pairs_per_s: Mutex<f64>,
    seen: Mutex<Probes>,
    foreign_under_way: AtomicUsize,
}

impl Prober {
    /// Begins to ask as soon as [`Self::probe`] says how often.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub(crate) fn start(
        stage: &Arc<Stage>,
        connections: Vec<Arc<dyn Loaded>>,
        foreign: Option<Arc<dyn Foreign>>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            stage: Arc::clone(stage),
            connections,
            foreign,
            pairs_per_s: Mutex::new(0.0),
            seen: Mutex::default(),
            foreign_under_way: AtomicUsize::new(0),
        });
        let thread = Builder::new().name("plumb-prober".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || run(&shared)
        })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// So many pairs a second from now on.
    pub(crate) fn probe(&self, pairs_per_s: f64) {
        *lock(&self.shared.pairs_per_s) = pairs_per_s;
    }

    /// What came since the last time.
    pub(crate) fn take(&self) -> Probes {
        let shared = &self.shared;
        shared.collect();
        let connections = &shared.connections;
        let foreign = shared.foreign_under_way.load(Ordering::Relaxed) as u64;
        let in_band: u64 = connections.iter().map(|c| c.unanswered()).sum();
        Probes {
            under_way: foreign + in_band,
            broken_connections: connections.iter().filter(|c| c.has_failed()).count() as u64,
            ..std::mem::take(&mut *lock(&shared.seen))
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.shared.stage.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks until the stage is over. Slots that it missed are left out.
fn run(shared: &Arc<Shared>) {
    // Which connection is asked must be spread, and need not be a secret.
    let mut random = Pcg64Mcg::seed_from_u64(0x7270_6d31);
    let mut last: Option<Instant> = None;
    while !shared.stage.is_over() {
        let pairs_per_s = *lock(&shared.pairs_per_s);
        if pairs_per_s.is_nan() || pairs_per_s <= 0.0 {
            last = None;
            sleep(LOOK_EVERY);
            continue;
        }
        let interval = Duration::from_secs_f64((1.0 / pairs_per_s).min(3600.0));
        let now = Instant::now();
        let due = last.map_or(now, |last| last + interval);
        if now < due {
            sleep((due - now).min(LOOK_EVERY));
            continue;
        }
        last = Some(if due + interval < now { now } else { due });
        let elapsed = shared.stage.started.elapsed();
        let loaded: Vec<_> = shared
            .connections
            .iter()
            .filter(|connection| connection.is_loaded(elapsed) && !connection.has_failed())
            .collect();
        if !loaded.is_empty()
            && let Some(connection) = loaded.get(random.random_range(0..loaded.len()))
        {
            connection.ask();
        }
        shared.ask_foreign();
    }
}

impl Shared {
    /// What was answered on the loaded connections.
    fn collect(&self) {
        let answered = self.connections.iter().flat_map(|c| c.take_answered());
        let probes = answered.map(|answered| Probe::InBand {
            at: answered.at - self.stage.started,
            response: answered.took,
        });
        let probes: Vec<_> = probes.collect();
        lock(&self.seen).answered.extend(probes);
    }

    /// Makes a connection of its own and asks on it, in a thread of its own.
    fn ask_foreign(self: &Arc<Self>) {
        let Some(foreign) = self.foreign.clone() else {
            return;
        };
        if self.foreign_under_way.fetch_add(1, Ordering::Relaxed) >= MOST_FOREIGN {
            self.foreign_under_way.fetch_sub(1, Ordering::Relaxed);
            lock(&self.seen).left_out += 1;
            return;
        }
        let shared = Arc::clone(self);
        let thread = Builder::new().name("plumb-foreign".to_owned());
        let spawned = thread.spawn(move || {
            shared.asked(foreign.ask(&shared.stage));
            shared.foreign_under_way.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            self.foreign_under_way.fetch_sub(1, Ordering::Relaxed);
            lock(&self.seen).left_out += 1;
        }
    }

    /// What came of a connection of its own.
    fn asked(&self, done: Result<Timing, Broken>) {
        let stage = &self.stage;
        let at = stage.started.elapsed();
        let mut seen = lock(&self.seen);
        match done {
            Ok(timing) => seen.answered.push(Probe::Foreign {
                at,
                connect: timing.connect.unwrap_or_default(),
                handshake: timing.handshake,
                response: timing.response,
            }),
            Err(Broken::Over) => (),
            // The far end resets what is under way when the phase ends.
            Err(Broken::Failed(_)) if stage.is_over() => (),
            Err(Broken::Failed(why)) => {
                seen.failed += 1;
                seen.error = Some(why);
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

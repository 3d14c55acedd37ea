//! Probes that run beside the steps of a plan, and what the idle path was before any load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_net::clock;

use crate::probes::{Aim, Answered, ProbeLogs, Probes, Window};
use crate::progress::Watcher;

/// How often the latest answer is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Longest wait for answers that are under way on a path without load: the round trip over a geostationary
/// satellite and the queue of a modem.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// Longest wait for a queue to empty: several times what any queue holds.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// A queue counts as empty when so many answers in a row took no more than [`EMPTY_ABOVE_IDLE`]
/// longer than the 95th percentile of the idle path.
const EMPTY_ANSWERS: u32 = 5;
const EMPTY_ABOVE_IDLE: Duration = Duration::from_millis(5);

/// The running probes, from the step that begins them to the end of the plan.
pub struct Background {
    probes: Option<Probes>,
    stop: Arc<AtomicBool>,
    /// The path before any load, once it was watched.
    pub idle: Option<Idle>,
}

/// The path before any load.
#[derive(Debug, Clone)]
pub struct Idle {
    /// When it was watched.
    pub window: Window,
    /// 95th percentile of the round trips.
    pub p95: Duration,
    /// What the main stream saw; `None` where no probe came back, or latency is not measured.
    pub main: Option<Answered>,
}

impl Background {
    /// Begins the probes that `start` starts; they end when this is dropped at the latest.
    pub fn begin(start: impl FnOnce(&Arc<AtomicBool>) -> Probes) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        Self {
            probes: Some(start(&stop)),
            stop,
            idle: None,
        }
    }

    /// Round trips to the far end, and beside them.
    pub fn towards(aim: &Aim) -> Self {
        Self::begin(|stop| Probes::start(aim, stop))
    }

    fn probes(&self) -> Option<&Probes> {
        self.probes.as_ref().filter(|probes| !probes.is_empty())
    }

    /// The latest round trip of the main stream.
    pub(crate) fn last_rtt(&self) -> Option<Duration> {
        self.probes()?.latest().last_rtt
    }

    /// How many probes of the main stream were answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.probes().map_or(0, |probes| probes.latest().received)
    }

    /// What must be known: streams that could not start.
    pub fn notes(&self) -> &[String] {
        self.probes.as_ref().map_or(&[], |probes| &probes.notes)
    }

    /// Requests over UDP to which nothing came back, where that is why there are no probes over it.
    pub fn unanswered_udp(&self) -> u64 {
        let probes = self.probes.as_ref();
        probes.map_or(0, |probes| probes.unanswered_udp)
    }

    /// Lets the probes run for a while without load; no time at all where there are none. Returns when that was,
    /// and the 95th percentile of the round trips as far as they were looked at.
    pub fn watch(
        &self,
        phase: Phase,
        time: Duration,
        watcher: &dyn Watcher,
        stop: &AtomicBool,
    ) -> (Window, Duration) {
        let from = clock::monotonic_ns();
        let mut seen = Vec::new();
        if let Some(probes) = self.probes() {
            watcher.step(phase.name(), time);
            let end = Instant::now() + time;
            while Instant::now() < end && !stop.load(Ordering::Relaxed) {
                sleep(LOOK_EVERY);
                if let Some(rtt) = probes.latest().last_rtt {
                    seen.push(rtt.as_secs_f64());
                    watcher.round_trip(rtt);
                }
            }
        }
        let p95 = Distribution::of(seen).map_or(0.0, |rtt| rtt.p95);
        (Window::until_now(from), Duration::from_secs_f64(p95))
    }

    /// Waits until round trips are as short as on the idle path again; returns how long that took in seconds, if it was
    /// seen. `left` is all the time that there is.
    pub fn drain(
        &self,
        left: Option<Duration>,
        watcher: &dyn Watcher,
        stop: &AtomicBool,
    ) -> Option<f64> {
        let limit = left.map_or(DRAIN_LIMIT, |left| left.min(DRAIN_LIMIT));
        let (probes, idle) = (self.probes()?, self.idle.as_ref()?);
        watcher.step("waiting for the queue to empty", Duration::from_secs(1));
        let started = Instant::now();
        let mut counted = probes.latest().received;
        let mut empty = 0;
        let mut empty_since = Duration::ZERO;
        while started.elapsed() < limit && !stop.load(Ordering::Relaxed) {
            sleep(LOOK_EVERY);
            let latest = probes.latest();
            let Some(rtt) = latest.last_rtt.filter(|_| latest.received > counted) else {
                continue;
            };
            counted = latest.received;
            if rtt > idle.p95 + EMPTY_ABOVE_IDLE {
                empty = 0;
                continue;
            }
            if empty == 0 {
                empty_since = started.elapsed();
            }
            empty += 1;
            if empty == EMPTY_ANSWERS {
                return Some(empty_since.as_secs_f64());
            }
        }
        None
    }

    /// What the probes saw until the end of a window, when what was under way then has come; within two seconds,
    /// and what is left of the time.
    pub fn settled(&self, window: Window, left: Option<Duration>) -> ProbeLogs {
        let limit = left.map_or(SETTLE_LIMIT, |left| left.min(SETTLE_LIMIT));
        match &self.probes {
            Some(probes) => probes.settled(window.to_ns, limit),
            None => ProbeLogs::none(),
        }
    }

    /// Ends the probes at once. What must be known of them is returned.
    pub fn end(mut self) -> Vec<String> {
        let probes = self.probes.take();
        probes.map_or_else(Vec::new, |probes| probes.end().notes().cloned().collect())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

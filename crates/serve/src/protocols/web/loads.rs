//! Loads: all that an address transfers over HTTP at once is one of them, however many connections carry it. A load that moves
//! too little, or lasts too long, is over, whatever its connections do.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use plumb_wire::share::Share;

use crate::admission::{Queued, Turn};
use crate::gate::{Denied, Gate, Heavy, Visit};

/// What a test is taken for: networkQuality's takes 20 s, and some more in which it saturates the line.
const USUAL: Duration = Duration::from_secs(30);

/// The longest load: four times a test of networkQuality, and a slow client does not keep others out for longer.
const LONGEST: Duration = Duration::from_secs(120);

/// What a load must move in each such time, in bytes, or it loses its turn: 16 kbit/s, less than the slowest line in use
/// (GPRS has 20 kbit/s and more). TCP's own count, in both directions.
const LEAST_BYTES: u64 = 10_000;
const LEAST_WITHIN: Duration = Duration::from_secs(5);

/// Loads do not wait for their turn: HTTP has an answer that says when to come again.
const PATIENCE: Duration = Duration::ZERO;

/// The loads that run, by address.
#[derive(Debug, Default)]
pub(super) struct Loads(Mutex<HashMap<Share, Weak<Load>>>);

/// A load, which is over when its last reference is dropped.
#[derive(Debug)]
pub(super) struct Load {
    heavy: Mutex<Heavy>,
    /// Its place among the clients.
    _visit: Visit,
    byte_limit: Option<u64>,
    carried: AtomicU64,
    /// When it ends at the latest.
    until: Instant,
    pace: Mutex<Pace>,
}

/// What a load has moved since it was last looked at.
#[derive(Debug)]
struct Pace {
    since: Instant,
    bytes: u64,
    is_too_slow: bool,
}

impl Pace {
    fn begin(now: Instant) -> Self {
        Self {
            since: now,
            bytes: 0,
            is_too_slow: false,
        }
    }

    /// So many bytes moved more; whether that is too slow by now, after which it stays so.
    fn moved(&mut self, now: Instant, bytes: u64) -> bool {
        self.bytes += bytes;
        if now.saturating_duration_since(self.since) >= LEAST_WITHIN {
            self.is_too_slow |= self.bytes < LEAST_BYTES;
            (self.since, self.bytes) = (now, 0);
        }
        self.is_too_slow
    }
}

/// Why a load does not run now.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotNow {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("as many tests as may run at once are running: try again {}", .0.when())]
    Later(Queued),
}

impl Loads {
    /// The load of that address that runs, or a new one.
    pub(super) fn join(&self, gate: &Gate, peer: IpAddr) -> Result<Arc<Load>, NotNow> {
        let mut loads = self.lock();
        loads.retain(|_, load| load.strong_count() > 0);
        let share = Share::of(peer);
        let running = loads.get(&share).and_then(Weak::upgrade);
        if let Some(load) = running.filter(|load| !load.is_over(Instant::now(), 0)) {
            return Ok(load);
        }
        let now = Instant::now();
        let visit = gate.visit(peer)?;
        let mut heavy = visit.heavy(PATIENCE);
        match heavy.turn(1, USUAL.min(gate.longest())) {
            Turn::Now => {}
            Turn::Wait(queued) | Turn::Never(queued) => return Err(NotNow::Later(queued)),
        }
        let load = Arc::new(Load {
            byte_limit: heavy.byte_limit(),
            heavy: Mutex::new(heavy),
            _visit: visit,
            carried: AtomicU64::new(0),
            until: now + gate.longest().min(LONGEST),
            pace: Mutex::new(Pace::begin(now)),
        });
        loads.insert(share, Arc::downgrade(&load));
        Ok(load)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Share, Weak<Load>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load {
    /// When it ends at the latest.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Whether it has lost its turn; one of its connections has moved so many bytes more.
    pub(super) fn is_over(&self, now: Instant, moved: u64) -> bool {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.moved(now, moved) || now >= self.until
    }

    /// So much more was carried; whether more may be.
    pub(super) fn carried(&self, bytes: u64) -> bool {
        let carried = self.carried.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.byte_limit.is_none_or(|limit| carried < limit)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let heavy = self.heavy.get_mut().unwrap_or_else(PoisonError::into_inner);
        heavy.carried(self.carried.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_too_little_is_too_slow_and_stays_so() {
        let begun = Instant::now();
        let mut pace = Pace::begin(begun);
        let mut at = |ms: u64, bytes| pace.moved(begun + Duration::from_millis(ms), bytes);
        assert!(!at(4900, 0), "it has five seconds");
        assert!(!at(5000, LEAST_BYTES));
        // A byte each three seconds.
        assert!(!at(8000, 1));
        assert!(at(10_100, 1));
        assert!(at(10_200, 1_000_000_000));
    }
}

//! Loads: all that an address transfers over HTTP at once is one of them, however many connections carry it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plumb_wire::share::Share;

use crate::admission::{Queued, Turn};
use crate::gate::{Denied, Gate, Heavy, Visit};

/// What a test is taken for: networkQuality's takes 20 s, and some more in which it saturates the line.
const USUAL: Duration = Duration::from_secs(30);

/// Nobody waits: HTTP has an answer that says when to come again.
const PATIENCE: Duration = Duration::ZERO;

/// The loads that run, by address.
#[derive(Debug, Default)]
pub(super) struct Loads(Mutex<HashMap<Share, Weak<Load>>>);

/// A load, which is over when nobody has it any more.
#[derive(Debug)]
pub(super) struct Load {
    heavy: Mutex<Heavy>,
    /// Its place among the clients.
    _visit: Visit,
    byte_limit: Option<u64>,
    carried: AtomicU64,
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
        if let Some(load) = loads.get(&share).and_then(Weak::upgrade) {
            return Ok(load);
        }
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
        });
        loads.insert(share, Arc::downgrade(&load));
        Ok(load)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Share, Weak<Load>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load {
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

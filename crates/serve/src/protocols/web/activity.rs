//! Whether a connection is used: a request is being answered, or one was a moment ago.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use plumb_load::web::visited::Body;

use super::loads::Load;

/// What happens on a connection.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    /// Requests that are being answered, by number: when each is over at the latest.
    open: Mutex<BTreeMap<u64, Instant>>,
    requests: AtomicU64,
    /// The load that it carries, or carried.
    load: Mutex<Weak<Load>>,
    /// What TCP had moved when it was last looked at, in both directions.
    moved_bytes: AtomicU64,
    /// When the last ended, in milliseconds after the beginning.
    ended_ms: AtomicU64,
    /// Bytes of large bodies that are handed over at once; 0 where nothing limits them.
    piece: AtomicUsize,
    /// Bodies that show what the connection does.
    shown: Mutex<Vec<Weak<Body>>>,
    /// Since when nothing more is answered.
    over: OnceLock<Instant>,
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Answering {
    activity: Arc<Activity>,
    number: u64,
}

/// The longest that a request may take which no load carries, with its answer: what a page says of a visit, half a megabyte,
/// comes in that time at 140 kbit/s.
pub(super) const SMALL_LONGEST: Duration = Duration::from_secs(30);

impl Activity {
    pub(super) fn begin() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            open: Mutex::default(),
            requests: AtomicU64::new(0),
            load: Mutex::default(),
            moved_bytes: AtomicU64::new(0),
            ended_ms: AtomicU64::new(0),
            piece: AtomicUsize::new(0),
            shown: Mutex::default(),
            over: OnceLock::new(),
        })
    }

    pub(super) fn answering(self: &Arc<Self>) -> Answering {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let until = Instant::now() + SMALL_LONGEST;
        lock(&self.open).insert(number, until);
        Answering {
            activity: Arc::clone(self),
            number,
        }
    }

    /// Whether a request has taken longer than it may, or the load that the connection carries has lost its turn. TCP has
    /// moved so many bytes on it by now.
    pub(super) fn is_overdue(&self, now: Instant, moved_bytes: u64) -> bool {
        let before = self.moved_bytes.swap(moved_bytes, Ordering::Relaxed);
        let more = moved_bytes.saturating_sub(before);
        let load = lock(&self.load).upgrade();
        let has_lost_turn = load.is_some_and(|load| load.is_over(now, more));
        has_lost_turn || lock(&self.open).values().any(|until| *until <= now)
    }

    /// From now on nothing more is answered.
    pub(super) fn end(&self) {
        let _ = self.over.set(Instant::now());
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    /// For how long nothing more has been answered, where that is so.
    pub(super) fn over_for(&self) -> Option<Duration> {
        self.over.get().map(Instant::elapsed)
    }

    /// From now on large bodies are handed over in pieces of so many bytes.
    pub(super) fn set_piece(&self, bytes: usize) {
        self.piece.store(bytes, Ordering::Relaxed);
    }

    /// The most of a large body that is handed over at once, where there is such a limit.
    pub(super) fn piece(&self) -> Option<usize> {
        Some(self.piece.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// A body is to show what the connection does.
    pub(super) fn shows(&self, body: &Arc<Body>) {
        lock(&self.shown).push(Arc::downgrade(body));
    }

    /// Looks at the connection for them.
    pub(super) fn look(&self, socket: &TcpStream) {
        lock(&self.shown).retain(|body| match body.upgrade() {
            Some(body) => {
                body.look(socket);
                true
            }
            None => false,
        });
    }

    /// For how long nothing has been asked or answered.
    pub(super) fn idle(&self) -> Duration {
        match lock(&self.open).is_empty() {
            true => {
                let ended = Duration::from_millis(self.ended_ms.load(Ordering::Relaxed));
                self.begun.elapsed().saturating_sub(ended)
            }
            false => Duration::ZERO,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answering {
    /// The request is a part of that load, and lasts as long as the load may.
    pub(super) fn carries(&self, load: &Arc<Load>) {
        *lock(&self.activity.load) = Arc::downgrade(load);
        lock(&self.activity.open).insert(self.number, load.until());
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let now = self.activity.begun.elapsed().as_millis();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        self.activity.ended_ms.store(now, Ordering::Relaxed);
        lock(&self.activity.open).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_time_whatever_happens_meanwhile() {
        let activity = Activity::begin();
        let later = |s| Instant::now() + Duration::from_secs(s);
        let first = activity.answering();
        assert!(!activity.is_overdue(later(29), 1));
        assert!(activity.is_overdue(later(31), 1_000_000_000));
        drop(first);
        assert!(!activity.is_overdue(later(31), 1));
    }
}

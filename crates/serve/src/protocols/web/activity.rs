//! Whether a connection is used: a request is being answered, or one was a moment ago.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use plumb_load::web::visited::Body;

/// What happens on a connection.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    /// Requests that are being answered.
    open: AtomicUsize,
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
pub(super) struct Answering(Arc<Activity>);

impl Activity {
    pub(super) fn begin() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            open: AtomicUsize::new(0),
            ended_ms: AtomicU64::new(0),
            piece: AtomicUsize::new(0),
            shown: Mutex::default(),
            over: OnceLock::new(),
        })
    }

    pub(super) fn answering(self: &Arc<Self>) -> Answering {
        self.open.fetch_add(1, Ordering::Relaxed);
        Answering(Arc::clone(self))
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
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.push(Arc::downgrade(body));
    }

    /// Looks at the connection for them.
    pub(super) fn look(&self, socket: &TcpStream) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|body| match body.upgrade() {
            Some(body) => {
                body.look(socket);
                true
            }
            None => false,
        });
    }

    /// For how long nothing has been asked or answered.
    pub(super) fn idle(&self) -> Duration {
        match self.open.load(Ordering::Relaxed) {
            0 => {
                let ended = Duration::from_millis(self.ended_ms.load(Ordering::Relaxed));
                self.begun.elapsed().saturating_sub(ended)
            }
            _ => Duration::ZERO,
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let now = self.0.begun.elapsed().as_millis();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        self.0.ended_ms.store(now, Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

//! Small requests on a connection that carries load, between its frames: HTTP/2 has several at once.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::Request;

use super::exchange::{Answering, Feed, Sender, answered, refused};
use crate::loaded::{Answered, Loaded};

/// Requests under way on one connection: what servers mostly allow, less the load itself.
const MOST_ASKED: usize = 64;

/// After which a connection whose load has not begun is asked for something, so that its server keeps it.
const KEEPING: Duration = Duration::from_secs(2);

/// What the asking thread shares with the thread of the connection.
#[derive(Debug)]
pub(super) struct Asks {
    starts_after: Duration,
    /// Requests that are to be made.
    wanted: AtomicUsize,
    under_way: AtomicUsize,
    answered: Mutex<Vec<Answered>>,
    failed: AtomicBool,
}

impl Loaded for Asks {
    fn is_loaded(&self, elapsed: Duration) -> bool {
        elapsed >= self.starts_after
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= MOST_ASKED {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
    }

    fn take_answered(&self) -> Vec<Answered> {
        std::mem::take(&mut *self.answered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn unanswered(&self) -> u64 {
        self.under_way.load(Ordering::Relaxed) as u64
    }
}

/// A request that is under way.
struct Asked {
    answering: Answering,
    at: Instant,
    /// Whether it only keeps the connection.
    is_for_keeping: bool,
}

/// The requests of a connection, polled by its thread.
pub(super) struct InBand {
    asks: Arc<Asks>,
    make: Box<dyn Fn() -> Request<Feed> + Send>,
    asked: VecDeque<Asked>,
    /// When the connection was first polled, and last used.
    begun: Option<Instant>,
    used: Instant,
}

impl InBand {
    /// For a connection whose load begins so long after the phase.
    pub(super) fn new(starts_after: Duration, make: Box<dyn Fn() -> Request<Feed> + Send>) -> Self {
        Self {
            asks: Arc::new(Asks {
                starts_after,
                wanted: AtomicUsize::new(0),
                under_way: AtomicUsize::new(0),
                answered: Mutex::default(),
                failed: AtomicBool::new(false),
            }),
            make,
            asked: VecDeque::new(),
            begun: None,
            used: Instant::now(),
        }
    }

    pub(super) fn asks(&self) -> Arc<Asks> {
        Arc::clone(&self.asks)
    }

    /// Says that the connection has broken.
    pub(super) fn failed(&self) {
        self.asks.failed.store(true, Ordering::Relaxed);
    }

    /// Whether the load may begin: it is seen from when the connection is first polled, which is when the phase begins.
    pub(super) fn may_load(&mut self) -> bool {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        begun.elapsed() >= self.asks.starts_after
    }

    /// Makes the requests that are wanted, and takes what was answered.
    ///
    /// # Errors
    /// When one fails or is refused: without all of them there is no number.
    pub(super) fn poll(
        &mut self,
        sender: &mut Sender,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        let is_idle = !self.may_load() && self.used.elapsed() >= KEEPING;
        let mut keeps = is_idle && self.asked.is_empty();
        while keeps || self.asks.wanted.load(Ordering::Relaxed) > 0 {
            let Poll::Ready(answering) = sender.poll_request(context, || (self.make)()) else {
                break;
            };
            if !keeps {
                self.asks.wanted.fetch_sub(1, Ordering::Relaxed);
            }
            self.used = Instant::now();
            self.asked.push_back(Asked {
                answering: answering?,
                at: self.used,
                is_for_keeping: keeps,
            });
            keeps = false;
        }
        let mut answered_now = Vec::new();
        for _ in 0..self.asked.len() {
            let Some(mut asked) = self.asked.pop_front() else {
                break;
            };
            match answered(&mut asked.answering, context) {
                Poll::Pending => self.asked.push_back(asked),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Ready(Ok(answer)) if !answer.status().is_success() => {
                    return Err(refused(&answer));
                }
                Poll::Ready(Ok(_)) if asked.is_for_keeping => {}
                Poll::Ready(Ok(_)) => answered_now.push(Answered {
                    took: asked.at.elapsed(),
                    at: Instant::now(),
                }),
            }
        }
        self.asks
            .under_way
            .fetch_sub(answered_now.len(), Ordering::Relaxed);
        let mut all = self
            .asks
            .answered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.extend(answered_now);
        Ok(())
    }
}

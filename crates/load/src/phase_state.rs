//! What all streams of one end of a phase share: when it began, when it has to be over, and how
//! much it may carry.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use plumb_wire::native::control::report::StreamEnd;

/// Longest wait inside one system call, and so the time in which a stream sees that it is to
/// stop: short against the 100 ms between samples.
pub const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// How long the word that a phase is over may come after the end of its streams: both leave the far end
/// together, and a busy machine takes up the word tens of milliseconds later.
const WORD_LATE: Duration = Duration::from_millis(250);

/// Stack of a stream's thread: its buffers are on the heap.
const STACK_BYTES: usize = 128 * 1024;

/// One end of a phase while it runs. Dropping it does not stop the streams; [`Stage::stop`] does.
#[derive(Debug)]
pub struct Stage {
    pub started: Instant,
    /// When everything ends, with or without a request to end.
    pub deadline: Instant,
    /// What may be carried.
    pub budget: Budget,
    stopped: AtomicBool,
    abandoned: AtomicBool,
    source_ended: AtomicBool,
    running: AtomicUsize,
}

impl Stage {
    /// Begins now, for at most `longest` and `byte_limit` bytes of payload.
    pub fn begin(longest: Duration, byte_limit: Option<u64>) -> Arc<Self> {
        let started = Instant::now();
        Arc::new(Self {
            started,
            deadline: started + longest,
            budget: Budget::new(byte_limit),
            stopped: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            source_ended: AtomicBool::new(false),
            running: AtomicUsize::new(0),
        })
    }

    /// Asks all streams to end. TCP streams do so within twice [`POLL_INTERVAL`]; UDP streams do so when the ends have
    /// been sent and received.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Asks all streams to end at once: the far end is not there any more.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Whether the far end is known to be gone.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// A stream's file came to its end, and all of it has arrived.
    pub(crate) fn source_ended(&self) {
        self.source_ended.store(true, Ordering::Relaxed);
    }

    /// Whether a stream ended because its file did.
    pub(crate) fn has_source_ended(&self) -> bool {
        self.source_ended.load(Ordering::Relaxed)
    }

    /// Whether all streams have ended by themselves; what they count is final then.
    pub fn has_ended(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// How a stream ended just now.
    pub fn ended(&self, error: impl ToString) -> Option<StreamEnd> {
        Some(StreamEnd {
            t_s: self.started.elapsed().as_secs_f64(),
            error: error.to_string(),
        })
    }

    /// How a connection ended that failed just now. The end that ends a phase says so and resets its connections,
    /// which may be seen first: then nothing failed.
    pub(crate) fn failed(&self, error: &io::Error) -> Option<StreamEnd> {
        let end = self.ended(error);
        if error.kind() == io::ErrorKind::ConnectionReset {
            let until = Instant::now() + WORD_LATE;
            while !self.is_over() && Instant::now() < until {
                std::thread::sleep(WORD_LATE / 50);
            }
            if self.is_over() && !self.is_abandoned() {
                return None;
            }
        }
        end
    }

    /// Runs a stream in a thread of its own.
    ///
    /// # Errors
    /// When the machine gives no more threads.
    pub fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.spawn_with(STACK_BYTES, name, work)
    }

    /// The same with a stack of so many bytes.
    ///
    /// # Errors
    /// Likewise.
    pub fn spawn_with<T: Send + 'static>(
        self: &Arc<Self>,
        stack_bytes: usize,
        name: &str,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let stage = Arc::clone(self);
        self.running.fetch_add(1, Ordering::Relaxed);
        let spawned = Builder::new()
            .name(name.to_owned())
            .stack_size(stack_bytes)
            .spawn(move || {
                let outcome = work(&stage);
                stage.running.fetch_sub(1, Ordering::Release);
                outcome
            });
        if spawned.is_err() {
            self.running.fetch_sub(1, Ordering::Release);
        }
        spawned
    }
}

/// Payload that the streams of one end may carry, both directions together.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Budget {
    /// A budget of so many bytes; none when absent.
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            limit: limit.unwrap_or(u64::MAX),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    /// Sets up to `wanted` bytes aside, and returns how many.
    pub(crate) fn reserve(&self, wanted: u64) -> u64 {
        let allowed = self
            .limit
            .saturating_sub(self.received.load(Ordering::Relaxed));
        let grant = |sent: u64| wanted.min(allowed.saturating_sub(sent));
        self.sent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sent| {
                Some(sent + grant(sent))
            })
            .map_or(0, grant)
    }

    /// Gives back what was set aside and not sent.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.sent.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What was set aside to be sent, and what came in.
    pub(crate) fn used(&self) -> u64 {
        let sent = self.sent.load(Ordering::Relaxed);
        sent.saturating_add(self.received.load(Ordering::Relaxed))
    }

    /// Whether nothing more may be carried.
    pub(crate) fn is_spent(&self) -> bool {
        self.used() >= self.limit
    }

    /// Counts bytes that came in, and returns whether more may.
    pub(crate) fn take_in(&self, bytes: u64) -> bool {
        self.received.fetch_add(bytes, Ordering::Relaxed) + bytes < self.limit
    }
}

/// Whether the call is only to be made again.
pub(crate) fn retry(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::WouldBlock | Kind::TimedOut | Kind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_is_no_failure_where_the_phase_turns_out_to_be_over() {
        let lasts = |time| Stage::begin(time, None);
        let fails = |stage: &Stage, kind: io::ErrorKind| stage.failed(&kind.into()).is_some();
        // It is over while the word is waited for.
        let reset = io::ErrorKind::ConnectionReset;
        assert!(!fails(&lasts(WORD_LATE / 10), reset));
        let minute = Duration::from_secs(60);
        assert!(fails(&lasts(minute), reset), "nobody said that it is over");
        let gone = lasts(minute);
        gone.abandon();
        assert!(fails(&gone, reset), "the far end is gone");
        let refused = io::ErrorKind::ConnectionRefused;
        assert!(fails(&lasts(Duration::ZERO), refused), "something else");
    }

    #[test]
    fn a_budget_is_never_exceeded() {
        let budget = Budget::new(Some(100));
        assert_eq!(
            (budget.reserve(60), budget.reserve(60), budget.reserve(1)),
            (60, 40, 0)
        );
        budget.give_back(30);
        assert!(budget.take_in(20) && !budget.is_spent());
        assert_eq!(budget.reserve(60), 10);
        assert!(budget.is_spent());
        assert!(budget.take_in(50));
        assert_eq!(budget.reserve(1), 0);
        assert!(!budget.take_in(30));
        assert_eq!(Budget::new(None).reserve(60), 60);
    }
}

//! Connections that carry load and answer requests beside it, whatever protocol they speak.

use std::fmt;
use std::time::{Duration, Instant};

/// A connection on which can be asked while it carries load, whatever protocol it speaks.
pub trait Loaded: Send + Sync + fmt::Debug {
    /// Whether its load has begun so long after the phase did.
    fn is_loaded(&self, elapsed: Duration) -> bool;

    /// Whether it broke before the phase was over.
    fn has_failed(&self) -> bool;

    /// Asks now, or as soon as the connection takes it.
    fn ask(&self);

    /// What was answered since the last time.
    fn take_answered(&self) -> Vec<Answered>;

    /// How many requests are under way.
    fn unanswered(&self) -> u64;
}

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// How long it took.
    pub took: Duration,
    /// When the answer was there.
    pub at: Instant,
}

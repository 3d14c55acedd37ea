//! A line of a rate with a queue before it: it takes the next packet when it is free, and the
//! packet leaves when its last bit has. The rate may change by a schedule, and bits that were
//! not used may be saved up for a burst.

pub(crate) mod backlog_delay;
pub(crate) mod line;
pub(crate) mod port;
mod schedule;
mod spec;
pub(crate) mod token_bucket;

use self::port::Port;
pub use self::schedule::StepSpec;
pub use self::spec::ShaperSpec;
pub(crate) use self::spec::check_rate;
use self::token_bucket::TokenBucket;
use crate::time::Time;

pub(crate) type Shaper = Port<TokenBucket>;

impl Shaper {
    /// A shaper that exists from `now` on; `seed` seeds the queue's hash.
    pub(crate) fn new(spec: ShaperSpec, seed: u64, now: Time) -> Self {
        let line = TokenBucket::new(&spec, now);
        Self::with_line(spec, line, seed, now)
    }
}

#[cfg(test)]
mod tests;

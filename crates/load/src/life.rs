//! Signs of life of a far end, which need not be messages.
//!
//! On a slow line whose queue a load keeps full, heartbeats are lost with everything else, and TCP waits twice as long after
//! each retransmission that is lost too. Payload that arrives, or is acknowledged, shows meanwhile that the far end is there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When a far end last showed that it is there, shared by the threads that see it.
#[derive(Debug)]
pub struct Life {
    began: Instant,
    /// The latest sign, in milliseconds after the beginning.
    seen_ms: AtomicU64,
    /// Payload at the latest look.
    payload_bytes: AtomicU64,
}

impl Life {
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            seen_ms: AtomicU64::new(0),
            payload_bytes: AtomicU64::new(0),
        }
    }

    /// So much payload has arrived or was acknowledged by now: a sign of life where it is another number than the last time.
    pub fn carried(&self, bytes: u64) {
        if self.payload_bytes.swap(bytes, Ordering::Relaxed) != bytes {
            let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.seen_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// When an end that was last heard of at `heard`, or showed life after it, has been silent for so long.
    pub fn silent_at(&self, heard: Instant, silence: Duration) -> Instant {
        let seen = self.began + Duration::from_millis(self.seen_ms.load(Ordering::Relaxed));
        heard.max(seen) + silence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_that_moves_is_a_sign_of_life() {
        let life = Life::begin();
        let (heard, silence) = (life.began, Duration::from_secs(5));
        assert_eq!(life.silent_at(heard, silence), heard + silence);
        std::thread::sleep(Duration::from_millis(5));
        life.carried(0);
        assert_eq!(life.silent_at(heard, silence), heard + silence);
        life.carried(1448);
        let until = life.silent_at(heard, silence);
        assert!(until >= heard + silence + Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(5));
        life.carried(1448);
        assert_eq!(life.silent_at(heard, silence), until);
        // What is heard counts from when it is heard.
        let later = heard + Duration::from_secs(60);
        assert_eq!(life.silent_at(later, silence), later + silence);
    }
}

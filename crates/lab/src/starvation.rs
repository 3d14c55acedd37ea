//! What the links leave of the machine to the programs at their ends.
//!
//! The links are carried with real-time priority. Where that takes nearly all of the processors, no
//! packet leaves late, and yet what is measured is the machine: senders and receivers do not get to
//! run. So a thread like theirs sleeps briefly, again and again, and sees how late it wakes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long it sleeps at a time: 200 looks a second, at some 20 µs of a processor each.
const NAP: Duration = Duration::from_millis(5);

/// How late it may wake: nine naps of ten end within 0.1 ms on an idle machine, and within 0.2 to 1 ms on
/// one that carries what it can.
const TOLERATED: Duration = Duration::from_millis(1);

/// Naps that it takes to say something: half a second of them.
const LEAST_NAPS: u64 = 100;

/// The thread, which ends with this.
pub(crate) struct Watch {
    counts: Arc<Counts>,
    _watching: Sender<()>,
}

#[derive(Default)]
struct Counts {
    naps: AtomicU64,
    late: AtomicU64,
}

/// How naps ended so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Naps {
    all: u64,
    late: u64,
}

impl Watch {
    /// Watches from now on.
    pub(crate) fn start() -> io::Result<Self> {
        let counts = Arc::<Counts>::default();
        let (watching, ended) = channel::<()>();
        thread::Builder::new().name("lab-ends".into()).spawn({
            let counts = Arc::clone(&counts);
            move || {
                let mut until = Instant::now() + NAP;
                while ended.recv_timeout(NAP) == Err(RecvTimeoutError::Timeout) {
                    let now = Instant::now();
                    let late = now.saturating_duration_since(until) > TOLERATED;
                    counts.naps.fetch_add(1, Ordering::Relaxed);
                    counts.late.fetch_add(late.into(), Ordering::Relaxed);
                    until = now + NAP;
                }
            }
        })?;
        Ok(Self {
            counts,
            _watching: watching,
        })
    }

    /// How naps ended so far.
    pub(crate) fn naps(&self) -> Naps {
        Naps {
            all: self.counts.naps.load(Ordering::Relaxed),
            late: self.counts.late.load(Ordering::Relaxed),
        }
    }
}

impl Naps {
    /// Share of the naps since `earlier` that ended late; zero with fewer than [`LEAST_NAPS`].
    pub(crate) fn late_ratio_since(self, earlier: Self) -> f64 {
        match self.all.saturating_sub(earlier.all) {
            0..LEAST_NAPS => 0.0,
            all => self.late.saturating_sub(earlier.late) as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn naps(all: u64, late: u64) -> Naps {
        Naps { all, late }
    }

    #[test]
    fn a_stretch_is_judged_by_itself() {
        let begun = naps(1000, 900);
        let since = |all, late, earlier| naps(all, late).late_ratio_since(earlier);
        assert_eq!(since(1200, 910, begun), 0.05);
        assert_eq!(since(1200, 950, begun), 0.25);
        assert_eq!(since(1200, 930, Naps::default()), 0.775);
        assert_eq!(since(1050, 950, begun), 0.0, "too few");
    }
}

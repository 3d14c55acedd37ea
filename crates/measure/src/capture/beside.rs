//! A capture that runs beside a test, and keeps its packets in a file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use plumb_capture::{Next, ReadError, Source as _};

use super::live::{Live, Wanted};

/// What a capture took down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub packets: u64,
    /// Packets that passed and were not taken in time.
    pub dropped: u64,
}

/// A capture under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Beside {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Kept, ReadError>>>,
}

impl Beside {
    /// Begins to capture in a thread of its own.
    ///
    /// # Errors
    /// As [`Live::begin`], and when there is no thread.
    pub fn begin(wanted: Wanted<'_>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let live = Live::begin(wanted, &stop)?;
        let thread = std::thread::Builder::new().name("plumb-capture".to_owned());
        Ok(Self {
            stop,
            thread: Some(thread.spawn(|| keep(live))?),
        })
    }

    /// Ends the capture, within a fifth of a second.
    ///
    /// # Errors
    /// What kept it from going on: a full disk, or an interface that is gone.
    pub fn finish(mut self) -> Result<Kept, ReadError> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(kept)) => kept,
            _ => Err(io::Error::other("its thread ended").into()),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A capture that is dropped has no receiver for its error.
            let _ = thread.join();
        }
    }
}

fn keep(mut live: Live) -> Result<Kept, ReadError> {
    let mut packets = 0;
    // Ends with the source, which sees the stop within a tenth of a second.
    loop {
        match live.advance()? {
            Next::Packet(_) => packets += 1,
            Next::Nothing => {}
            Next::End => {
                let dropped = live.told().dropped;
                return Ok(Kept { packets, dropped });
            }
        }
    }
}

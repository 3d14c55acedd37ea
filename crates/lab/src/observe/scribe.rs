//! An observer that writes to a file for as long as a laboratory runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Observer, Sight};
use crate::error::LabError;
use crate::instance::Instance;

/// How soon the thread notices that it is to end.
const NOTICE: Duration = Duration::from_millis(50);

/// How long it continues to write what waits when it is to end: longer than 4000 packets take.
const REST_WITHIN: Duration = Duration::from_secs(1);

/// The thread that writes. It ends soon after [`Self::end`], once it has written what waits, or when the file takes no
/// more; the laboratory continues.
pub(crate) struct Scribe {
    thread: JoinHandle<io::Result<()>>,
    stop: Arc<AtomicBool>,
}

impl Scribe {
    /// Begins to look on and to write.
    pub(crate) fn begin(instance: &Instance, sight: &Sight, file: File) -> Result<Self, LabError> {
        let mut out = BufWriter::new(file);
        let mut observer = Observer::begin(instance, sight, &mut out)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("lab-scribe".into())
            .spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    observer.write(&mut out, NOTICE)?;
                }
                // What waits, and no more: of a link that the kernel carries, traffic may go on.
                let give_up = Instant::now() + REST_WITHIN;
                while Instant::now() < give_up && observer.write(&mut out, NOTICE)? {}
                out.flush()
            })?;
        Ok(Self { thread, stop })
    }

    /// Ends, with what there still was to see.
    pub(crate) fn end(self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

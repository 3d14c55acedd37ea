//! One receiving stream: reads and counts.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use plumb_net::tcp::copyless::discard;
use plumb_wire::native::control::report::StreamEnd;

use crate::file::Sink;
use crate::phase_state::{POLL_INTERVAL, Stage, retry};
use crate::tls::Pipe;

/// Bytes of one read: at 10 Gbit/s about 2,500 system calls a second.
const READ_BYTES: usize = 512 * 1024;

/// Where a stream's payload goes.
#[derive(Debug)]
pub(super) enum Destination {
    /// Into a buffer, and no further.
    Memory(Vec<u8>),
    /// Nowhere: the kernel drops it without a copy.
    Nowhere,
    File(Vec<u8>, Sink),
}

impl Destination {
    pub(super) fn memory() -> Self {
        Self::Memory(vec![0; READ_BYTES])
    }

    pub(super) fn file(sink: Sink) -> Self {
        Self::File(vec![0; READ_BYTES], sink)
    }

    fn take(&mut self, stream: &TcpStream, pipe: &mut Pipe<'_>) -> io::Result<usize> {
        match self {
            Self::Memory(buffer) | Self::File(buffer, _) => pipe.read(buffer),
            Self::Nowhere => discard(stream, READ_BYTES),
        }
    }

    /// What [`Self::take`] took goes where it belongs.
    fn keep(&mut self, count: usize) -> io::Result<()> {
        match self {
            Self::File(buffer, sink) => sink.write(buffer.get(..count).unwrap_or_default()),
            Self::Memory(_) | Self::Nowhere => Ok(()),
        }
    }
}

/// Counts what comes in until the stage is over, the budget is spent by what came in alone, or
/// the connection ends, and returns within twice [`POLL_INTERVAL`] of that:
/// when it is told to stop it still counts what the kernel already holds. A file may hold it up
/// longer. Tells how the stream ended when it was not told to.
pub(super) fn run(
    stream: &TcpStream,
    mut pipe: Pipe<'_>,
    mut to: Destination,
    counter: &AtomicU64,
    stage: &Stage,
) -> Option<StreamEnd> {
    if let Err(error) = stream.set_read_timeout(Some(POLL_INTERVAL)) {
        return stage.ended(error);
    }
    let mut last_read = None;
    loop {
        if last_read.is_none() && stage.is_over() {
            last_read = Some(Instant::now() + POLL_INTERVAL);
            if stream.set_nonblocking(true).is_err() {
                return None;
            }
        }
        if last_read.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        match to.take(stream, &mut pipe) {
            Ok(0) => return stage.ended("the far end closed the stream"),
            Ok(count) => {
                if let Err(error) = to.keep(count) {
                    return stage.ended(error);
                }
                counter.fetch_add(count as u64, Ordering::Relaxed);
                if !stage.budget.take_in(count as u64) {
                    return None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && last_read.is_some() => {
                return None;
            }
            Err(error) if retry(&error) => (),
            Err(error) => return stage.failed(&error),
        }
    }
}

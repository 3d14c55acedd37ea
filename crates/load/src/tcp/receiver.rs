//! One receiving stream: reads and counts.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use plumb_net::tcp::copyless::discard;
use plumb_wire::native::control::report::StreamEnd;

use super::wakes::Wakes;
use crate::file::Sink;
use crate::phase_state::{POLL_INTERVAL, Stage, retry};
use crate::tls::Pipe;

/// Bytes of one read: at 10 Gbit/s about 2,500 system calls a second.
const READ_BYTES: usize = 512 * 1024;

/// Bytes of one read where several connections are read beside each other: what is copied then stays in the processor's cache. In a bare
/// loop four connections between two namespaces carried 103 Gbit/s so, and 90 in reads of [`READ_BYTES`] (Linux 6.18).
const SHARED_READ_BYTES: usize = 128 * 1024;

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
    /// A buffer for the only connection, or for one of several.
    pub(super) fn memory(alone: bool) -> Self {
        Self::Memory(vec![0; if alone { READ_BYTES } else { SHARED_READ_BYTES }])
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

/// Counts what comes in until the stage is over, the budget is spent by what came in alone, or the connection ends. It
/// returns within twice [`POLL_INTERVAL`] of that: when it is asked to stop it still counts what the kernel already
/// holds. A file may hold it up longer. A connection that is `alone` wakes its reader less often. Returns how the
/// stream ended when it ended unasked.
pub(super) fn run(
    stream: &TcpStream,
    mut pipe: Pipe<'_>,
    mut to: Destination,
    alone: bool,
    counter: &AtomicU64,
    stage: &Stage,
) -> Option<StreamEnd> {
    if let Err(error) = stream.set_read_timeout(Some(POLL_INTERVAL)) {
        return stage.ended(error);
    }
    let mut last_read = None;
    // What encrypts or frames has requests to answer besides.
    let is_plain = matches!(pipe, Pipe::Plain(_));
    let mut wakes = (alone && is_plain).then(|| Wakes::start(Instant::now(), READ_BYTES));
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
                if let Some(wakes) = &mut wakes {
                    wakes.read(stream, count, Instant::now());
                }
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

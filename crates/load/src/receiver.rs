//! One receiving stream: reads and counts.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use plumb_wire::native::control::report::StreamEnd;

use crate::sender::{Budget, POLL_INTERVAL, retry};

/// Bytes of one read: at 10 Gbit/s about 2,500 system calls a second.
pub const READ_BYTES: usize = 512 * 1024;

/// Counts what comes in until `stop` is set, `deadline` passes, the budget is spent by what
/// came in alone, or the connection ends, and returns within twice [`POLL_INTERVAL`] of that:
/// when it is told to stop it still counts what the kernel already holds. Tells how the stream
/// ended when it was not told to.
pub fn run(
    mut stream: &TcpStream,
    counter: &AtomicU64,
    budget: &Budget,
    stop: &AtomicBool,
    started: Instant,
    deadline: Instant,
) -> Option<StreamEnd> {
    let ended = |error: String| {
        Some(StreamEnd {
            t_s: started.elapsed().as_secs_f64(),
            error,
        })
    };
    if let Err(error) = stream.set_read_timeout(Some(POLL_INTERVAL)) {
        return ended(error.to_string());
    }
    let mut buffer = vec![0; READ_BYTES];
    let mut last_read = None;
    loop {
        if last_read.is_none() && (stop.load(Ordering::Relaxed) || Instant::now() >= deadline) {
            last_read = Some(Instant::now() + POLL_INTERVAL);
            if stream.set_nonblocking(true).is_err() {
                return None;
            }
        }
        if last_read.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        match stream.read(&mut buffer) {
            Ok(0) => return ended("the far end closed the stream".to_owned()),
            Ok(count) => {
                counter.fetch_add(count as u64, Ordering::Relaxed);
                if !budget.take_in(count as u64) {
                    return None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && last_read.is_some() => {
                return None;
            }
            Err(error) if retry(&error) => (),
            Err(error) => return ended(error.to_string()),
        }
    }
}

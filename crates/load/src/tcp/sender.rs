//! One sending stream: writes as fast as TCP takes it.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_net::tcp;
use plumb_wire::native::control::report::StreamEnd;

use crate::stage::{POLL_INTERVAL, Stage, retry};
use crate::tls::{Pipe, TlsSession};

/// Bytes of one write: large enough that system calls cost nothing beside the copying, small
/// enough to stay in the processor's cache.
pub(super) const WRITE_BYTES: usize = 128 * 1024;

/// Bytes that no link compresses much: a xorshift64* sequence (Vigna 2016).
pub(crate) fn payload(length: usize) -> Arc<[u8]> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend(state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// Sends until the stage is over or the connection fails, and returns within [`POLL_INTERVAL`]
/// of that. Sends nothing beyond the budget, but stays until it is told to
/// stop, since its data is still on the way. Adds to `buffer_wait_us` what it waited for the
/// send buffer. Tells how the stream ended when it failed.
pub(super) fn run(
    stream: &TcpStream,
    tls: Option<&mut TlsSession>,
    payload: &[u8],
    buffer_wait_us: &AtomicU64,
    stage: &Stage,
) -> Option<StreamEnd> {
    if let Err(error) = stream.set_nonblocking(true) {
        return stage.ended(error);
    }
    let mut pipe = Pipe::new(stream, tls);
    while !stage.is_over() {
        let granted = stage.budget.reserve(payload.len() as u64);
        if granted == 0 {
            // What encryption keeps back is within the budget; a failure shows at the receiver.
            let _ = pipe.flush();
            std::thread::sleep(POLL_INTERVAL);
            continue;
        }
        let written = match wait_for_room(stream, buffer_wait_us) {
            Ok(true) => pipe.write(payload.get(..granted as usize).unwrap_or(payload)),
            Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        };
        stage.budget.give_back(
            granted
                - written
                    .as_ref()
                    .map_or(0, |count| (*count as u64).min(granted)),
        );
        match written {
            Ok(0) => return stage.ended(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(_) => (),
            Err(error) if retry(&error) => (),
            Err(error) => return stage.ended(error),
        }
    }
    None
}

/// Waits until the send buffer has room, which it is asked before every write: Linux 6.18 takes
/// many times its send buffer (30 times were seen) from a program that writes as long as data
/// leaves at once, and a small buffer would not show.
///
/// The kernel's own count (`tcpi_sndbuf_limited`) misses this wait, because it looks only when it
/// sends, and only when nothing at all is left. So the time is counted here in which everything written has been sent and the buffer,
/// full of what is not acknowledged, takes no more.
fn wait_for_room(stream: &TcpStream, buffer_wait_us: &AtomicU64) -> io::Result<bool> {
    if tcp::wait_writable(&stream, Duration::ZERO)? {
        return Ok(true);
    }
    let info = tcp::tcp_info(&stream)?;
    // Less than a segment may be left: Nagle's algorithm keeps it back (RFC 896).
    let all_sent = info.notsent_bytes < info.snd_mss_bytes;
    let asked = Instant::now();
    let ready = tcp::wait_writable(&stream, POLL_INTERVAL);
    if all_sent {
        let waited = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
        buffer_wait_us.fetch_add(waited, Ordering::Relaxed);
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_does_not_repeat() {
        let payload = payload(WRITE_BYTES);
        let words: std::collections::HashSet<_> = payload.chunks(8).collect();
        assert_eq!((payload.len(), words.len()), (WRITE_BYTES, WRITE_BYTES / 8));
    }
}

//! One sending stream: writes as fast as TCP takes it.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_net::tcp;
use plumb_wire::native::control::report::StreamEnd;

use super::background::Background;
use super::zero_copy::InPlace;
use crate::file::{Ready, Source};
use crate::phase_state::{POLL_INTERVAL, Stage, retry};
use crate::tls::Pipe;

/// Most bytes of one write where no other size is asked for: between two namespaces of one machine a connection carried
/// 61 to 75 Gbit/s so, and 51 to 60 in writes of [`SMALL_WRITE_BYTES`] (Linux 6.18).
pub(super) const WRITE_BYTES: usize = 1024 * 1024;

/// Bytes of one write on a slow connection: as programs write.
const SMALL_WRITE_BYTES: usize = 128 * 1024;

/// Bytes that no link compresses much: a xorshift64* sequence (Vigna 2016).
pub fn payload(length: usize) -> Arc<[u8]> {
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

/// Where a stream's payload comes from.
#[derive(Debug)]
pub(super) enum Origin {
    /// The first so many of these bytes again and again, copied at each write.
    Memory(Arc<[u8]>, usize),
    /// The same, sent from where they lie; copied where the kernel does not do that.
    InPlace(InPlace, Arc<[u8]>),
    /// A file, written in pieces of at most so many bytes.
    File(Source, usize),
}

impl Origin {
    fn ready(&mut self) -> io::Result<Ready> {
        Ok(match self {
            Self::Memory(_, length) => Ready::Bytes(*length),
            Self::InPlace(bytes, _) => Ready::Bytes(bytes.length()),
            Self::File(source, most) => match source.ready()? {
                Ready::Bytes(count) => Ready::Bytes(count.min(*most)),
                other => other,
            },
        })
    }

    /// Sends at most `count` bytes of what is ready.
    fn send(&mut self, stream: &TcpStream, pipe: &mut Pipe<'_>, count: usize) -> io::Result<usize> {
        match self {
            Self::Memory(payload, _) => pipe.write(payload.get(..count).unwrap_or(payload)),
            Self::InPlace(bytes, payload) => match bytes.send(stream, count)? {
                Some(sent) => Ok(sent),
                None => {
                    *self = Self::Memory(Arc::clone(payload), bytes.length());
                    self.send(stream, pipe, count)
                }
            },
            Self::File(source, _) => {
                let bytes = source.bytes();
                let sent = pipe.write(bytes.get(..count).unwrap_or(bytes))?;
                source.used(sent);
                Ok(sent)
            }
        }
    }
}

/// Sends until the stage is over or the connection fails, and returns within [`POLL_INTERVAL`] of that. Sends nothing
/// beyond the budget, but stays until it is asked to stop, since its data is still on the way. A write is all that is
/// ready, if `whole`, and else as [`Writes`] says. At the end of a file it stays until all of it has arrived. Where it
/// is to yield, `background` paces it. Adds to `buffer_wait_us` what it waited for the send buffer. Returns how the
/// stream ended when it failed.
pub(super) fn run(
    stream: &TcpStream,
    mut pipe: Pipe<'_>,
    mut from: Origin,
    mut background: Option<Background>,
    whole: bool,
    buffer_wait_us: &AtomicU64,
    stage: &Stage,
) -> Option<StreamEnd> {
    if let Err(error) = stream.set_nonblocking(true) {
        return stage.ended(error);
    }
    let mut writes = Writes::start(Instant::now());
    while !stage.is_over() {
        if let Some(background) = &mut background {
            background.look(stream);
        }
        let ready = match from.ready() {
            Ok(Ready::Bytes(count)) if whole => count as u64,
            Ok(Ready::Bytes(count)) => count.min(writes.largest) as u64,
            Ok(Ready::NotYet) => continue,
            Ok(Ready::End) => {
                wait_for_arrival(stream, &mut pipe, stage);
                stage.source_ended();
                return None;
            }
            Err(error) => return stage.ended(error),
        };
        let granted = stage.budget.reserve(ready);
        if granted == 0 {
            // What encryption keeps back is within the budget; a failure shows at the receiver.
            let _ = pipe.flush();
            std::thread::sleep(POLL_INTERVAL);
            continue;
        }
        let sent = match wait_for_room(stream, buffer_wait_us) {
            Ok(true) => from.send(stream, &mut pipe, granted as usize),
            Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        };
        let taken = sent.as_ref().map_or(0, |count| *count as u64);
        stage.budget.give_back(granted.saturating_sub(taken));
        match sent {
            Ok(0) => return stage.ended(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(count) => writes.sent(count, Instant::now()),
            Err(error) if retry(&error) => (),
            Err(error) => return stage.failed(&error),
        }
    }
    None
}

/// How large writes are: what the connection carries in [`Writes::LONGEST`], within bounds. The kernel takes a large
/// one whole where it would not take as much in small ones, for the reason at [`wait_for_room`], and a small send
/// buffer would not show.
#[derive(Debug)]
struct Writes {
    since: Instant,
    bytes: u64,
    largest: usize,
}

impl Writes {
    /// How often they follow the rate.
    const EVERY: Duration = Duration::from_millis(10);
    /// A twentieth of the round trip over 2,000 km of fibre: what a write adds to a send buffer is small beside
    /// what that holds wherever it could hold a connection back.
    const LONGEST: Duration = Duration::from_millis(1);

    fn start(now: Instant) -> Self {
        Self {
            since: now,
            bytes: 0,
            largest: SMALL_WRITE_BYTES,
        }
    }

    /// `count` bytes were written by `now`.
    fn sent(&mut self, count: usize, now: Instant) {
        self.bytes += count as u64;
        let passed = now.saturating_duration_since(self.since);
        if passed >= Self::EVERY {
            let share = Self::LONGEST.as_secs_f64() / passed.as_secs_f64();
            let bytes = (self.bytes as f64 * share) as usize;
            self.largest = bytes.clamp(SMALL_WRITE_BYTES, WRITE_BYTES);
            (self.since, self.bytes) = (now, 0);
        }
    }
}

/// Waits until everything written has been acknowledged.
fn wait_for_arrival(stream: &TcpStream, pipe: &mut Pipe<'_>, stage: &Stage) {
    /// Short against the 100 ms between samples.
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    while !stage.is_over()
        && (pipe.flush().is_err_and(|error| retry(&error))
            || tcp::tcp_info(&stream)
                .is_ok_and(|info| info.notsent_bytes > 0 || info.unacked_segments > 0))
    {
        std::thread::sleep(LOOK_EVERY);
    }
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
    fn only_a_fast_connection_gets_large_writes() {
        let begun = Instant::now();
        let mut writes = Writes::start(begun);
        assert_eq!(writes.largest, SMALL_WRITE_BYTES);
        // 5 Gbit/s, then 60, then 1: looked at every 10 ms.
        for (ms, bytes, largest) in [
            (4, 2_500_000, SMALL_WRITE_BYTES),
            (10, 3_750_000, 625_000),
            (20, 75_000_000, WRITE_BYTES),
            (35, 1_875_000, SMALL_WRITE_BYTES),
        ] {
            writes.sent(bytes, begun + Duration::from_millis(ms));
            assert_eq!(writes.largest, largest, "after {ms} ms");
        }
    }

    #[test]
    fn the_payload_does_not_repeat() {
        let payload = payload(WRITE_BYTES);
        let words: std::collections::HashSet<_> = payload.chunks(8).collect();
        assert_eq!((payload.len(), words.len()), (WRITE_BYTES, WRITE_BYTES / 8));
    }
}

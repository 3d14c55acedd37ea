//! How much must have come before a reader is woken.
//!
//! A reader that keeps up with its sender sleeps after every read, and the sender pays for each time that it is woken: between two
//! namespaces of one machine a bare loop that writes 128 KiB carried 43 Gbit/s where its reader was woken for each half megabyte, and 36
//! where for all that came, and the reader's processor time fell by two fifths (Linux 6.18). With four connections enough waits anyway,
//! and they carried a tenth less so.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumb_net::tcp;

/// How often it follows the rate.
const EVERY: Duration = Duration::from_millis(20);

/// The longest that bytes wait for others, at the rate that they come: samples of the rate are a thousand times as far apart.
const WAIT: Duration = Duration::from_micros(100);

/// Less than this is no more than one train of segments (GRO, 64 KiB), which wakes a reader once.
const LEAST_BYTES: usize = 64 * 1024;

/// Share of the receive buffer that may wait: half of it is the window, and more would hold the sender up, or have the kernel
/// enlarge the buffer (tcp_set_rcvlowat).
const BUFFER_PARTS: usize = 8;

/// What a connection's reader is woken for.
#[derive(Debug)]
pub(super) struct Wakes {
    since: Instant,
    bytes: u64,
    /// The least bytes that wake the reader, as set in the kernel: one byte to begin with.
    least: usize,
    /// Never more than one read takes.
    most: usize,
}

impl Wakes {
    pub(super) fn start(now: Instant, most: usize) -> Self {
        Self {
            since: now,
            bytes: 0,
            least: 1,
            most,
        }
    }

    /// `count` bytes were read by `now`.
    pub(super) fn read(&mut self, stream: &TcpStream, count: usize, now: Instant) {
        self.bytes += count as u64;
        let passed = now.saturating_duration_since(self.since);
        if passed < EVERY {
            return;
        }
        let come = self.bytes as f64 * WAIT.as_secs_f64() / passed.as_secs_f64();
        (self.since, self.bytes) = (now, 0);
        let buffer = tcp::receive_buffer_bytes(stream).unwrap_or(0);
        let least = least((come as usize).min(self.most), buffer);
        if least != self.least && tcp::set_receive_least(stream, least as u32).is_ok() {
            self.least = least;
        }
    }
}

/// In steps of twice as much, so that a rate which varies does not cost a call each time.
fn least(come: usize, buffer: usize) -> usize {
    let most = come.min(buffer / BUFFER_PARTS);
    match most {
        ..LEAST_BYTES => 1,
        _ => most.next_power_of_two() / if most.is_power_of_two() { 1 } else { 2 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_at_once_is_waited_for() {
        const MUCH: usize = 64 << 20;
        // 1 Gbit/s: 12.5 kB in the time.
        assert_eq!(least(12_500, MUCH), 1);
        assert_eq!(least(100_000, MUCH), 64 * 1024);
        assert_eq!(least(300_000, MUCH), 256 * 1024);
        assert_eq!(least(512 * 1024, MUCH), 512 * 1024);
        // A small buffer never fills up for want of a reader.
        assert_eq!(least(usize::MAX, 256 * 1024), 1);
        assert_eq!(least(usize::MAX, 1 << 20), 128 * 1024);
    }
}

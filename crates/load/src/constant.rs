//! Packets of one size at a constant rate over UDP, without an answer: what fills a link
//! whether anybody listens or not.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use plumb_model::units::BitRate;

/// IP and UDP headers in bytes, which the rate counts too: 20 or 40, and 8.
const fn headers(to: &SocketAddr) -> u64 {
    match to {
        SocketAddr::V4(_) => 28,
        SocketAddr::V6(_) => 48,
    }
}

/// Packets sent late at most in one go: after a pause of the machine the schedule moves on
/// instead of catching up with a burst that nobody asked for.
const MOST_AT_ONCE: u64 = 64;

/// The device's queue is full (errno(3)).
const ENOBUFS: i32 = 105;

/// What to send.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    /// Where to.
    pub to: SocketAddr,
    /// IP bits a second.
    pub rate: BitRate,
    /// UDP payload of each packet in bytes.
    pub payload_bytes: u16,
    /// For how long.
    pub duration: Duration,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Packets that the kernel took.
    pub packets: u64,
    /// Packets that it did not take, for want of room.
    pub refused: u64,
    /// Packets left out because this machine was late.
    pub skipped: u64,
}

impl Constant {
    /// The time from one packet to the next.
    fn interval(&self) -> Duration {
        let bits = (u64::from(self.payload_bytes) + headers(&self.to)) * 8;
        Duration::from_nanos(bits.saturating_mul(1_000_000_000) / self.rate.bps().max(1))
    }

    /// Sends, and returns when the time is over.
    ///
    /// # Errors
    /// When there can be no socket, or no way to the far end.
    pub fn send(&self) -> io::Result<Sent> {
        let any: SocketAddr = match self.to {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        let packet = vec![0; usize::from(self.payload_bytes)];
        let interval = self.interval().max(Duration::from_nanos(1));
        let started = Instant::now();
        let mut sent = Sent::default();
        let mut next = Duration::ZERO;
        while next < self.duration {
            thread::sleep(next.saturating_sub(started.elapsed()));
            let whole = |time: Duration| (time.as_nanos() / interval.as_nanos()) as u64;
            let left = (self.duration - next).saturating_sub(Duration::from_nanos(1));
            let due = 1 + whole(started.elapsed().saturating_sub(next).min(left));
            let now = due.min(MOST_AT_ONCE);
            for _ in 0..now {
                // A socket that is not connected does not hear that nobody listens.
                match socket.send_to(&packet, self.to) {
                    Ok(_) => sent.packets += 1,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => sent.refused += 1,
                    Err(e) if e.raw_os_error() == Some(ENOBUFS) => sent.refused += 1,
                    Err(e) => return Err(e),
                }
            }
            sent.skipped += due - now;
            next += interval.saturating_mul(u32::try_from(due).unwrap_or(u32::MAX));
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_rate_counts_headers() {
        let constant = |to: &str| Constant {
            to: to.parse().unwrap(),
            rate: BitRate::from_bps(8_000_000),
            payload_bytes: 972,
            duration: Duration::ZERO,
        };
        assert_eq!(constant("127.0.0.1:9").interval(), Duration::from_millis(1));
        assert_eq!(constant("[::1]:9").interval(), Duration::from_micros(1020));
    }

    #[test]
    fn sends_what_is_due_and_counts_the_rest() {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sent = Constant {
            to: listener.local_addr().unwrap(),
            rate: BitRate::from_bps(800_000),
            payload_bytes: 972,
            duration: Duration::from_millis(100),
        }
        .send()
        .unwrap();
        // One every 10 ms, from 0 to 90 ms, however the machine schedules it.
        assert_eq!(sent.packets + sent.refused + sent.skipped, 10);
        let mut buffer = [0; 2000];
        assert_eq!(listener.recv(&mut buffer).unwrap(), 972);
    }
}

//! Datagrams: how a stream begins, the header of each, and what a receiver counts by it.

use std::time::Duration;

/// What a client sends to begin a stream (`UDP_CONNECT_MSG`, as a little-endian host writes it), and the answer.
pub const CONNECT: [u8; 4] = *b"9876";
pub const CONNECTED: [u8; 4] = *b"6789";

/// What a client sends to begin it when no answer came. A server that has begun the stream takes that for data: its first four bytes
/// begin a stream, and as a header it has the number 0, which counts for nothing. With the four bytes alone iperf3's server reads a
/// number that it finds in its buffer, and counts all later ones as lost.
pub const CONNECT_AGAIN: [u8; 16] = {
    let [a, b, c, d] = CONNECT;
    [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
};

/// Whether a datagram begins a stream, or says so again.
pub fn is_connect(datagram: &[u8]) -> bool {
    datagram == CONNECT || datagram == CONNECT_AGAIN
}

/// Bytes of the header: seconds, microseconds, and a number of 32 or 64 bits, all big-endian.
pub const fn header_bytes(has_long_counters: bool) -> usize {
    if has_long_counters { 16 } else { 12 }
}

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, on a clock of the sender's.
    pub sent: Duration,
    /// Its number, from 1 on.
    pub number: u64,
}

impl Header {
    /// Writes it over the beginning of a datagram, which is at least [`header_bytes`] long.
    pub fn write(&self, has_long_counters: bool, datagram: &mut [u8]) {
        // Both wrap as iperf3's do.
        let seconds = (self.sent.as_secs() as u32).to_be_bytes();
        let micros = self.sent.subsec_micros().to_be_bytes();
        let long = self.number.to_be_bytes();
        let short = (self.number as u32).to_be_bytes();
        let number = if has_long_counters {
            long.as_slice()
        } else {
            &short
        };
        let bytes = seconds.iter().chain(&micros).chain(number);
        datagram
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
    }

    /// Reads it; `None` where the datagram is shorter.
    pub fn read(has_long_counters: bool, datagram: &[u8]) -> Option<Self> {
        let word = |at: usize| -> Option<u32> {
            let bytes = datagram.get(at..at.checked_add(4)?)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let seconds = Duration::from_secs(word(0)?.into());
        let micros = Duration::from_micros(word(4)?.into());
        let first: u64 = word(8)?.into();
        let number = match has_long_counters {
            true => first << 32 | u64::from(word(12)?),
            false => first,
        };
        Some(Self {
            sent: seconds.saturating_add(micros),
            number,
        })
    }
}

/// What a receiver counts, as iperf3 does (`iperf_udp_recv`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counter {
    /// The highest number that came.
    pub packets: u64,
    /// Numbers that were passed over and did not come later.
    pub lost: u64,
    /// Those that came after a higher one.
    pub out_of_order: u64,
    pub bytes: u64,
    /// In seconds (RFC 3550, section 6.4.1).
    pub jitter_s: f64,
    last_transit_s: Option<f64>,
}

impl Counter {
    /// A datagram of so many bytes came at that time of the receiver's clock.
    pub fn count(&mut self, header: Header, bytes: u64, at: Duration) {
        self.bytes = self.bytes.saturating_add(bytes);
        if header.number > self.packets {
            let passed_over = header.number - self.packets - 1;
            self.lost = self.lost.saturating_add(passed_over);
            self.packets = header.number;
        } else {
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
        }
        let transit_s = at.as_secs_f64() - header.sent.as_secs_f64();
        if let Some(last_s) = self.last_transit_s {
            self.jitter_s += ((transit_s - last_s).abs() - self.jitter_s) / 16.0;
        }
        self.last_transit_s = Some(transit_s);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn losses_and_overtaking_are_counted() {
        let mut counter = Counter::default();
        let mut count = |number, at_ms| {
            let sent = Duration::from_millis(number);
            counter.count(Header { sent, number }, 100, Duration::from_millis(at_ms));
            (counter.packets, counter.lost, counter.out_of_order)
        };
        assert_eq!(count(1, 11), (1, 0, 0));
        assert_eq!(count(4, 14), (4, 2, 0));
        assert_eq!(count(3, 15), (4, 1, 1));
        assert_eq!(count(5, 15), (5, 1, 1));
        // A transit of 10 ms became 12, and 10 again: 2 / 16, and so on.
        let jitter_ms = 2.0 / 16.0 + (2.0 - 2.0 / 16.0) / 16.0;
        assert!(
            (counter.jitter_s - jitter_ms / 1e3).abs() < 1e-9,
            "{}",
            counter.jitter_s
        );
    }

    proptest! {
        #[test]
        fn headers_come_back(seconds in any::<u32>(), micros in 0..1_000_000u32, number in any::<u64>(), long in any::<bool>()) {
            let number = if long { number } else { number & u64::from(u32::MAX) };
            let header = Header { sent: Duration::new(seconds.into(), micros * 1000), number };
            let mut datagram = [0; 20];
            header.write(long, &mut datagram);
            prop_assert_eq!(Header::read(long, &datagram), Some(header));
        }

        #[test]
        fn any_datagrams_are_survived(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..40), long in any::<bool>()) {
            let mut counter = Counter::default();
            for (at, datagram) in datagrams.iter().enumerate() {
                match Header::read(long, datagram) {
                    Some(header) => counter.count(header, datagram.len() as u64, Duration::from_millis(at as u64)),
                    None => prop_assert!(datagram.len() < header_bytes(long)),
                }
            }
            prop_assert!(counter.jitter_s.is_finite());
        }
    }
}

//! The columns of a row.

use std::fmt;

use crate::followed::Followed;
use crate::packet::flags;

const NS_PER_S: u64 = 1_000_000_000;
/// The flags by their bits, from the lowest (RFC 9293, section 3.1; RFC 3168, section 6.1).
const FLAGS: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

/// A segment as a row.
pub(super) struct Row<'a, 'b> {
    pub(super) followed: &'a Followed<'b>,
    pub(super) began_ns: u64,
}

/// A time in nanoseconds that is written in seconds, in full.
pub(super) struct Seconds(i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", ns / NS_PER_S, ns % NS_PER_S)
    }
}

impl Row<'_, '_> {
    /// Time from the first packet of the capture, in seconds; below zero where clocks ran backwards.
    pub(super) fn at_s(&self) -> Seconds {
        Seconds(self.followed.unix_ns.wrapping_sub(self.began_ns) as i64)
    }

    pub(super) fn direction(&self) -> &'static str {
        match self.followed.is_up() {
            true => "up",
            false => "down",
        }
    }

    /// What it acknowledges, from the other side's initial sequence number.
    pub(super) fn ack(&self) -> Option<u32> {
        let segment = self.followed.segment;
        segment
            .has(flags::ACK)
            .then(|| self.followed.of_other(segment.ack))
    }

    pub(super) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let flags = self.followed.segment.flags;
        let named = (0..).zip(FLAGS);
        named
            .filter(move |(bit, _)| flags & (1 << bit) != 0)
            .map(|(_, name)| name)
    }

    /// Blocks of selective acknowledgement, as the acknowledgement is counted.
    pub(super) fn sack(&self) -> impl Iterator<Item = (u32, u32)> {
        let blocks = self.followed.segment.options.sack();
        blocks.map(|(start, end)| (self.followed.of_other(start), self.followed.of_other(end)))
    }

    /// Bytes on their way from the sender after it.
    pub(super) fn in_flight_bytes(&self) -> u32 {
        let [own, _] = self.followed.view.in_flight_bytes;
        own
    }

    /// The round trip that it ended, in seconds.
    pub(super) fn rtt_s(&self) -> Option<Seconds> {
        let ns = self.followed.rtt_ns?;
        Some(Seconds(i64::try_from(ns).unwrap_or(i64::MAX)))
    }
}

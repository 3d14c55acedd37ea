//! What remains of a line's rate for payload, and which headers were counted.

use crate::framing::Framing;

/// Headers of a TCP segment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// RFC 7323 timestamps: 10 bytes and two of padding.
    pub timestamps: bool,
    /// Blocks of a SACK option (RFC 2018) in every segment. Data segments of a transfer one way carry
    /// none: this is for counts that include them.
    pub sack_blocks: u32,
    /// Whether every segment is counted with SACK-permitted, which only a SYN carries, and timestamps
    /// without their padding: what the training does.
    pub sack_permitted: bool,
}

/// IPv4 without options (RFC 791).
const IPV4_BYTES: u32 = 20;
/// IPv6 without extensions (RFC 8200).
const IPV6_BYTES: u32 = 40;
/// TCP without options (RFC 9293).
const TCP_BYTES: u32 = 20;
/// Timestamps, and the two NOPs that align them (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 10;
const TIMESTAMP_PADDING_BYTES: u32 = 2;
/// SACK-permitted (RFC 2018, section 2).
const SACK_PERMITTED_BYTES: u32 = 2;
/// One block of a SACK option (RFC 2018, section 3).
const SACK_BLOCK_BYTES: u32 = 8;

impl Headers {
    /// A data segment as Linux sends it: timestamps, nothing else.
    pub fn usual(ipv6: bool) -> Self {
        Self {
            ipv6,
            timestamps: true,
            sack_blocks: 0,
            sack_permitted: false,
        }
    }

    /// What the training counts: also SACK-permitted and three blocks, on every segment.
    pub fn generous(ipv6: bool) -> Self {
        Self {
            ipv6,
            timestamps: true,
            sack_blocks: 3,
            sack_permitted: true,
        }
    }

    /// What is counted, and its bytes, in the order of the packet.
    pub fn parts(self) -> Vec<(&'static str, u32)> {
        let mut parts = vec![
            if self.ipv6 {
                ("IPv6", IPV6_BYTES)
            } else {
                ("IPv4", IPV4_BYTES)
            },
            ("TCP", TCP_BYTES),
        ];
        if self.timestamps {
            parts.push(("timestamps", TIMESTAMP_BYTES));
            if !self.sack_permitted {
                parts.push(("padding", TIMESTAMP_PADDING_BYTES));
            }
        }
        if self.sack_permitted {
            parts.push(("SACK permitted", SACK_PERMITTED_BYTES));
        }
        if self.sack_blocks > 0 {
            parts.push((
                "SACK blocks",
                SACK_BLOCK_BYTES.saturating_mul(self.sack_blocks),
            ));
        }
        parts
    }

    /// All of them, in bytes.
    pub fn bytes(self) -> u32 {
        self.parts()
            .iter()
            .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }
}

/// Payload of a full segment in bytes; none where the headers leave no room.
pub fn payload(mtu_bytes: u32, headers: Headers) -> Option<u32> {
    mtu_bytes
        .checked_sub(headers.bytes())
        .filter(|bytes| *bytes > 0)
}

/// Payload rate of a line that sends full segments, in bit/s; none where the headers leave no room.
pub fn goodput(rate_bps: f64, mtu_bytes: u32, framing: Framing, headers: Headers) -> Option<f64> {
    payload(mtu_bytes, headers).map(|bytes| rate_bps * framing.payload_share(mtu_bytes, bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn gigabits(rate: f64, mtu: u32, headers: Headers) -> f64 {
        let ethernet = "ethernet".parse().unwrap();
        (goodput(rate, mtu, ethernet, headers).unwrap() / 1e6).round() / 1e3
    }

    #[test]
    fn the_training_and_the_usual_count() {
        // 1424 of 1538 bytes, with headers that a data segment does not have.
        assert_eq!(payload(1500, Headers::generous(false)), Some(1424));
        // The training cuts 2.3147 off; rounded it is 2.315.
        assert!((gigabits(2.5e9, 1500, Headers::generous(false)) - 2.314).abs() < 0.0011);
        assert_eq!(gigabits(2.5e9, 1500, Headers::generous(true)), 2.282);
        // 1448 and 1428: what a transfer shows.
        assert_eq!(payload(1500, Headers::usual(false)), Some(1448));
        assert_eq!(gigabits(2.5e9, 1500, Headers::usual(false)), 2.354);
        assert_eq!(gigabits(2.5e9, 1500, Headers::usual(true)), 2.321);
    }

    #[test]
    fn the_article() {
        // "A standard 1500-byte MTU tops a 10G link out around 9.4", and 9.88 with eight streams over
        // jumbo frames is "essentially the wire's ceiling".
        assert_eq!(gigabits(10e9, 1500, Headers::usual(false)), 9.415);
        assert_eq!(gigabits(10e9, 9000, Headers::usual(false)), 9.900);
    }

    #[test]
    fn no_room_is_no_rate() {
        assert_eq!(payload(52, Headers::usual(false)), None);
        assert_eq!(
            goodput(1e9, 40, Framing::default(), Headers::usual(true)),
            None
        );
    }
}

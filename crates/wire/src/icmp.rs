//! ICMP and ICMPv6 echo (RFC 792, page 14; RFC 4443, section 4), and the mark by which plumb
//! knows its own probes among all echoes.

use crate::checksum;

/// Size of the echo header, before the payload, in bytes.
pub const HEADER_BYTES: usize = 8;

/// Size of the mark at the start of the payload, and so of the smallest payload, in bytes.
pub const MARK_BYTES: usize = 12;

const MARK_MAGIC: [u8; 4] = *b"PLMB";

/// Which of the two protocols: their types differ, and who computes the checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// ICMP. The checksum is written and verified here.
    V4,
    /// ICMPv6. The checksum covers the addresses (RFC 8200, section 8.1), which the kernel
    /// alone is sure of: it writes and verifies it on every ICMPv6 socket (RFC 3542, section
    /// 3.1). Here it is written as zero and not looked at.
    V6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Reply,
}

impl Kind {
    pub fn code(self, version: Version) -> u8 {
        match (version, self) {
            (Version::V4, Self::Request) => 8,
            (Version::V4, Self::Reply) => 0,
            (Version::V6, Self::Request) => 128,
            (Version::V6, Self::Reply) => 129,
        }
    }
}

/// An echo request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo<'a> {
    pub kind: Kind,
    /// Differs between the probes of different programs.
    pub identifier: u16,
    /// Differs between the probes of one program.
    pub sequence: u16,
    /// Comes back as it was sent.
    pub payload: &'a [u8],
}

impl<'a> Echo<'a> {
    /// The message, without an IP header.
    pub fn write(&self, version: Version) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.payload.len());
        out.extend_from_slice(&[self.kind.code(version), 0, 0, 0]);
        out.extend_from_slice(&self.identifier.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(self.payload);
        if version == Version::V4 {
            let sum = checksum::checksum(&out).to_be_bytes();
            out.iter_mut()
                .skip(2)
                .zip(sum)
                .for_each(|(byte, s)| *byte = s);
        }
        out
    }

    /// Reads a message without its IP header; `None` when it is no echo or is damaged.
    pub fn parse(version: Version, bytes: &'a [u8]) -> Option<Self> {
        let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [code, subcode, _, _, id_high, id_low, seq_high, seq_low] = *header;
        let kind = [Kind::Request, Kind::Reply]
            .into_iter()
            .find(|kind| kind.code(version) == code)?;
        // The sum over a sound message, its checksum included, is zero (RFC 1071, section 1).
        let sound = version == Version::V6 || checksum::checksum(bytes) == 0;
        (sound && subcode == 0).then_some(Self {
            kind,
            identifier: u16::from_be_bytes([id_high, id_low]),
            sequence: u16::from_be_bytes([seq_high, seq_low]),
            payload,
        })
    }
}

/// The header of an echo alone, as routers quote it in errors (RFC 792).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoHeader {
    pub code: u8,
    /// Differs between the probes of different programs.
    pub identifier: u16,
    /// Differs between the probes of one program.
    pub sequence: u16,
}

impl EchoHeader {
    /// Reads a header; the checksum covers what is not there, and is not looked at.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [code, _, _, _, id_high, id_low, seq_high, seq_low] = *bytes;
        Self {
            code,
            identifier: u16::from_be_bytes([id_high, id_low]),
            sequence: u16::from_be_bytes([seq_high, seq_low]),
        }
    }
}

/// What plumb writes at the start of an echo payload: magic `PLMB`, then session and sequence,
/// big-endian. Identifier and sequence of the header are too short to be sure, and a ping
/// socket's kernel chooses the identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The client's random number, the same in all its probes.
    pub session: u32,
    /// Number of the probe; the header carries its lower half.
    pub sequence: u32,
}

impl Mark {
    /// A payload that begins with the mark and is filled with zeros up to `size_bytes`.
    pub fn payload(self, size_bytes: usize) -> Vec<u8> {
        self.payload_filled(size_bytes, &[])
    }

    /// The same, filled with a pattern again and again; with zeros where it is empty.
    pub fn payload_filled(self, size_bytes: usize, pattern: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(size_bytes.max(MARK_BYTES));
        out.extend_from_slice(&MARK_MAGIC);
        out.extend_from_slice(&self.session.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        let rest = size_bytes.saturating_sub(MARK_BYTES);
        out.extend(pattern.iter().cycle().take(rest));
        out.resize(size_bytes.max(MARK_BYTES), 0);
        out
    }

    /// Reads the mark; `None` when the payload is not plumb's.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let (magic, rest) = payload.split_first_chunk::<4>()?;
        let (session, rest) = rest.split_first_chunk::<4>()?;
        let sequence = rest.first_chunk::<4>()?;
        (*magic == MARK_MAGIC).then_some(Self {
            session: u32::from_be_bytes(*session),
            sequence: u32::from_be_bytes(*sequence),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_those_of_rfc_792() {
        let echo = Echo {
            kind: Kind::Request,
            identifier: 0x1234,
            sequence: 1,
            payload: b"ab",
        };
        // The sum of 0800, 1234, 0001, 6162 is 7b97; its complement is 8468.
        assert_eq!(
            echo.write(Version::V4),
            [8, 0, 0x84, 0x68, 0x12, 0x34, 0, 1, b'a', b'b']
        );
        assert_eq!(
            echo.write(Version::V6),
            [128, 0, 0, 0, 0x12, 0x34, 0, 1, b'a', b'b']
        );
    }

    #[test]
    fn damage_is_seen() {
        let payload = Mark {
            session: 1,
            sequence: 2,
        }
        .payload(56);
        let sound = Echo {
            kind: Kind::Reply,
            identifier: 7,
            sequence: 9,
            payload: &payload,
        }
        .write(Version::V4);
        assert!(Echo::parse(Version::V4, &sound).is_some());
        for bit in 0..sound.len() * 8 {
            let mut damaged = sound.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Echo::parse(Version::V4, &damaged), None, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            v6: bool, reply: bool, identifier: u16, sequence: u32, session: u32, size in 0usize..200,
        ) {
            let version = if v6 { Version::V6 } else { Version::V4 };
            let kind = if reply { Kind::Reply } else { Kind::Request };
            let mark = Mark { session, sequence };
            let payload = mark.payload(size);
            prop_assert_eq!(payload.len(), size.max(MARK_BYTES));
            let echo = Echo { kind, identifier, sequence: sequence as u16, payload: &payload };
            let bytes = echo.write(version);
            prop_assert_eq!(Echo::parse(version, &bytes), Some(echo));
            prop_assert_eq!(Mark::parse(&payload), Some(mark));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            for version in [Version::V4, Version::V6] {
                if let Some(echo) = Echo::parse(version, &bytes) {
                    prop_assert_eq!(echo.payload.len() + HEADER_BYTES, bytes.len());
                }
            }
            let _ = Mark::parse(&bytes);
        }
    }
}

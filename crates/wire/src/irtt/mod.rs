//! irtt (heistp/irtt, `packet.go`, `params.go`, version 1 of its protocol): packets, parameters, and the server as a state
//! machine. Numbers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 3 | `14 a7 5b` |
//! | 1 | flags |
//! | 16 | HMAC-MD5 over all with this field zero, where the flags say so |
//! | 8 | token of the session |
//! | 4 | sequence number, of an echo |
//! | 4, 8 | reply: packets received, and which of the last 64, as agreed |
//! | 8 each | reply: times of receiving, of the midpoint, of sending; wall clock and then monotonic, as agreed |
//!
//! An open packet has no token in the request, and parameters after the last field.

mod key;
mod parameters;
mod server;

pub use key::Key;
pub use parameters::{Clock, Parameters, StampAt, Stats};
pub use server::{Arrived, Limits, Reply, Server};

/// The port on which the server listens (`DefaultPort`).
pub const PORT: u16 = 2112;

/// The version that is spoken (`ProtocolVersion`).
pub const VERSION: i64 = 1;

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];

/// Bytes of the HMAC.
const TAG_BYTES: usize = 16;

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flags(u8);

impl Flags {
    const OPEN: u8 = 1;
    const REPLY: u8 = 2;
    const CLOSE: u8 = 4;
    const HMAC: u8 = 8;
    const ALL: u8 = Self::OPEN | Self::REPLY | Self::CLOSE | Self::HMAC;

    fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// A request, as far as all of them are alike.
struct Request<'a> {
    flags: Flags,
    /// What follows the flags and the HMAC.
    rest: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads a packet, which must have the HMAC by this key where there is one, and none where there is none.
    fn read(packet: &'a [u8], key: Option<&Key>) -> Option<Self> {
        let (head, rest) = packet.split_at_checked(4)?;
        let [m0, m1, m2, flags] = head else {
            return None;
        };
        let flags = Flags(*flags);
        if [*m0, *m1, *m2] != MAGIC || flags.0 & !Flags::ALL != 0 {
            return None;
        }
        let rest = match (key, flags.has(Flags::HMAC)) {
            (None, false) => rest,
            (Some(key), true) => {
                let (tag, rest) = rest.split_at_checked(TAG_BYTES)?;
                key.verifies(&[head, &[0; TAG_BYTES], rest], tag)
                    .then_some(rest)?
            }
            _ => return None,
        };
        Some(Self { flags, rest })
    }
}

/// Puts a packet together; the HMAC's place is filled at the end.
struct Packet {
    bytes: Vec<u8>,
    is_keyed: bool,
}

impl Packet {
    fn new(flags: u8, is_keyed: bool) -> Self {
        let flags = flags | if is_keyed { Flags::HMAC } else { 0 };
        let mut bytes = MAGIC.to_vec();
        bytes.push(flags);
        if is_keyed {
            bytes.extend([0; TAG_BYTES]);
        }
        Self { bytes, is_keyed }
    }

    fn with(mut self, field: &[u8]) -> Self {
        self.bytes.extend_from_slice(field);
        self
    }

    /// Filled up to that length, and signed.
    fn finish(mut self, length: usize, key: Option<&Key>) -> Vec<u8> {
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        if let Some(key) = key.filter(|_| self.is_keyed) {
            let tag = key.tag(&[&self.bytes]);
            if let Some(place) = self.bytes.get_mut(4..4 + TAG_BYTES) {
                place.copy_from_slice(&tag);
            }
        }
        self.bytes
    }
}

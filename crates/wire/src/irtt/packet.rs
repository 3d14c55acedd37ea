//! Packets: what all of them begin with.

use super::key::{Key, TAG_BYTES};

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags(pub(super) u8);

impl Flags {
    pub(super) const OPEN: u8 = 1;
    pub(super) const REPLY: u8 = 2;
    pub(super) const CLOSE: u8 = 4;
    pub(super) const HMAC: u8 = 8;
    const ALL: u8 = Self::OPEN | Self::REPLY | Self::CLOSE | Self::HMAC;

    pub(super) fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// A packet that came, as far as all of them are alike.
pub(super) struct Incoming<'a> {
    pub(super) flags: Flags,
    /// What follows the flags and the HMAC.
    pub(super) rest: &'a [u8],
}

impl<'a> Incoming<'a> {
    /// Reads a packet, which must have the HMAC by this key where there is one, and none where there is none.
    pub(super) fn read(packet: &'a [u8], key: Option<&Key>) -> Option<Self> {
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
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    is_keyed: bool,
}

impl Packet {
    pub(super) fn new(flags: u8, is_keyed: bool) -> Self {
        let flags = flags | if is_keyed { Flags::HMAC } else { 0 };
        let mut bytes = MAGIC.to_vec();
        bytes.push(flags);
        if is_keyed {
            bytes.extend([0; TAG_BYTES]);
        }
        Self { bytes, is_keyed }
    }

    pub(super) fn with(mut self, field: &[u8]) -> Self {
        self.bytes.extend_from_slice(field);
        self
    }

    /// Filled up to that length, and signed.
    pub(super) fn finish(mut self, length: usize, key: Option<&Key>) -> Vec<u8> {
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

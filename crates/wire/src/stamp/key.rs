//! The key of authenticated STAMP: HMAC-SHA-256, cut to 128 bits (RFC 8762, section 4.4).

use subtle::ConstantTimeEq;

use crate::keyed;

/// Bytes of an HMAC on the wire.
pub const TAG_BYTES: usize = 16;

/// Longest key: the block of SHA-256. A longer one would be hashed first (RFC 2104, section 2).
pub const MAX_KEY_BYTES: usize = 64;

/// A key that both ends know.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; MAX_KEY_BYTES]);

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key")
    }
}

impl Key {
    /// A key of 1 to [`MAX_KEY_BYTES`] bytes; `None` for any other length.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > MAX_KEY_BYTES {
            return None;
        }
        let mut block = [0; MAX_KEY_BYTES];
        block
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        Some(Self(block))
    }

    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        keyed::code(&keyed::key(&self.0), parts)
    }

    pub(super) fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.tag(parts).ct_eq(tag).into()
    }
}

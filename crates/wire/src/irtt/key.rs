//! The key of authenticated sessions: HMAC-MD5, as irtt uses it. MD5 is broken against an attacker who chooses what is
//! hashed; no forgery of its HMAC is known (RFC 6151).

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;

/// Bytes of the HMAC.
pub(super) const TAG_BYTES: usize = 16;

/// A key that both ends know.
#[derive(Clone)]
pub struct Key(Hmac<Md5>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl PartialEq for Key {
    /// By what they make of nothing, in constant time.
    fn eq(&self, other: &Self) -> bool {
        other.verifies(&[], &self.tag(&[]))
    }
}

impl Key {
    /// One of any length but zero.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let key = Hmac::new_from_slice(bytes).ok()?;
        (!bytes.is_empty()).then_some(Self(key))
    }

    fn over(&self, parts: &[&[u8]]) -> Hmac<Md5> {
        let mut hmac = self.0.clone();
        for part in parts {
            hmac.update(part);
        }
        hmac
    }

    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        self.over(parts).finalize().into_bytes().into()
    }

    pub(super) fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.over(parts).verify_slice(tag).is_ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_code_is_that_of_rfc_2202() {
        // Section 2, test case 2.
        let key = Key::new(b"Jefe").unwrap();
        let expected = [
            0x75, 0x0c, 0x78, 0x3e, 0x6a, 0xb0, 0xb5, 0x03, 0xea, 0xa8, 0x6e, 0x31, 0x0a, 0x5d,
            0xb7, 0x38,
        ];
        assert_eq!(key.tag(&[b"what do ya want ", b"for nothing?"]), expected);
        assert!(key.verifies(&[b"what do ya want for nothing?"], &expected));
        assert!(!key.verifies(&[b"what do ya want for nothing!"], &expected));
        assert!(Key::new(b"").is_none());
        assert!(key == key.clone() && Some(key) != Key::new(b"Jeff"));
    }
}

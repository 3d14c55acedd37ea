//! A key that a responder asks strangers for, and how a client proves that it has it: the key is never on the wire.
//!
//! The responder sends a number that it never used before, the client one of its own and the code (HMAC-SHA-256, RFC 2104) of
//! both. Each session asks anew, so that what was overheard proves nothing later.

use subtle::ConstantTimeEq as _;

use super::control::Hex;
use crate::keyed;

/// Bytes of the numbers: none comes twice by chance (RFC 4086 asks for 128 bits).
pub const NONCE_BYTES: usize = 16;

/// Bytes of the code, uncut.
pub const CODE_BYTES: usize = 32;

/// Shortest and longest key, in bytes. Who overhears an exchange can try keys at home, at some 10^10 a second and graphics processor: twelve
/// letters and digits by chance (62^12) take ten thousand years of that. A line of text is no longer than the longest.
pub const KEY_BYTES: std::ops::RangeInclusive<usize> = 12..=256;

/// What a code is for: it is of that besides the numbers, so that it proves nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A session of the native protocol.
    Session,
    /// The web page, for all protocols that have no key.
    Page,
}

impl Purpose {
    fn text(self) -> &'static [u8] {
        match self {
            Self::Session => b"plumb native session 1",
            Self::Page => b"plumb page 1",
        }
    }
}

/// A key, as people write it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// A secret does not belong in a log.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// A key of [`KEY_BYTES`], without the blanks around it.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = KEY_BYTES.contains(&text.len()) && !text.contains(char::is_control);
        fits.then(|| Self(text.to_owned()))
    }

    /// One that is made of random bytes, in letters and digits that are not taken for others.
    pub fn random(bytes: [u8; 16]) -> Self {
        const LETTERS: [u8; 32] = *b"abcdefghijkmnpqrstuvwxyz23456789";
        let letter = |byte: &u8| LETTERS.get(usize::from(byte % 32)).copied();
        Self(bytes.iter().filter_map(letter).map(char::from).collect())
    }

    /// As people write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The client's answer to a challenge, with a number of its own.
    pub fn prove(
        &self,
        purpose: Purpose,
        challenge: Hex<NONCE_BYTES>,
        own: Hex<NONCE_BYTES>,
    ) -> Hex<CODE_BYTES> {
        let key = keyed::key(self.0.as_bytes());
        Hex(keyed::code(&key, &[purpose.text(), &challenge.0, &own.0]))
    }

    /// Whether that answer proves that the client has the key.
    pub fn proves(
        &self,
        purpose: Purpose,
        challenge: Hex<NONCE_BYTES>,
        own: Hex<NONCE_BYTES>,
        code: Hex<CODE_BYTES>,
    ) -> bool {
        self.prove(purpose, challenge, own).0.ct_eq(&code.0).into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_key_and_the_challenge_prove() {
        let key = Key::new(" correct horse \n").unwrap();
        let (challenge, own) = (Hex([1; NONCE_BYTES]), Hex([2; NONCE_BYTES]));
        let purpose = Purpose::Session;
        let code = key.prove(purpose, challenge, own);
        assert!(key.proves(purpose, challenge, own, code));
        assert!(!key.proves(purpose, own, challenge, code));
        assert!(!key.proves(Purpose::Page, challenge, own, code));
        assert!(
            !Key::new("correct hors")
                .unwrap()
                .proves(purpose, challenge, own, code)
        );
        assert!(!key.proves(purpose, challenge, own, Hex([0; CODE_BYTES])));
    }

    #[test]
    fn keys_are_lines_of_text() {
        for bad in ["", "short", "with\u{7}bell in it", &"x".repeat(257)] {
            assert_eq!(Key::new(bad), None, "{bad}");
        }
        let made = Key::random(*b"0123456789abcdef");
        assert_eq!(Key::new(made.as_str()), Some(made.clone()));
        assert!(!format!("{made:?}").contains(made.as_str()));
    }
}

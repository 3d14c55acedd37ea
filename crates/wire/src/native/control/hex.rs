//! Bytes that stand as hexadecimal digits in JSON: the token of a session, and the fingerprint
//! of a certificate.

use std::fmt;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::native::spec::{FINGERPRINT_BYTES, TOKEN_BYTES};

/// Names a session; a client that knows it may attach data connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; TOKEN_BYTES]);

/// SHA-256 of a certificate in DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; FINGERPRINT_BYTES]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        let digest = digest(&SHA256, certificate);
        let mut bytes = [0; FINGERPRINT_BYTES];
        bytes
            .iter_mut()
            .zip(digest.as_ref())
            .for_each(|(to, from)| *to = *from);
        Self(bytes)
    }
}

/// A number of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Digits(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        digits(deserializer).map(Self)
    }
}

/// A secret does not belong in a log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Digits(&self.0))
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        digits(deserializer).map(Self)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Digits(&self.0))
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        digits(deserializer).map(Self)
    }
}

struct Digits<'a>(&'a [u8]);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn digits<'de, D: Deserializer<'de>, const N: usize>(deserializer: D) -> Result<[u8; N], D::Error> {
    let text = String::deserialize(deserializer)?;
    let nibbles: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect();
    let bytes = nibbles.filter(|n| n.len() == 2 * N).map(|nibbles| {
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(nibbles.chunks(2)) {
            *byte = pair.iter().fold(0, |all, nibble| all << 4 | nibble);
        }
        bytes
    });
    bytes.ok_or_else(|| serde::de::Error::custom(format!("not {} hexadecimal digits", 2 * N)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_are_hexadecimal_and_secret() {
        let token = Token(*b"\x00\x01\x10\xffabcdefghijkl");
        let json = serde_json::to_string(&token).unwrap();
        assert_eq!(json, r#""000110ff6162636465666768696a6b6c""#);
        assert_eq!(serde_json::from_str::<Token>(&json).unwrap(), token);
        for bad in [r#""""#, r#""00""#, r#""zz0110ff6162636465666768696a6b6c""#] {
            assert!(serde_json::from_str::<Token>(bad).is_err(), "{bad}");
            assert!(serde_json::from_str::<Fingerprint>(bad).is_err(), "{bad}");
        }
        assert!(!format!("{token:?}").contains("ff61"));
    }

    #[test]
    fn fingerprints_come_back() {
        let fingerprint = Fingerprint(std::array::from_fn(|k| k as u8 * 7));
        let json = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(
            serde_json::from_str::<Fingerprint>(&json).unwrap(),
            fingerprint
        );
    }
}

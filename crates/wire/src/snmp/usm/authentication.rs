//! That a message is of whom it says, and unchanged: HMAC with SHA-1 (RFC 3414, section 7) and with SHA-2 (RFC 7860).
//! MD5 is not offered.

use hmac::{Hmac, KeyInit, Mac};
use plumb_model::vocabulary;
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq as _;

/// Bytes of a password, repeated, that make a key (RFC 3414, section 2.6).
const PASSWORD_BYTES: usize = 1_048_576;

vocabulary! {
    /// The hash by which messages are authenticated.
    pub enum Authentication {
        /// HMAC-SHA-1, codes of 96 bits.
        Sha1 = "sha1",
        /// HMAC-SHA-224, codes of 128 bits.
        Sha224 = "sha224",
        /// HMAC-SHA-256, codes of 192 bits.
        Sha256 = "sha256",
        /// HMAC-SHA-384, codes of 256 bits.
        Sha384 = "sha384",
        /// HMAC-SHA-512, codes of 384 bits.
        Sha512 = "sha512",
    }
}

impl Authentication {
    /// Bytes of the code in a message (RFC 3414, section 7.3.1; RFC 7860, section 4.1).
    pub(in crate::snmp) fn code_bytes(self) -> usize {
        match self {
            Self::Sha1 => 12,
            Self::Sha224 => 16,
            Self::Sha256 => 24,
            Self::Sha384 => 32,
            Self::Sha512 => 48,
        }
    }

    /// Bytes of a key, as many as the hash has.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Sha224 => Sha224::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha384 => Sha384::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// The key of a password, not yet of an engine.
    fn key_of_password(self, password: &[u8]) -> Vec<u8> {
        let repeated: Vec<u8> = password
            .iter()
            .copied()
            .cycle()
            .take(PASSWORD_BYTES)
            .collect();
        self.hash(&repeated)
    }

    /// The key of a password at one engine (RFC 3414, section 2.6).
    pub(super) fn key(self, password: &[u8], engine_id: &[u8]) -> Vec<u8> {
        let key = self.key_of_password(password);
        self.hash(&[&key, engine_id, &key].concat())
    }

    /// The code of a message.
    pub(in crate::snmp) fn code(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        let mut code = match self {
            Self::Sha1 => hmac::<Hmac<Sha1>>(key, message),
            Self::Sha224 => hmac::<Hmac<Sha224>>(key, message),
            Self::Sha256 => hmac::<Hmac<Sha256>>(key, message),
            Self::Sha384 => hmac::<Hmac<Sha384>>(key, message),
            Self::Sha512 => hmac::<Hmac<Sha512>>(key, message),
        };
        code.truncate(self.code_bytes());
        code
    }

    /// Whether this is the code of a message, in constant time.
    pub(in crate::snmp) fn verifies(self, key: &[u8], message: &[u8], code: &[u8]) -> bool {
        let own = self.code(key, message);
        own.len() == self.code_bytes() && bool::from(own.ct_eq(code))
    }
}

fn hmac<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    // HMAC takes keys of any length; no code is the code of nothing.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use data_encoding::HEXLOWER;

    use super::*;

    /// The engine of the examples of RFC 3414, appendix A.3.
    const ENGINE_ID: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

    #[test]
    fn keys_are_those_of_rfc_3414() {
        // Appendix A.3.2: "maplesyrup".
        let by = Authentication::Sha1;
        let key = by.key_of_password(b"maplesyrup");
        assert_eq!(
            HEXLOWER.encode(&key),
            "9fb5cc0381497b3793528939ff788d5d79145211"
        );
        let key = by.key(b"maplesyrup", &ENGINE_ID);
        assert_eq!(
            HEXLOWER.encode(&key),
            "6695febc9288e36282235fc7151f128497b38f3f"
        );
    }

    #[test]
    fn codes_are_those_of_the_hashes() {
        // RFC 4231, test case 2, and RFC 2202, test case 2: of which messages carry the first bytes (RFC 7860, section 4.1).
        let (key, message) = (b"Jefe", b"what do ya want for nothing?");
        for (by, code) in [
            (Authentication::Sha1, "effcdf6ae5eb2fa2d27416d5"),
            (Authentication::Sha224, "a30e01098bc6dbbf45690f3a7e9e6d0f"),
            (
                Authentication::Sha256,
                "5bdcc146bf60754e6a042426089575c75a003f089d273983",
            ),
            (
                Authentication::Sha384,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e",
            ),
            (
                Authentication::Sha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd",
            ),
        ] {
            assert_eq!(HEXLOWER.encode(&by.code(key, message)), code, "{by:?}");
            assert_eq!(by.hash(b"").len(), by.key_bytes());
            assert!(by.verifies(key, message, &HEXLOWER.decode(code.as_bytes()).unwrap()));
            assert!(!by.verifies(key, message, &[]));
            assert!(!by.verifies(key, b"another", &HEXLOWER.decode(code.as_bytes()).unwrap()));
        }
    }
}

//! That a message is read by its receiver alone: AES in cipher feedback mode of 128 bits (RFC 3826). With keys of 256 bits it is as
//! common, and alike where the hash of authentication makes a key that is long enough; how shorter ones are made longer is
//! not agreed upon, so that those are not used.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use plumb_model::vocabulary;

/// Bytes of a block, and of the vector that the first one begins with.
const BLOCK: usize = 16;

vocabulary! {
    /// The cipher by which messages are encrypted.
    pub enum Privacy {
        /// AES with keys of 128 bits.
        Aes128 = "aes128",
        /// AES with keys of 256 bits, for which the hash has to be SHA-256 or longer.
        Aes256 = "aes256",
    }
}

/// Whether a message is encrypted or decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::snmp) enum Turn {
    Encrypt,
    Decrypt,
}

impl Privacy {
    /// Bytes of its key: the first ones of what the hash makes.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes256 => 32,
        }
    }

    /// Encrypts or decrypts a message; `None` where the key is too short. `boots` and `time_s` are of the engine that
    /// answers.
    pub(in crate::snmp) fn apply(
        self,
        turn: Turn,
        key: &[u8],
        (boots, time_s, salt): (u32, u32, [u8; 8]),
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let key = key.get(..self.key_bytes())?;
        // Section 3.1.2.1.
        let mut vector = [0; BLOCK];
        let parts = [&boots.to_be_bytes()[..], &time_s.to_be_bytes(), &salt].concat();
        vector.copy_from_slice(parts.get(..BLOCK)?);
        match self {
            Self::Aes128 => Some(feedback(
                &Aes128::new_from_slice(key).ok()?,
                turn,
                vector,
                message,
            )),
            Self::Aes256 => Some(feedback(
                &Aes256::new_from_slice(key).ok()?,
                turn,
                vector,
                message,
            )),
        }
    }
}

/// Cipher feedback of whole blocks (NIST SP 800-38A, section 6.3); the last one may be shorter.
fn feedback(
    cipher: &impl BlockCipherEncrypt<BlockSize = aes::cipher::consts::U16>,
    turn: Turn,
    mut vector: [u8; BLOCK],
    message: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    for block in message.chunks(BLOCK) {
        let mut stream = vector.into();
        cipher.encrypt_block(&mut stream);
        let done: Vec<u8> = block.iter().zip(&stream).map(|(a, b)| a ^ b).collect();
        let encrypted = match turn {
            Turn::Encrypt => &done,
            Turn::Decrypt => block,
        };
        if let Ok(whole) = <[u8; BLOCK]>::try_from(encrypted) {
            vector = whole;
        }
        out.extend(done);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use data_encoding::HEXLOWER;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_are_those_of_nist() {
        // SP 800-38A, appendix F.3.13 and F.3.17: the first two blocks.
        let decoded = |text: &str| HEXLOWER.decode(text.as_bytes()).unwrap();
        let vector: [u8; BLOCK] = std::array::from_fn(|place| place as u8);
        let plain = decoded("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let key = decoded("2b7e151628aed2a6abf7158809cf4f3c");
        let cipher = Aes128::new_from_slice(&key).unwrap();
        let encrypted = feedback(&cipher, Turn::Encrypt, vector, &plain);
        assert_eq!(
            HEXLOWER.encode(&encrypted),
            "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b"
        );
        let key = decoded("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        let cipher = Aes256::new_from_slice(&key).unwrap();
        let encrypted = feedback(&cipher, Turn::Encrypt, vector, &plain);
        assert_eq!(
            HEXLOWER.encode(&encrypted),
            "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407b"
        );
    }

    proptest! {
        #[test]
        fn messages_come_back(message in proptest::collection::vec(any::<u8>(), 0..100), boots: u32, time_s: u32, salt: [u8; 8]) {
            let with = (boots, time_s, salt);
            for by in [Privacy::Aes128, Privacy::Aes256] {
                let encrypted = by.apply(Turn::Encrypt, &[7; 32], with, &message).unwrap();
                prop_assert_eq!(by.apply(Turn::Decrypt, &[7; 32], with, &encrypted).unwrap(), message.clone());
            }
            prop_assert!(Privacy::Aes256.apply(Turn::Encrypt, &[7; 31], with, &message).is_none());
        }
    }
}

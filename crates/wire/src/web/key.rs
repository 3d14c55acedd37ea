//! How a browser proves that its user has a responder's key, which is never on the wire: it asks [`PATH`] for a challenge, and
//! posts an [`Answer`] to it. The code is computed as in the native protocol
//! ([`Purpose::Page`](crate::native::key::Purpose::Page)).

use std::net::IpAddr;

use plumb_model::json;
use ring::hmac::Key as Secret;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::keyed;
use crate::native::control::Hex;
use crate::native::key::{CODE_BYTES, NONCE_BYTES};

/// Gives a challenge, and takes the answer to it.
pub const PATH: &str = "/__key";

/// The most of an answer, in bytes: three numbers in hexadecimal digits, and their names.
pub const MOST_BYTES: usize = 512;

/// How long a challenge may be answered, in seconds: a page asks for it when its user has typed the key.
const LASTS_S: u64 = 60;

/// Bytes of a challenge that say when it was made; the others are a code of that and of the address.
const TIME_BYTES: usize = 8;
const MARK_BYTES: usize = NONCE_BYTES - TIME_BYTES;

/// What a page posts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub challenge: Hex<NONCE_BYTES>,
    /// A number of its own.
    pub nonce: Hex<NONCE_BYTES>,
    pub code: Hex<CODE_BYTES>,
}

/// Reads what a page posted; nothing where it is no answer.
pub fn parse(text: &[u8]) -> Option<Answer> {
    json::from_slice(text).ok()
}

/// Makes challenges and knows them again, without remembering any.
#[derive(Debug)]
pub struct Challenger(Secret);

impl Challenger {
    /// With a secret of its own, which no other program may know.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(keyed::key(secret))
    }

    /// One for that address; `now_s` is in seconds, since any instant.
    pub fn challenge(&self, peer: IpAddr, now_s: u64) -> Hex<NONCE_BYTES> {
        let made = now_s.to_be_bytes();
        let mark = self.mark(peer, made);
        let mut bytes = [0; NONCE_BYTES];
        let fields = made.into_iter().chain(mark);
        bytes
            .iter_mut()
            .zip(fields)
            .for_each(|(to, from)| *to = from);
        Hex(bytes)
    }

    /// Whether it made that challenge for that address, in the last minute.
    pub fn made(&self, peer: IpAddr, challenge: Hex<NONCE_BYTES>, now_s: u64) -> bool {
        let Some((made, mark)) = challenge.0.split_first_chunk::<TIME_BYTES>() else {
            return false;
        };
        let age_s = now_s.checked_sub(u64::from_be_bytes(*made));
        let is_ours: bool = self.mark(peer, *made).ct_eq(mark).into();
        is_ours && age_s.is_some_and(|age| age <= LASTS_S)
    }

    fn mark(&self, peer: IpAddr, made: [u8; TIME_BYTES]) -> [u8; MARK_BYTES] {
        let address = match peer.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        keyed::code(&self.0, &[&made, &address.octets()])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::native::key::{Key, Purpose};
    use proptest::prelude::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(9, 9, 9, 9));

    #[test]
    fn a_challenge_is_for_one_address_and_a_minute() {
        let ours = Challenger::new(&[7; 32]);
        let challenge = ours.challenge(PEER, 1000);
        assert!(ours.made(PEER, challenge, 1000));
        assert!(ours.made("::ffff:9.9.9.9".parse().unwrap(), challenge, 1060));
        for late in [1061, 999, 0, u64::MAX] {
            assert!(!ours.made(PEER, challenge, late), "{late}");
        }
        assert!(!ours.made("9.9.9.8".parse().unwrap(), challenge, 1000));
        assert!(!Challenger::new(&[8; 32]).made(PEER, challenge, 1000));
    }

    /// What `key.js` computes, by another implementation of HMAC-SHA-256.
    #[test]
    fn the_code_is_that_of_the_page() {
        let (challenge, nonce) = (Hex([1; NONCE_BYTES]), Hex([2; NONCE_BYTES]));
        let code = Key::new("correct horse")
            .unwrap()
            .prove(Purpose::Page, challenge, nonce);
        let json = serde_json::to_string(&Answer {
            challenge,
            nonce,
            code,
        })
        .unwrap();
        let expected = "ceee2f49efa1cd00ca4270196092b65b0bab747fe4a2869635c461fac1ec5bc5";
        assert!(json.contains(expected), "{json}");
        assert!(json.len() < MOST_BYTES);
        assert_eq!(parse(json.as_bytes()).unwrap().code, code);
    }

    proptest! {
        #[test]
        fn hostile_answers_do_no_harm(text in prop::collection::vec(any::<u8>(), 0..300), bytes: [u8; NONCE_BYTES], now_s: u64) {
            let _ = parse(&text);
            prop_assert!(!Challenger::new(&[7; 32]).made(PEER, Hex(bytes), now_s));
        }
    }
}

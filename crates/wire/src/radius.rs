//! What a client asks a RADIUS server, and the answer: Status-Server (RFC 5997) and Access-Request with a password (RFC 2865),
//! each with a Message-Authenticator (RFC 3579). Pure.

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};

/// The port of authentication (RFC 2865, section 3).
pub const PORT: u16 = 1812;

/// The longest packet in bytes (RFC 2865, section 3).
pub const MOST_BYTES: usize = 4096;

/// The longest password in bytes (RFC 2865, section 5.2).
pub const MOST_PASSWORD: usize = 128;

/// The longest name of a user in bytes: what an attribute holds.
pub const MOST_USER: usize = 253;

/// Code, identifier, length and authenticator.
const HEAD_BYTES: usize = 20;

const AUTHENTICATOR_BYTES: usize = 16;

/// Codes of packets (RFC 2865, section 3, RFC 2866, section 3, and RFC 5997, section 3).
const ACCESS_REQUEST: u8 = 1;
const ACCESS_ACCEPT: u8 = 2;
const ACCESS_REJECT: u8 = 3;
const ACCOUNTING_RESPONSE: u8 = 5;
const ACCESS_CHALLENGE: u8 = 11;
const STATUS_SERVER: u8 = 12;

/// Attributes (RFC 2865, section 5, and RFC 3579, section 3.2).
const USER_NAME: u8 = 1;
const USER_PASSWORD: u8 = 2;
const NAS_IDENTIFIER: u8 = 32;
const MESSAGE_AUTHENTICATOR: u8 = 80;

/// What this client calls itself.
const OWN_NAME: &[u8] = b"plumb";

/// What a server answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It accepts the user; or, to Status-Server, it is there.
    Accepted,
    Rejected,
    /// It wants more of the user than a password.
    Challenged,
}

/// Why a packet is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It answers another question, or is none of RADIUS.
    #[error("it is no answer to this question")]
    Foreign,
    /// Its authenticator is another than the secret makes.
    #[error("an answer came that the secret does not authenticate")]
    Forged,
}

/// A question, and what its answer is checked by.
#[derive(Clone)]
pub struct Question {
    packet: Vec<u8>,
    secret: Vec<u8>,
}

impl Question {
    /// Whether the server is there. `authenticator` is random, and never the same again.
    pub fn status(secret: &[u8], identifier: u8, authenticator: [u8; 16]) -> Self {
        let own = attribute(NAS_IDENTIFIER, OWN_NAME);
        Self::new(secret, (STATUS_SERVER, identifier), authenticator, &own)
    }

    /// Whether that user may have access with that password; of both what fits counts.
    pub fn access(
        secret: &[u8],
        identifier: u8,
        authenticator: [u8; 16],
        (user, password): (&[u8], &[u8]),
    ) -> Self {
        let hidden = hidden(secret, authenticator, password);
        let user = user.get(..MOST_USER).unwrap_or(user);
        let attributes = [
            attribute(USER_NAME, user),
            attribute(USER_PASSWORD, &hidden),
            attribute(NAS_IDENTIFIER, OWN_NAME),
        ];
        let head = (ACCESS_REQUEST, identifier);
        Self::new(secret, head, authenticator, &attributes.concat())
    }

    /// The Message-Authenticator comes first, before what an attacker could choose (CVE-2024-3596).
    fn new(
        secret: &[u8],
        (code, identifier): (u8, u8),
        authenticator: [u8; 16],
        attributes: &[u8],
    ) -> Self {
        let empty = attribute(MESSAGE_AUTHENTICATOR, &[0; AUTHENTICATOR_BYTES]);
        let length = HEAD_BYTES + empty.len() + attributes.len();
        let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
        let mut packet = [
            [code, identifier].as_slice(),
            &length,
            &authenticator,
            &empty,
            attributes,
        ]
        .concat();
        let signed = hmac(secret, &[&packet]);
        if let Some(place) = packet.get_mut(HEAD_BYTES + 2..HEAD_BYTES + 2 + signed.len()) {
            place.copy_from_slice(&signed);
        }
        Self {
            packet,
            secret: secret.to_vec(),
        }
    }

    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Reads what came in a datagram.
    ///
    /// # Errors
    /// When it is no answer to this question that has the secret.
    pub fn answer(&self, datagram: &[u8]) -> Result<Answer, NoAnswer> {
        let (Some((asked, _)), Some((head, _))) = (
            self.packet.split_first_chunk::<HEAD_BYTES>(),
            datagram.split_first_chunk::<HEAD_BYTES>(),
        ) else {
            return Err(NoAnswer::Foreign);
        };
        let [code, identifier, high, low, authenticator @ ..] = *head;
        let [asked_code, asked_identifier, _, _, asked_authenticator @ ..] = *asked;
        // What is behind the length is padding (RFC 2865, section 3).
        let length = usize::from(u16::from_be_bytes([high, low]));
        let packet = match datagram.get(..length) {
            Some(packet) if length >= HEAD_BYTES && identifier == asked_identifier => packet,
            _ => return Err(NoAnswer::Foreign),
        };
        let answer = match (asked_code, code) {
            (STATUS_SERVER, ACCESS_ACCEPT | ACCOUNTING_RESPONSE) => Answer::Accepted,
            (ACCESS_REQUEST, ACCESS_ACCEPT) => Answer::Accepted,
            (ACCESS_REQUEST, ACCESS_REJECT) => Answer::Rejected,
            (ACCESS_REQUEST, ACCESS_CHALLENGE) => Answer::Challenged,
            _ => return Err(NoAnswer::Foreign),
        };
        let attributes = packet.get(HEAD_BYTES..).unwrap_or_default();
        let begin = [code, identifier, high, low];
        let own = md5(&[&begin, &asked_authenticator, attributes, &self.secret]);
        if own != authenticator {
            return Err(NoAnswer::Forged);
        }
        match self.signed(&begin, asked_authenticator, attributes) {
            Some(true) => Ok(answer),
            Some(false) => Err(NoAnswer::Forged),
            None => Err(NoAnswer::Foreign),
        }
    }

    /// Whether the Message-Authenticator of an answer, where it has one, is what the secret makes; `None` where its attributes
    /// are none.
    fn signed(&self, begin: &[u8], asked: [u8; 16], attributes: &[u8]) -> Option<bool> {
        let mut at = 0;
        let mut is_right = true;
        while let Some([kind, length, ..]) = attributes.get(at..).filter(|rest| !rest.is_empty()) {
            let length = usize::from(*length);
            let content = attributes.get(at + 2..at + length)?;
            if *kind == MESSAGE_AUTHENTICATOR {
                let before = attributes.get(..at + 2)?;
                let after = attributes.get(at + length..)?;
                let empty = [0; AUTHENTICATOR_BYTES];
                let own = hmac(&self.secret, &[begin, &asked, before, &empty, after]);
                is_right &= own == content;
            }
            at += length;
        }
        (at == attributes.len()).then_some(is_right)
    }
}

fn attribute(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len() + 2).unwrap_or(u8::MAX);
    [&[kind, length], content].concat()
}

/// A password as it is sent (RFC 2865, section 5.2): blocks of 16 bytes, each under what the secret and the one before make.
fn hidden(secret: &[u8], authenticator: [u8; 16], password: &[u8]) -> Vec<u8> {
    let password = password.get(..MOST_PASSWORD).unwrap_or(password);
    let (mut out, mut before) = (Vec::new(), authenticator);
    let whole = password.len().max(1).next_multiple_of(AUTHENTICATOR_BYTES);
    for begin in (0..whole).step_by(AUTHENTICATOR_BYTES) {
        before = md5(&[secret, &before]);
        let block = password.get(begin..).unwrap_or_default();
        for (byte, letter) in before.iter_mut().zip(block) {
            *byte ^= letter;
        }
        out.extend(before);
    }
    out
}

fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    // HMAC takes keys of any length.
    let Ok(mut mac) = <Hmac<Md5> as KeyInit>::new_from_slice(key) else {
        return Vec::new();
    };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const SECRET: &[u8] = b"xyzzy5461";

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text
            .chars()
            .filter_map(|c| u8::try_from(c.to_digit(16)?).ok())
            .collect();
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }

    /// The query of RFC 5997, section 6.1, and its answer.
    #[test]
    fn the_example_of_the_status_of_a_server() {
        let authenticator = bytes("8a54f4686fb394c52866e302185d0623");
        let head = (STATUS_SERVER, 0xda);
        let question = Question::new(SECRET, head, authenticator.try_into().unwrap(), &[]);
        let packet = bytes(
            "0cda0026 8a54f4686fb394c52866e302185d0623 5012 5a665e2e1e8411f3e243822097c84fa3",
        );
        assert_eq!(question.packet(), packet);
        let answer = bytes("02da0014 ef0d552a4bf2d693ec2b6fe8b5411d66");
        assert_eq!(question.answer(&answer), Ok(Answer::Accepted));
        // Padding counts for nothing.
        let padded = [answer.as_slice(), &[0; 9]].concat();
        assert_eq!(question.answer(&padded), Ok(Answer::Accepted));
        for wrong in 0..answer.len() {
            let mut changed = answer.clone();
            changed[wrong] ^= 1;
            assert!(question.answer(&changed).is_err(), "{wrong}");
        }
        let mut other = question.clone();
        other.secret = b"other".to_vec();
        assert_eq!(other.answer(&answer), Err(NoAnswer::Forged));
    }

    /// The user of RFC 2865, section 7.1.
    #[test]
    fn the_example_of_a_password() {
        let authenticator = bytes("0f403f9473978057bd83d5cb98f4227a");
        let authenticator = authenticator.try_into().unwrap();
        assert_eq!(
            hidden(SECRET, authenticator, b"arctangent"),
            bytes("0dbe708d93d413ce3196e43f782a0aee")
        );
        let user = (b"nemo".as_slice(), b"arctangent".as_slice());
        let question = Question::access(SECRET, 0, authenticator, user);
        let accept = bytes(
            "02000026 86fe220e7624ba2a1005f6bf9b55e0b2 060600000001 0f0600000000 0e06c0a80103",
        );
        assert_eq!(question.answer(&accept), Ok(Answer::Accepted));
        let long = [b'x'; 40];
        assert_eq!(hidden(SECRET, authenticator, &long).len(), 48);
        assert_eq!(hidden(SECRET, authenticator, b"").len(), 16);
        assert_eq!(hidden(SECRET, authenticator, &[b'x'; 300]).len(), 128);
    }

    /// An answer with that code and these attributes, as a server makes it.
    fn answer(question: &Question, code: u8, attributes: &[u8]) -> Vec<u8> {
        let asked = question.packet();
        let length = u16::try_from(HEAD_BYTES + attributes.len()).unwrap();
        let begin = [&[code, asked[1]], length.to_be_bytes().as_slice()].concat();
        let own = md5(&[&begin, &asked[4..20], attributes, SECRET]);
        [&begin, own.as_slice(), attributes].concat()
    }

    #[test]
    fn an_answer_that_is_signed_is_checked() {
        let user = (b"nemo".as_slice(), b"x".as_slice());
        let question = Question::access(SECRET, 7, [9; 16], user);
        let of = |code, attributes: &[u8]| question.answer(&answer(&question, code, attributes));
        assert_eq!(of(ACCESS_REJECT, &[]), Ok(Answer::Rejected));
        assert_eq!(of(ACCESS_CHALLENGE, &[18, 3, b'a']), Ok(Answer::Challenged));
        assert_eq!(of(ACCOUNTING_RESPONSE, &[]), Err(NoAnswer::Foreign));
        assert_eq!(of(ACCESS_ACCEPT, &[18, 0]), Err(NoAnswer::Foreign));
        assert_eq!(of(ACCESS_ACCEPT, &[18]), Err(NoAnswer::Foreign));
        let signed = |code: u8| {
            let empty = attribute(MESSAGE_AUTHENTICATOR, &[0; 16]);
            let begin = [code, 7, 0, (HEAD_BYTES + 18) as u8];
            let own = hmac(SECRET, &[&begin, &[9; 16], &empty]);
            attribute(MESSAGE_AUTHENTICATOR, &own)
        };
        assert_eq!(
            of(ACCESS_ACCEPT, &signed(ACCESS_ACCEPT)),
            Ok(Answer::Accepted)
        );
        let other = of(ACCESS_ACCEPT, &signed(ACCESS_REJECT));
        assert_eq!(other, Err(NoAnswer::Forged));
        let status = Question::status(SECRET, 7, [9; 16]);
        let accounting = answer(&status, ACCOUNTING_RESPONSE, &[]);
        assert_eq!(status.answer(&accounting), Ok(Answer::Accepted));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let question = Question::status(SECRET, 1, [2; 16]);
            prop_assert!(question.answer(&bytes).is_err());
            let signed = answer(&question, ACCESS_ACCEPT, &bytes);
            let _ = question.answer(&signed);
        }
    }
}

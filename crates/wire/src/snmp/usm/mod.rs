//! The user-based security model of version 3 (RFC 3414): what a message carries of it, and the keys of a user at one engine.

pub mod authentication;
pub mod privacy;

use authentication::Authentication;
use privacy::Privacy;

use super::SnmpError;
use super::ber::{self, Reader};

/// The number of this model (RFC 3411, section 5).
pub(super) const MODEL: i32 = 3;

/// The longest engine identifier, in bytes (RFC 3411, SnmpEngineID).
const MOST_ENGINE_ID: usize = 32;

/// The shortest password (RFC 3414, section 11.2), in bytes.
pub const LEAST_PASSWORD: usize = 8;

/// A user of version 3, with its passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub authentication: Option<(Authentication, String)>,
    /// Only where there is authentication too.
    pub privacy: Option<(Privacy, String)>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "User({})", self.name)
    }
}

impl User {
    /// The keys at one engine; each takes a hash of a megabyte.
    pub(super) fn keys(&self, engine_id: &[u8]) -> Keys {
        let authentication = self.authentication.as_ref();
        let authentication =
            authentication.map(|(by, password)| (*by, by.key(password.as_bytes(), engine_id)));
        // Privacy's key is made by the hash of authentication (RFC 3826, section 1.2).
        let hash = authentication.as_ref().map(|(by, _)| *by);
        let privacy = self.privacy.as_ref().zip(hash);
        let privacy =
            privacy.map(|((by, password), hash)| (*by, hash.key(password.as_bytes(), engine_id)));
        Keys {
            authentication,
            privacy,
        }
    }
}

/// The keys of a user at one engine.
pub(super) struct Keys {
    pub(super) authentication: Option<(Authentication, Vec<u8>)>,
    pub(super) privacy: Option<(Privacy, Vec<u8>)>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// What each message carries (RFC 3414, section 2.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Parameters {
    pub(super) engine_id: Vec<u8>,
    pub(super) boots: u32,
    pub(super) time_s: u32,
    pub(super) user: Vec<u8>,
    /// The code of the whole message, made while these bytes are zero.
    pub(super) code: Vec<u8>,
    pub(super) salt: Vec<u8>,
}

impl Parameters {
    pub(super) fn encoded(&self) -> Vec<u8> {
        // Both are below 2^31, which is what their type has.
        let number = |value: u32| ber::integer(i32::try_from(value).unwrap_or(i32::MAX));
        let bytes = |bytes: &[u8]| ber::element(ber::OCTET_STRING, bytes);
        let parts = [
            bytes(&self.engine_id),
            number(self.boots),
            number(self.time_s),
            bytes(&self.user),
            bytes(&self.code),
            bytes(&self.salt),
        ];
        ber::element(ber::SEQUENCE, &parts.concat())
    }

    /// Reads them, and where in `content` the code stands.
    pub(super) fn read(content: &[u8]) -> Result<(Self, usize), SnmpError> {
        let mut whole = Reader::new(content);
        let mut inside = whole.inside(ber::SEQUENCE)?;
        whole.end()?;
        let engine_id = inside.content(ber::OCTET_STRING)?.to_vec();
        if engine_id.len() > MOST_ENGINE_ID {
            return Err(SnmpError::Length);
        }
        let [boots, time_s] = [inside.integer()?, inside.integer()?]
            .map(|number| u32::try_from(number).map_err(|_| SnmpError::Number));
        let user = inside.content(ber::OCTET_STRING)?.to_vec();
        let code = inside.content(ber::OCTET_STRING)?;
        let after_code = inside.rest().len();
        let salt = inside.content(ber::OCTET_STRING)?.to_vec();
        inside.end()?;
        // The sequence ends with the content, so that its end is where all of that is counted from.
        let at = content.len().checked_sub(after_code + code.len());
        let read = Self {
            engine_id,
            boots: boots?,
            time_s: time_s?,
            user,
            code: code.to_vec(),
            salt,
        };
        Ok((read, at.ok_or(SnmpError::Length)?))
    }
}

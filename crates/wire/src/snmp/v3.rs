//! Messages of version 3 (RFC 3412, section 6), secured as RFC 3414 has it.

use super::SnmpError;
use super::ber::{self, Reader};
use super::message::opened;
use super::pdu::Pdu;
use super::usm::privacy::Turn;
use super::usm::{Keys, MODEL, Parameters};

/// The number of version 3.
pub(super) const V3: i32 = 3;

const AUTHENTICATED: u8 = 1;
const ENCRYPTED: u8 = 2;
/// Asks for a report where it cannot be answered.
const REPORTABLE: u8 = 4;

/// The longest answer that is taken, in bytes.
const MOST_ANSWER: i32 = super::MAX_MESSAGE_BYTES as i32;

/// The PDU, and of which engine and context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scoped {
    engine_id: Vec<u8>,
    pdu: Pdu,
}

impl Scoped {
    fn encoded(&self) -> Vec<u8> {
        let engine = ber::element(ber::OCTET_STRING, &self.engine_id);
        let context = ber::element(ber::OCTET_STRING, &[]);
        ber::constructed(ber::SEQUENCE, &[&engine, &context, &self.pdu.encoded()])
    }

    /// Reads the element; what follows it is what a cipher filled its last block with, and left out.
    fn read(bytes: &[u8]) -> Result<Pdu, SnmpError> {
        let mut inside = Reader::new(bytes).inside(ber::SEQUENCE)?;
        inside.content(ber::OCTET_STRING)?;
        inside.content(ber::OCTET_STRING)?;
        Pdu::read(inside)
    }
}

/// A question of version 3, secured by as many keys as there are.
pub(super) fn encoded(
    message_id: i32,
    mut parameters: Parameters,
    keys: Option<&Keys>,
    salt: u64,
    pdu: &Pdu,
) -> Option<Vec<u8>> {
    let authentication = keys.and_then(|keys| keys.authentication.as_ref());
    let privacy = keys.and_then(|keys| keys.privacy.as_ref());
    let scoped = Scoped {
        engine_id: parameters.engine_id.clone(),
        pdu: pdu.clone(),
    };
    let mut flags = REPORTABLE;
    let mut data = scoped.encoded();
    if let Some((by, key)) = privacy {
        flags |= ENCRYPTED;
        let salt = salt.to_be_bytes();
        let with = (parameters.boots, parameters.time_s, salt);
        let encrypted = by.apply(Turn::Encrypt, key, with, &data)?;
        data = ber::element(ber::OCTET_STRING, &encrypted);
        parameters.salt = salt.to_vec();
    }
    if let Some((by, _)) = authentication {
        flags |= AUTHENTICATED;
        parameters.code = vec![0; by.code_bytes()];
    }
    let header = [
        ber::integer(message_id),
        ber::integer(MOST_ANSWER),
        ber::element(ber::OCTET_STRING, &[flags]),
        ber::integer(MODEL),
    ];
    let header = ber::element(ber::SEQUENCE, &header.concat());
    let whole = |parameters: &Parameters| {
        let parameters = ber::element(ber::OCTET_STRING, &parameters.encoded());
        let parts = [ber::integer(V3), header.clone(), parameters, data.clone()];
        ber::element(ber::SEQUENCE, &parts.concat())
    };
    if let Some((by, key)) = authentication {
        parameters.code = by.code(key, &whole(&parameters));
    }
    Some(whole(&parameters))
}

/// A message of version 3 that came, before anything of it is believed.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) message_id: i32,
    flags: u8,
    pub(super) parameters: Parameters,
    /// The whole message, with zeros in the place of its code.
    signed: Vec<u8>,
    data: &'a [u8],
}

impl<'a> Incoming<'a> {
    pub(super) fn read(datagram: &'a [u8]) -> Result<Self, SnmpError> {
        let mut inside = opened(datagram, V3)?;
        let mut header = inside.inside(ber::SEQUENCE)?;
        let message_id = header.integer()?;
        header.integer()?;
        let [flags] = header.content(ber::OCTET_STRING)? else {
            return Err(SnmpError::Length);
        };
        if header.integer()? != MODEL {
            return Err(SnmpError::Number);
        }
        header.end()?;
        let secured = inside.content(ber::OCTET_STRING)?;
        let data = inside.rest();
        let (parameters, code_at) = Parameters::read(secured)?;
        // The datagram ends with the message, so that places are counted from its end.
        let code_at = datagram.len() - data.len() - secured.len() + code_at;
        let mut signed = datagram.to_vec();
        let code = signed.get_mut(code_at..code_at + parameters.code.len());
        code.ok_or(SnmpError::Length)?.fill(0);
        Ok(Self {
            message_id,
            flags: *flags,
            parameters,
            signed,
            data,
        })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.flags & ENCRYPTED != 0
    }

    pub(super) fn says_authentic(&self) -> bool {
        self.flags & AUTHENTICATED != 0
    }

    /// Whether its code is by this user's key.
    pub(super) fn is_authentic(&self, keys: &Keys) -> bool {
        let Some((by, key)) = &keys.authentication else {
            return false;
        };
        self.says_authentic() && by.verifies(key, &self.signed, &self.parameters.code)
    }

    /// What it says, decrypted where it is encrypted and there is a key; `None` where it cannot be.
    pub(super) fn pdu(&self, keys: Option<&Keys>) -> Option<Result<Pdu, SnmpError>> {
        if !self.is_encrypted() {
            return Some(Scoped::read(self.data));
        }
        let (by, key) = keys?.privacy.as_ref()?;
        let mut reader = Reader::new(self.data);
        let encrypted = match reader.content(ber::OCTET_STRING) {
            Ok(encrypted) => encrypted,
            Err(why) => return Some(Err(why)),
        };
        let salt = self.parameters.salt.as_slice().try_into().ok()?;
        let with = (self.parameters.boots, self.parameters.time_s, salt);
        let plain = by.apply(Turn::Decrypt, key, with, encrypted)?;
        Some(Scoped::read(&plain))
    }
}

//! Messages of version 2c: a community, which is a password in clear text, and a PDU (RFC 1901, section 3).

use super::SnmpError;
use super::ber::{self, Reader};
use super::pdu::Pdu;

/// The number of version 2c.
pub const V2C: i32 = 1;

/// A message of version 2c.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub community: Vec<u8>,
    pub pdu: Pdu,
}

impl Message {
    pub fn encoded(&self) -> Vec<u8> {
        let community = ber::element(ber::OCTET_STRING, &self.community);
        let parts = [ber::integer(V2C), community, self.pdu.encoded()];
        ber::element(ber::SEQUENCE, &parts.concat())
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// When it is no message of this version, or one that is not read here.
    pub fn read(datagram: &[u8]) -> Result<Self, SnmpError> {
        let mut inside = opened(datagram, V2C)?;
        let community = inside.content(ber::OCTET_STRING)?.to_vec();
        Ok(Self {
            community,
            pdu: Pdu::read(inside)?,
        })
    }
}

/// What follows the version in a message of this version.
pub(super) fn opened(datagram: &[u8], wanted: i32) -> Result<Reader<'_>, SnmpError> {
    let mut whole = Reader::new(datagram);
    let mut inside = whole.inside(ber::SEQUENCE)?;
    whole.end()?;
    match inside.integer()? {
        version if version == wanted => Ok(inside),
        other => Err(SnmpError::Version(other)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::snmp::pdu::Kind;
    use crate::snmp::pdu::tests::any_pdu;

    #[test]
    fn bytes_are_those_of_other_managers() {
        // What net-snmp's snmpget -v2c -c public sends for sysName.0, with its request id.
        let oid = "1.3.6.1.2.1.1.5.0".parse().unwrap();
        let message = Message {
            community: b"public".to_vec(),
            pdu: Pdu::question(Kind::Get, 0x1234_5678, [oid]),
        };
        let expected = [
            0x30, 0x29, 0x02, 0x01, 0x01, 0x04, 0x06, b'p', b'u', b'b', b'l', b'i', b'c', 0xa0,
            0x1c, 0x02, 0x04, 0x12, 0x34, 0x56, 0x78, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00, 0x30,
            0x0e, 0x30, 0x0c, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x02, 0x01, 0x01, 0x05, 0x00, 0x05,
            0x00,
        ];
        assert_eq!(message.encoded(), expected);
    }

    #[test]
    fn another_version_is_named() {
        let why = Message::read(&[0x30, 3, 2, 1, 0]).unwrap_err();
        assert_eq!(why.to_string(), "it is of SNMP version 1");
        assert_eq!(
            Message::read(&[0x30, 3, 2, 1, 3]),
            Err(SnmpError::Version(3))
        );
    }

    proptest! {
        #[test]
        fn they_come_back(community in proptest::collection::vec(any::<u8>(), 0..40), pdu in any_pdu()) {
            let message = Message { community, pdu };
            prop_assert_eq!(Message::read(&message.encoded()), Ok(message));
        }

        #[test]
        fn any_bytes_are_one_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::read(&bytes);
        }

        /// Bytes that are nearly a message.
        #[test]
        fn a_message_with_an_error_is_survived(pdu in any_pdu(), at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
            let mut bytes = Message { community: b"public".to_vec(), pdu }.encoded();
            let place = at.index(bytes.len());
            if let Some(place) = bytes.get_mut(place) {
                *place = byte;
            }
            let _ = Message::read(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(Message::read(&bytes).is_err());
        }
    }
}

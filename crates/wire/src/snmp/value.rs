//! The values that objects have: the types of SMIv2 (RFC 2578, section 7.1), and what stands in for one that is not there
//! (RFC 3416, section 3).

use std::net::Ipv4Addr;

use super::SnmpError;
use super::ber::{self, Reader};
use super::oid::Oid;

const NULL: u8 = 0x05;
const OBJECT_IDENTIFIER: u8 = 0x06;
const IP_ADDRESS: u8 = 0x40;
const COUNTER32: u8 = 0x41;
/// Unsigned32 is written alike.
const GAUGE32: u8 = 0x42;
const TIME_TICKS: u8 = 0x43;
const OPAQUE: u8 = 0x44;
const COUNTER64: u8 = 0x46;
const NO_SUCH_OBJECT: u8 = 0x80;
const NO_SUCH_INSTANCE: u8 = 0x81;
const END_OF_MIB_VIEW: u8 = 0x82;

/// The value of an object, or what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Integer(i32),
    Bytes(Vec<u8>),
    Oid(Oid),
    /// What questions have in the place of a value.
    Null,
    IpAddress(Ipv4Addr),
    Counter32(u32),
    /// An Unsigned32 is written alike.
    Gauge32(u32),
    /// Hundredths of a second.
    TimeTicks(u32),
    Opaque(Vec<u8>),
    Counter64(u64),
    /// The agent does not know the object.
    NoSuchObject,
    /// The agent knows the object, and has none of this index.
    NoSuchInstance,
    /// A walk is at its end.
    EndOfMibView,
}

impl Value {
    /// Whether the agent has it.
    pub fn is_there(&self) -> bool {
        !matches!(
            self,
            Self::Null | Self::NoSuchObject | Self::NoSuchInstance | Self::EndOfMibView
        )
    }

    /// Its type in the words of SMIv2.
    pub fn type_words(&self) -> &'static str {
        match self {
            Self::Integer(_) => "INTEGER",
            Self::Bytes(_) => "OCTET STRING",
            Self::Oid(_) => "OBJECT IDENTIFIER",
            Self::Null => "NULL",
            Self::IpAddress(_) => "IpAddress",
            Self::Counter32(_) => "Counter32",
            Self::Gauge32(_) => "Gauge32",
            Self::TimeTicks(_) => "TimeTicks",
            Self::Opaque(_) => "Opaque",
            Self::Counter64(_) => "Counter64",
            Self::NoSuchObject => "noSuchObject",
            Self::NoSuchInstance => "noSuchInstance",
            Self::EndOfMibView => "endOfMibView",
        }
    }

    pub(super) fn encoded(&self) -> Vec<u8> {
        match self {
            Self::Integer(value) => ber::integer(*value),
            Self::Bytes(bytes) => ber::element(ber::OCTET_STRING, bytes),
            Self::Oid(oid) => ber::element(OBJECT_IDENTIFIER, &oid.bytes()),
            Self::Null => ber::element(NULL, &[]),
            Self::IpAddress(address) => ber::element(IP_ADDRESS, &address.octets()),
            Self::Counter32(value) => ber::unsigned_element(COUNTER32, (*value).into()),
            Self::Gauge32(value) => ber::unsigned_element(GAUGE32, (*value).into()),
            Self::TimeTicks(value) => ber::unsigned_element(TIME_TICKS, (*value).into()),
            Self::Opaque(bytes) => ber::element(OPAQUE, bytes),
            Self::Counter64(value) => ber::unsigned_element(COUNTER64, *value),
            Self::NoSuchObject => ber::element(NO_SUCH_OBJECT, &[]),
            Self::NoSuchInstance => ber::element(NO_SUCH_INSTANCE, &[]),
            Self::EndOfMibView => ber::element(END_OF_MIB_VIEW, &[]),
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, SnmpError> {
        let (tag, content) = reader.element()?;
        let empty = |value| match content.is_empty() {
            true => Ok(value),
            false => Err(SnmpError::Length),
        };
        Ok(match tag {
            ber::INTEGER => Self::Integer(ber::signed(content)?),
            ber::OCTET_STRING => Self::Bytes(content.to_vec()),
            OBJECT_IDENTIFIER => Self::Oid(Oid::read(content)?),
            IP_ADDRESS => match <[u8; 4]>::try_from(content) {
                Ok(octets) => Self::IpAddress(octets.into()),
                Err(_) => return Err(SnmpError::Length),
            },
            COUNTER32 => Self::Counter32(unsigned32(content)?),
            GAUGE32 => Self::Gauge32(unsigned32(content)?),
            TIME_TICKS => Self::TimeTicks(unsigned32(content)?),
            OPAQUE => Self::Opaque(content.to_vec()),
            COUNTER64 => Self::Counter64(ber::unsigned(content, u64::MAX)?),
            NULL => empty(Self::Null)?,
            NO_SUCH_OBJECT => empty(Self::NoSuchObject)?,
            NO_SUCH_INSTANCE => empty(Self::NoSuchInstance)?,
            END_OF_MIB_VIEW => empty(Self::EndOfMibView)?,
            other => return Err(SnmpError::Type(other)),
        })
    }
}

fn unsigned32(content: &[u8]) -> Result<u32, SnmpError> {
    let value = ber::unsigned(content, u32::MAX.into())?;
    u32::try_from(value).map_err(|_| SnmpError::Number)
}

/// An object and its value, or in a question its place.
pub type Binding = (Oid, Value);

pub(super) fn binding_encoded((oid, value): &Binding) -> Vec<u8> {
    let name = ber::element(OBJECT_IDENTIFIER, &oid.bytes());
    ber::constructed(ber::SEQUENCE, &[&name, &value.encoded()])
}

pub(super) fn binding_read(list: &mut Reader<'_>) -> Result<Binding, SnmpError> {
    let mut pair = list.inside(ber::SEQUENCE)?;
    let oid = Oid::read(pair.content(OBJECT_IDENTIFIER)?)?;
    let value = Value::read(&mut pair)?;
    pair.end()?;
    Ok((oid, value))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::snmp::oid::tests::any_oid;

    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
        prop_oneof![
            any::<i32>().prop_map(Value::Integer),
            bytes().prop_map(Value::Bytes),
            any_oid().prop_map(Value::Oid),
            Just(Value::Null),
            any::<u32>().prop_map(|bits| Value::IpAddress(bits.into())),
            any::<u32>().prop_map(Value::Counter32),
            any::<u32>().prop_map(Value::Gauge32),
            any::<u32>().prop_map(Value::TimeTicks),
            bytes().prop_map(Value::Opaque),
            any::<u64>().prop_map(Value::Counter64),
            Just(Value::NoSuchObject),
            Just(Value::NoSuchInstance),
            Just(Value::EndOfMibView),
        ]
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for (bytes, why) in [
            (&[0x30, 0][..], SnmpError::Type(0x30)),
            (&[0x47, 1, 1], SnmpError::Type(0x47)),
            (&[0x40, 3, 1, 2, 3], SnmpError::Length),
            (&[0x80, 1, 0], SnmpError::Length),
            (&[0x43, 5, 1, 0, 0, 0, 0], SnmpError::Number),
            (&[0x02, 0], SnmpError::Length),
        ] {
            assert_eq!(Value::read(&mut Reader::new(bytes)), Err(why), "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn they_come_back(value in any_value()) {
            let bytes = value.encoded();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(Value::read(&mut reader), Ok(value));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn any_bytes_are_one_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Value::read(&mut Reader::new(&bytes));
        }
    }
}

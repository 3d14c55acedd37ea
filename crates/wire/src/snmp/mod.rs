//! SNMP as a manager that only reads speaks it: versions 2c (RFC 3416 within the messages of RFC 1901) and 3 with the
//! user-based security model (RFC 3412, RFC 3414). Bytes are elements (`ber`), elements are [`value`]s and [`oid`]s, those
//! a [`pdu`], and that stands in a [`message`] or, secured by [`usm`], in one of version 3. A [`session`] asks an agent and judges
//! what comes back.
//!
//! Nothing is set at an agent, and traps are not read.

mod ber;
pub mod message;
pub mod oid;
pub mod pdu;
pub mod session;
pub mod usm;
mod v3;
pub mod value;

/// The port that agents listen at (RFC 3430 and IANA).
pub const PORT: u16 = 161;

/// The longest message in a datagram: what IPv4 and UDP leave of 65,535 bytes.
pub const MAX_MESSAGE_BYTES: usize = 65_507;

/// Why bytes are no message of SNMP, or one that is not read here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnmpError {
    #[error("it ends within an element")]
    CutShort,
    #[error("bytes follow where it should end")]
    TooLong,
    #[error("a length is not written as SNMP has it")]
    Length,
    #[error("an element has the tag {found:#04x} where {wanted:#04x} should be")]
    Tag { found: u8, wanted: u8 },
    #[error("a value has the tag {0:#04x}, which SNMP does not have")]
    Type(u8),
    #[error("a number is larger than its type")]
    Number,
    #[error("an object identifier is not written as SNMP has it")]
    Oid,
    #[error("it is of SNMP version {}", version_words(*.0))]
    Version(i32),
    #[error("it is a message of type {0:#04x}, which is no answer")]
    Kind(u8),
}

/// A version as people name it, by its number in messages.
fn version_words(number: i32) -> String {
    match number {
        0 => "1".to_owned(),
        1 => "2c".to_owned(),
        3 => "3".to_owned(),
        other => format!("number {other}, which is not known"),
    }
}

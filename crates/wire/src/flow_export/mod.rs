//! Reports of flows as routers and switches export them: NetFlow version 5 (`netflow5`), NetFlow version 9 (RFC 3954,
//! `netflow9`), IPFIX (RFC 7011 and RFC 7012, `ipfix`) and sFlow version 5 (`sflow`). What they all come to is a
//! [`record`]. An [`exporter`] keeps what the messages of one sender need of those before: templates, sampling rates, sequence
//! numbers.
//!
//! Nothing is answered, and whatever comes in takes a bounded memory.

mod bytes;
pub mod clock;
pub mod domain;
mod element;
pub mod exporter;
mod held;
mod ipfix;
mod netflow5;
mod netflow9;
pub mod record;
mod sequence;
mod sets;
mod sflow;
pub mod state;
mod template;

/// The ports that exporters send to where nothing else is set: 2055 by custom for NetFlow, 4739 of IPFIX and 6343 of sFlow by IANA.
pub const NETFLOW_PORT: u16 = 2055;
pub const IPFIX_PORT: u16 = 4739;
pub const SFLOW_PORT: u16 = 6343;

/// The longest message in a datagram: what IPv4 and UDP leave of 65,535 bytes.
pub const MAX_MESSAGE_BYTES: usize = 65_507;

/// The protocols of export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    NetFlow5,
    NetFlow9,
    Ipfix,
    Sflow5,
}

impl Protocol {
    /// Its name, as people write it.
    pub fn words(self) -> &'static str {
        match self {
            Self::NetFlow5 => "NetFlow v5",
            Self::NetFlow9 => "NetFlow v9",
            Self::Ipfix => "IPFIX",
            Self::Sflow5 => "sFlow v5",
        }
    }

    /// What its sequence numbers count, in words.
    pub fn counts(self) -> &'static str {
        match self {
            Self::NetFlow5 => "flows",
            Self::NetFlow9 | Self::Sflow5 => "datagrams",
            Self::Ipfix => "records",
        }
    }
}

/// Why bytes are no message of a protocol of export, or not all of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlowExportError {
    #[error("it ends within its header")]
    Header,
    #[error("it is of version {0}, which is none of NetFlow 5 and 9, IPFIX and sFlow 5")]
    Version(u32),
    #[error("it ends before the {0} that it announces")]
    CutShort(&'static str),
    #[error("a length in it is not possible")]
    Length,
}

//! What a filter says, as a tree.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::bpf::Width;

/// What holds for a packet or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Protocol(Protocol),
    Address {
        protocol: Option<Protocol>,
        direction: Direction,
        network: Network,
    },
    /// Ports of a transport, or of any of TCP, UDP and SCTP; first and last.
    Ports {
        transport: Option<Protocol>,
        direction: Direction,
        ports: [u16; 2],
    },
    /// A number of what lies in IP: in either version, in `ip`, or in `ip6`.
    InIp {
        within: Option<Protocol>,
        number: u32,
    },
    EtherType(u32),
    Station {
        direction: Direction,
        mac: [u8; 6],
        at: usize,
    },
    Vlan {
        id: Option<u32>,
        at: usize,
    },
    Relation(Box<Relation>),
}

/// A comparison of two numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) left: Arithmetic,
    pub(super) comparison: Comparison,
    pub(super) right: Arithmetic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

/// A number of 32 bits that a packet has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Number(u32),
    /// The packet's length before the capture cut it.
    Length,
    Field {
        protocol: Protocol,
        offset: Box<Arithmetic>,
        width: Width,
    },
    Calculation {
        /// The code of the instruction.
        operation: u16,
        left: Box<Arithmetic>,
        right: Box<Arithmetic>,
    },
}

/// Protocols that the language has words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Link,
    Ip,
    Ip6,
    Arp,
    Rarp,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmp6,
    Igmp,
}

impl Protocol {
    /// The word of the language.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Link => "ether",
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Arp => "arp",
            Self::Rarp => "rarp",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
            Self::Icmp => "icmp",
            Self::Icmp6 => "icmp6",
            Self::Igmp => "igmp",
        }
    }

    /// What a frame's EtherType is for it (IEEE 802 Numbers of IANA).
    pub(super) fn ether_type(self) -> Option<u32> {
        match self {
            Self::Ip => Some(0x0800),
            Self::Arp => Some(0x0806),
            Self::Rarp => Some(0x8035),
            Self::Ip6 => Some(0x86dd),
            _ => None,
        }
    }

    /// Its number in IP headers (Protocol Numbers of IANA).
    pub(super) fn number_in_ip(self) -> Option<u32> {
        match self {
            Self::Icmp => Some(1),
            Self::Igmp => Some(2),
            Self::Tcp => Some(6),
            Self::Udp => Some(17),
            Self::Icmp6 => Some(58),
            Self::Sctp => Some(132),
            _ => None,
        }
    }
}

/// Which of a packet's two addresses or ports is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Direction {
    Source,
    Destination,
    #[default]
    Either,
    Both,
}

/// Addresses that begin alike; a host has all bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    V4 { address: Ipv4Addr, mask: u32 },
    V6 { address: Ipv6Addr, mask: u128 },
}

//! By what flows are summed up.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plumb_wire::flow_export::record::FlowRecord;
use plumb_wire::ip::{ICMP, ICMPV6, TCP, UDP};
use serde::Serialize;

/// Prefixes in place of hosts, in bits: what a site usually has.
const V4_BITS: u8 = 24;
const V6_BITS: u8 = 48;

/// Ports from here on are of no service, but of clients (RFC 6335, section 6).
const LEAST_DYNAMIC: u16 = 49_152;

/// What flows may have in common. The database has their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    Total = 0,
    Source = 1,
    Destination = 2,
    SourceAs = 3,
    DestinationAs = 4,
    Application = 5,
    Dscp = 6,
    InInterface = 7,
    OutInterface = 8,
}

impl Dimension {
    pub const ALL: [Self; 9] = [
        Self::Total,
        Self::Source,
        Self::Destination,
        Self::SourceAs,
        Self::DestinationAs,
        Self::Application,
        Self::Dscp,
        Self::InInterface,
        Self::OutInterface,
    ];

    /// Its name in addresses and documents.
    pub fn word(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::SourceAs => "source-as",
            Self::DestinationAs => "destination-as",
            Self::Application => "application",
            Self::Dscp => "dscp",
            Self::InInterface => "in-interface",
            Self::OutInterface => "out-interface",
        }
    }

    /// Its name for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Total => "all",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::SourceAs => "source AS",
            Self::DestinationAs => "destination AS",
            Self::Application => "application",
            Self::Dscp => "DSCP",
            Self::InInterface => "interface in",
            Self::OutInterface => "interface out",
        }
    }

    /// Its number in the database.
    pub(crate) fn number(self) -> i64 {
        self as i64
    }

    /// What a flow of an exporter has of it.
    pub(crate) fn key(self, exporter: IpAddr, flow: &FlowRecord, hosts: bool) -> Key {
        let prefix = |address: Option<IpAddr>| Some(network(address?, hosts));
        // Exporters write zero where they do not know it.
        let interface = |number: Option<u32>| match number? {
            0 => None,
            number => Some(Key::Interface(exporter, number)),
        };
        let found = match self {
            Self::Total => Some(Key::All),
            Self::Source => prefix(flow.source),
            Self::Destination => prefix(flow.destination),
            Self::SourceAs => flow.source_as.map(Key::As),
            Self::DestinationAs => flow.destination_as.map(Key::As),
            Self::Application => flow.protocol.map(|protocol| {
                Key::Application(protocol, service(flow.source_port, flow.destination_port))
            }),
            Self::Dscp => flow.dscp().map(Key::Dscp),
            Self::InInterface => interface(flow.in_interface),
            Self::OutInterface => interface(flow.out_interface),
        };
        found.unwrap_or(Key::Unknown)
    }
}

/// What flows of one sum have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    All,
    /// The exporter does not say.
    Unknown,
    Host(IpAddr),
    V4([u8; 3]),
    V6([u8; 6]),
    As(u32),
    Dscp(u8),
    /// A protocol of IP, and the port of the service, or zero.
    Application(u8, u16),
    /// An exporter's interface, by its number.
    Interface(IpAddr, u32),
}

/// Most keys are one number, which is hashed at once.
impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let kind = |kind: u64| kind << 56;
        let address = |address: &IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let wide = |hasher: &mut H, number: u128| {
            hasher.write_u64((number >> 64) as u64);
            hasher.write_u64(number as u64);
        };
        match self {
            Self::All => hasher.write_u64(kind(0)),
            Self::Unknown => hasher.write_u64(kind(1)),
            Self::Host(host) => wide(hasher, address(host)),
            Self::V4([a, b, c]) => {
                hasher.write_u64(kind(2) | u64::from(u32::from_be_bytes([0, *a, *b, *c])));
            }
            Self::V6([a, b, c, d, e, f]) => {
                let prefix = u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f]);
                hasher.write_u64(kind(3) | prefix);
            }
            Self::As(number) => hasher.write_u64(kind(4) | u64::from(*number)),
            Self::Dscp(value) => hasher.write_u64(kind(5) | u64::from(*value)),
            Self::Application(protocol, port) => {
                hasher.write_u64(kind(6) | u64::from(*protocol) << 16 | u64::from(*port));
            }
            Self::Interface(exporter, number) => {
                wide(hasher, address(exporter));
                hasher.write_u64(kind(7) | u64::from(*number));
            }
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::All => f.write_str("all"),
            Self::Unknown => f.write_str("unknown"),
            Self::Host(address) => write!(f, "{address}"),
            Self::V4([a, b, c]) => write!(f, "{}/{V4_BITS}", Ipv4Addr::new(a, b, c, 0)),
            Self::V6([a, b, c, d, e, g]) => {
                let [x, y, z] = [[a, b], [c, d], [e, g]].map(u16::from_be_bytes);
                write!(f, "{}/{V6_BITS}", Ipv6Addr::new(x, y, z, 0, 0, 0, 0, 0))
            }
            Self::As(0) => f.write_str("unknown"),
            Self::As(number) => write!(f, "AS{number}"),
            Self::Dscp(value) => write!(f, "{value}"),
            Self::Application(protocol, port) => {
                match protocol {
                    TCP => f.write_str("tcp")?,
                    UDP => f.write_str("udp")?,
                    ICMP => f.write_str("icmp")?,
                    ICMPV6 => f.write_str("icmpv6")?,
                    other => write!(f, "protocol {other}")?,
                }
                match port {
                    0 => Ok(()),
                    port => write!(f, "/{port}"),
                }
            }
            Self::Interface(exporter, number) => write!(f, "{exporter} interface {number}"),
        }
    }
}

/// The prefix of an address, or where hosts are wanted the address.
fn network(address: IpAddr, hosts: bool) -> Key {
    match address {
        address if hosts => Key::Host(address),
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            Key::V4([a, b, c])
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, ..] = address.octets();
            Key::V6([a, b, c, d, e, f])
        }
    }
}

/// The port of a service among both: the lower one, unless that is a client's too. Zero where there is none.
fn service(source: u16, destination: u16) -> u16 {
    let lower = match (source, destination) {
        (0, one) | (one, 0) => one,
        (one, other) => one.min(other),
    };
    match lower < LEAST_DYNAMIC {
        true => lower,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_prefixes_unless_hosts_are_wanted() {
        let exporter = Ipv4Addr::new(10, 0, 0, 1).into();
        let flow = FlowRecord {
            source: Some("192.0.2.77".parse().unwrap()),
            destination: Some("2001:db8:1:2::3".parse().unwrap()),
            protocol: Some(6),
            source_port: 50_000,
            destination_port: 443,
            traffic_class: Some(0xb8),
            source_as: Some(64_500),
            in_interface: Some(3),
            ..FlowRecord::default()
        };
        let words = |hosts| {
            let key = |one: Dimension| one.key(exporter, &flow, hosts).to_string();
            Dimension::ALL.map(key)
        };
        let prefixes = [
            "all",
            "192.0.2.0/24",
            "2001:db8:1::/48",
            "AS64500",
            "unknown",
            "tcp/443",
            "46",
            "10.0.0.1 interface 3",
            "unknown",
        ];
        assert_eq!(words(false), prefixes);
        assert_eq!(words(true)[1..3], ["192.0.2.77", "2001:db8:1:2::3"]);
    }

    #[test]
    fn the_service_is_the_lower_port() {
        for (source, destination, port) in [
            (443, 50_000, 443),
            (50_000, 53, 53),
            (50_000, 60_000, 0),
            (0, 0, 0),
            (0, 2048, 2048),
        ] {
            assert_eq!(service(source, destination), port);
        }
    }
}

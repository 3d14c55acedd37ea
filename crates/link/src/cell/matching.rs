//! Which packets a cell counts.

use plumb_wire::ip::{ICMP, ICMPV6, IpPacket, SYN, TCP, UDP};
use serde::{Deserialize, Serialize};

use crate::packet::Packet;

/// A class of packets, and a port of theirs: `"tcp_data"`, or `"tcp_data 5201"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Match {
    class: Class,
    /// The source or the destination has it; any when `None`.
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Class {
    #[default]
    Any,
    Tcp,
    TcpData,
    /// The first of a connection from either end: SYN, SYN and ACK.
    Syn,
    Udp,
    Icmp,
}

const CLASSES: [(&str, Class); 6] = [
    ("any", Class::Any),
    ("tcp", Class::Tcp),
    ("tcp_data", Class::TcpData),
    ("syn", Class::Syn),
    ("udp", Class::Udp),
    ("icmp", Class::Icmp),
];

impl Match {
    /// Whether the packet is one of these.
    pub(crate) fn matches(self, packet: &Packet) -> bool {
        if self == Self::default() {
            return true;
        }
        let Some(ip) = IpPacket::parse(&packet.data) else {
            return false;
        };
        let of_class = match self.class {
            Class::Any => true,
            Class::Tcp => ip.protocol() == TCP,
            Class::TcpData => packet.tcp_payload_bytes() > 0,
            Class::Syn => ip.tcp_flags().is_some_and(|flags| flags & SYN != 0),
            Class::Udp => ip.protocol() == UDP,
            Class::Icmp => matches!(ip.protocol(), ICMP | ICMPV6),
        };
        let of_port = |port| {
            ip.ports()
                .is_some_and(|(source, destination)| source == port || destination == port)
        };
        of_class && self.port.is_none_or(of_port)
    }
}

impl TryFrom<String> for Match {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let class = words.next().and_then(|word| {
            let known = CLASSES.iter().find(|(name, _)| *name == word);
            known.map(|(_, class)| *class)
        });
        let port = words.next().map(str::parse).transpose();
        match (class, port, words.next()) {
            (Some(class), Ok(port), None) => Ok(Self { class, port }),
            _ => Err(format!(
                "'{text}' matches no packets: write one of {}, and a port if only that counts, as in 'tcp_data 5201'",
                CLASSES.map(|(name, _)| name).join(", ")
            )),
        }
    }
}

impl From<Match> for String {
    fn from(matching: Match) -> Self {
        let class = CLASSES.iter().find(|(_, class)| *class == matching.class);
        let name = class.map_or("any", |(name, _)| name);
        match matching.port {
            None => name.to_owned(),
            Some(port) => format!("{name} {port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::{ACK, ipv6_header, tcp, udp};
    use crate::time::Time;

    fn matching(text: &str) -> Match {
        Match::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn classes_and_ports() {
        let packets = [
            udp(100, 53, 0),
            tcp(false, 0, 1448, ACK),
            tcp(true, 100, 1448, ACK),
            tcp(false, 0, 1448, ACK | SYN),
            Packet::new(ipv6_header(48, ICMPV6), Default::default(), Time::ZERO),
        ];
        // The ports of the TCP packets are 5201 and 7586.
        for (text, expected) in [
            ("any", [true, true, true, true, true]),
            ("any 53", [true, false, false, false, false]),
            ("udp", [true, false, false, false, false]),
            ("udp 9", [true, false, false, false, false]),
            ("udp 7", [false; 5]),
            ("tcp", [false, true, true, true, false]),
            ("tcp 5201", [false, true, true, true, false]),
            ("tcp_data 7586", [false, false, true, false, false]),
            ("tcp_data", [false, false, true, false, false]),
            ("syn", [false, false, false, true, false]),
            ("icmp", [false, false, false, false, true]),
        ] {
            let of = packets.each_ref().map(|p| matching(text).matches(p));
            assert_eq!(of, expected, "{text}");
            assert_eq!(String::from(matching(text)), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["", "tcpdata", "tcp 70000", "tcp 1 2"] {
            let error = Match::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("tcp_data"), "{error}");
        }
    }
}

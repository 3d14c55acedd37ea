//! Names of numbers in expressions.

use super::syntax::Protocol;

/// Names in expressions (pcap-filter(7)): offsets of fields and their values.
const NUMBERS: [(&str, u32); 41] = [
    ("tcpflags", 13),
    ("tcp-fin", 0x01),
    ("tcp-syn", 0x02),
    ("tcp-rst", 0x04),
    ("tcp-push", 0x08),
    ("tcp-ack", 0x10),
    ("tcp-urg", 0x20),
    ("tcp-ece", 0x40),
    ("tcp-cwr", 0x80),
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp-ireq", 15),
    ("icmp-ireqreply", 16),
    ("icmp-maskreq", 17),
    ("icmp-maskreply", 18),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("icmp6-destinationunreach", 1),
    ("icmp6-packettoobig", 2),
    ("icmp6-timeexceeded", 3),
    ("icmp6-parameterproblem", 4),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-multicastlistenerquery", 130),
    ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerdone", 132),
    ("icmp6-routersolicit", 133),
    ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
];

/// The number of a name in an expression.
pub(super) fn named_number(name: &str) -> Option<u32> {
    let found = NUMBERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, number)| *number)
}

/// Names of protocols of the language.
pub(super) fn protocol(name: &str) -> Option<Protocol> {
    Some(match name {
        "ether" | "link" => Protocol::Link,
        "ip" => Protocol::Ip,
        "ip6" => Protocol::Ip6,
        "arp" => Protocol::Arp,
        "rarp" => Protocol::Rarp,
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        "icmp" => Protocol::Icmp,
        "icmp6" => Protocol::Icmp6,
        "igmp" => Protocol::Igmp,
        _ => return None,
    })
}

/// The number that a name has behind `proto`, where the protocol lies in IP.
pub(super) fn in_ip(name: &str) -> Option<u32> {
    protocol(name).and_then(Protocol::number_in_ip)
}

/// The EtherType that a name has behind `ether proto`.
pub(super) fn ether_type(name: &str) -> Option<u32> {
    protocol(name).and_then(Protocol::ether_type)
}

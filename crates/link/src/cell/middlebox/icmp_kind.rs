//! Which ICMP messages a box looks at.

use plumb_wire::ip::{ICMP, ICMPV6, IpPacket};
use serde::{Deserialize, Serialize};

/// Messages of ICMP (RFC 792) and ICMPv6 (RFC 4443) that correspond to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IcmpKind {
    /// The question of ping.
    EchoRequest,
    /// The answer to ping.
    EchoReply,
    /// Destination unreachable, fragmentation needed apart.
    Unreachable,
    /// Fragmentation needed, or packet too big: path MTU discovery.
    FragNeeded,
    TimeExceeded,
    ParameterProblem,
}

impl IcmpKind {
    fn of(ip: &IpPacket<'_>) -> Option<Self> {
        Some(match (ip.protocol(), ip.icmp_type()?) {
            (ICMP, (8, _)) | (ICMPV6, (128, _)) => Self::EchoRequest,
            (ICMP, (0, _)) | (ICMPV6, (129, _)) => Self::EchoReply,
            (ICMP, (3, 4)) | (ICMPV6, (2, _)) => Self::FragNeeded,
            (ICMP, (3, _)) | (ICMPV6, (1, _)) => Self::Unreachable,
            (ICMP, (11, _)) | (ICMPV6, (3, _)) => Self::TimeExceeded,
            (ICMP, (12, _)) | (ICMPV6, (4, _)) => Self::ParameterProblem,
            _ => return None,
        })
    }
}

/// Whether a packet is ICMP of one of these kinds; without any, whether it is ICMP at all.
///
/// Of ICMPv6 only errors and echoes are: what is above is neighbour discovery, multicast and the
/// like, without which there is no link (RFC 4890 section 4.4.1).
pub(crate) fn is_selected(kinds: &[IcmpKind], packet: &[u8]) -> bool {
    let Some(ip) = IpPacket::parse(packet) else {
        return false;
    };
    if !kinds.is_empty() {
        return IcmpKind::of(&ip).is_some_and(|kind| kinds.contains(&kind));
    }
    match ip.protocol() {
        ICMP => true,
        // Later fragments have no type, and nothing that a link needs may be fragmented
        // (RFC 6980).
        ICMPV6 => ip.icmp_type().is_none_or(|(kind, _)| kind <= 129),
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::packet::Packet;
    use crate::packet::tests::{ipv4_header, ipv6_header, udp};
    use crate::time::Time;
    use plumb_wire::virtio::VirtioHeader;
    use proptest::prelude::*;

    /// An ICMP or ICMPv6 message of 84 or 104 bytes.
    pub(crate) fn icmp(v6: bool, kind: u8, code: u8) -> Packet {
        let mut data = if v6 {
            ipv6_header(104, ICMPV6)
        } else {
            ipv4_header(84, ICMP, 0)
        };
        data.extend([kind, code, 0, 0, 0x12, 0x34, 0, 1]);
        data.resize(data.len() + 56, 0);
        Packet::new(data, VirtioHeader::default(), Time::ZERO)
    }

    #[test]
    fn the_two_versions_correspond() {
        use IcmpKind::*;
        for (kind, v4, v6) in [
            (EchoRequest, (8, 0), (128, 0)),
            (EchoReply, (0, 0), (129, 0)),
            (Unreachable, (3, 1), (1, 0)),
            (FragNeeded, (3, 4), (2, 0)),
            (TimeExceeded, (11, 0), (3, 0)),
            (ParameterProblem, (12, 0), (4, 0)),
        ] {
            for packet in [icmp(false, v4.0, v4.1), icmp(true, v6.0, v6.1)] {
                assert!(is_selected(&[kind], &packet.data), "{kind:?}");
                assert!(is_selected(&[], &packet.data), "{kind:?}");
                let other = if kind == EchoReply {
                    Unreachable
                } else {
                    EchoReply
                };
                assert!(!is_selected(&[other], &packet.data), "{kind:?}");
            }
        }
    }

    #[test]
    fn neighbour_discovery_is_left_alone() {
        for kind in 130..=255 {
            assert!(!is_selected(&[], &icmp(true, kind, 0).data));
        }
        assert!(is_selected(&[], &icmp(false, 13, 0).data));
        assert!(!is_selected(&[], &udp(100, 1, 0).data));
    }

    #[test]
    fn later_fragments_are_icmp_of_no_kind() {
        let mut packet = icmp(false, 8, 0);
        packet.data[7] = 3;
        assert!(is_selected(&[], &packet.data));
        assert!(!is_selected(&[IcmpKind::EchoRequest], &packet.data));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = is_selected(&[], &bytes);
            let _ = is_selected(&[IcmpKind::FragNeeded], &bytes);
        }
    }
}

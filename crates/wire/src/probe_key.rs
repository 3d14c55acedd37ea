//! The identity of a probe packet, the same in both directions: by it the lab knows how long each probe was inside each
//! link.

use crate::ip::{IpPacket, UDP};

/// Length of a UDP header in bytes.
const UDP_HEADER: usize = 8;
// plumb's native echo datagram; `native::echo` defines it. Offsets in bytes in the UDP payload.
const ECHO_MAGIC: &[u8; 4] = b"PLMB";
const ECHO_VERSION: u8 = 1;
/// At offset 5: 3 is a probe, 4 its reply.
const ECHO_KINDS: std::ops::RangeInclusive<u8> = 3..=4;
/// Session, then the client's sequence number, four bytes each.
const ECHO_SESSION: std::ops::Range<usize> = 24..32;

/// The identity of a probe, the same for the request and its reply.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProbeKey {
    /// An ICMP or ICMPv6 echo.
    Icmp {
        /// Identifier of the echo request.
        id: u16,
        /// Sequence number of the echo request.
        seq: u16,
    },
    /// plumb's native UDP echo.
    Udp {
        /// Session of the client.
        session: u32,
        /// The client's sequence number.
        seq: u32,
    },
}

impl ProbeKey {
    /// The key of an IP packet that is a probe or a probe's reply.
    pub fn of(packet: &IpPacket<'_>) -> Option<Self> {
        if let Some((_, id, seq)) = packet.icmp_echo() {
            return Some(Self::Icmp { id, seq });
        }
        if packet.protocol() != UDP || packet.is_fragment() {
            return None;
        }
        let echo = packet.payload().get(UDP_HEADER..)?;
        let [magic @ .., version, kind] = echo.first_chunk::<6>()?;
        if magic != ECHO_MAGIC || *version != ECHO_VERSION || !ECHO_KINDS.contains(kind) {
            return None;
        }
        let [s0, s1, s2, s3, n0, n1, n2, n3] = *echo.get(ECHO_SESSION)?.first_chunk::<8>()?;
        Some(Self::Udp {
            session: u32::from_be_bytes([s0, s1, s2, s3]),
            seq: u32::from_be_bytes([n0, n1, n2, n3]),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::ip::ICMP;
    use proptest::prelude::*;

    fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let len = (20 + payload.len()) as u8;
        let mut p = vec![
            0x45, 0, 0, len, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        p.extend(payload);
        p
    }

    fn key(bytes: &[u8]) -> Option<ProbeKey> {
        ProbeKey::of(&IpPacket::parse(bytes)?)
    }

    fn echo(kind: u8) -> Vec<u8> {
        let mut udp = vec![0; 8 + 64];
        udp[8..12].copy_from_slice(b"PLMB");
        udp[12..14].copy_from_slice(&[1, kind]);
        udp[8 + 24..8 + 32].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef, 0, 0, 1, 2]);
        v4(UDP, &udp)
    }

    #[test]
    fn request_and_reply_have_one_key() {
        let udp = Some(ProbeKey::Udp {
            session: 0xdead_beef,
            seq: 0x102,
        });
        assert_eq!((key(&echo(3)), key(&echo(4))), (udp, udp));
        let icmp = Some(ProbeKey::Icmp { id: 0x1234, seq: 9 });
        assert_eq!(key(&v4(ICMP, &[8, 0, 0, 0, 0x12, 0x34, 0, 9])), icmp);
        assert_eq!(key(&v4(ICMP, &[0, 0, 0, 0, 0x12, 0x34, 0, 9])), icmp);
    }

    #[test]
    fn others_have_none() {
        assert_eq!(key(&echo(1)), None);
        assert_eq!(key(&v4(ICMP, &[3, 0, 0, 0, 0, 0, 0, 0])), None);
        let mut other = echo(3);
        other[20 + 8] = b'X';
        assert_eq!(key(&other), None);
    }

    proptest! {
        #[test]
        fn arbitrary_payloads_do_not_panic(payload in proptest::collection::vec(any::<u8>(), 0..100), protocol in 0u8..20) {
            let _ = key(&v4(protocol, &payload));
            let mut echo = echo(3);
            echo.truncate(20 + payload.len());
            let _ = key(&echo);
        }
    }
}

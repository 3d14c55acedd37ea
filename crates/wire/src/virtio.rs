//! The header that a TUN device puts before each packet when offloads are on: `struct
//! virtio_net_hdr` of linux/virtio_net.h, 10 bytes, in the host's byte order (the default of
//! TUN; TUNSETVNETLE and TUNSETVNETBE change it).

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 10;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum field holds only the pseudo-header's sum.
const NEEDS_CSUM: u8 = 1;
/// VIRTIO_NET_HDR_GSO_NONE: one ordinary packet.
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// VIRTIO_NET_HDR_GSO_ECN: the TCP header has CWR set.
const GSO_ECN: u8 = 0x80;

/// What a large packet is to be cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gso {
    #[default]
    None,
    /// TCP segments over IPv4.
    TcpV4,
    /// TCP segments over IPv6.
    TcpV6,
    /// UDP datagrams, over either.
    Udp,
}

/// The header; all zero describes an ordinary packet with a complete checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VirtioHeader {
    /// The transport checksum is partial: to complete it, sum the packet from `csum_start` and store the result at
    /// `csum_start + csum_offset`.
    pub needs_csum: bool,
    /// What the packet is to be cut into.
    pub gso: Gso,
    /// The TCP header has CWR set (RFC 3168), which belongs to the first segment only.
    pub ecn: bool,
    /// Length of the headers in bytes: a hint that the kernel does not promise to be exact.
    pub hdr_len: u16,
    /// Payload bytes of each segment or datagram but the last.
    pub gso_size: u16,
    /// Where the checksummed part of the packet starts, in bytes.
    pub csum_start: u16,
    /// Where the checksum is, in bytes after `csum_start`.
    pub csum_offset: u16,
}

/// The header is not one of those that plumb asks the kernel for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VirtioError {
    /// Fewer bytes than a header.
    #[error("a virtio-net header has 10 bytes, and {0} are left: read whole packets")]
    Short(usize),
    /// A kind of segmentation that was not offered.
    #[error(
        "unknown segmentation type {0} in a virtio-net header: offer the device only TSO4, TSO6 and TSO_ECN"
    )]
    GsoType(u8),
}

impl VirtioHeader {
    /// Reads the header that `bytes` start with.
    ///
    /// # Errors
    /// When there are too few bytes, or the segmentation is none that plumb knows.
    pub fn parse(bytes: &[u8]) -> Result<Self, VirtioError> {
        let header = bytes
            .first_chunk::<HEADER_LEN>()
            .ok_or(VirtioError::Short(bytes.len()))?;
        let [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1] = *header;
        Ok(Self {
            needs_csum: flags & NEEDS_CSUM != 0,
            gso: match gso_type & !GSO_ECN {
                GSO_NONE => Gso::None,
                GSO_TCPV4 => Gso::TcpV4,
                GSO_TCPV6 => Gso::TcpV6,
                GSO_UDP_L4 => Gso::Udp,
                other => return Err(VirtioError::GsoType(other)),
            },
            ecn: gso_type & GSO_ECN != 0,
            hdr_len: u16::from_ne_bytes([h0, h1]),
            gso_size: u16::from_ne_bytes([g0, g1]),
            csum_start: u16::from_ne_bytes([s0, s1]),
            csum_offset: u16::from_ne_bytes([o0, o1]),
        })
    }

    /// The header as the kernel reads it.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let gso = match self.gso {
            Gso::None => GSO_NONE,
            Gso::TcpV4 => GSO_TCPV4,
            Gso::TcpV6 => GSO_TCPV6,
            Gso::Udp => GSO_UDP_L4,
        };
        let [h0, h1] = self.hdr_len.to_ne_bytes();
        let [g0, g1] = self.gso_size.to_ne_bytes();
        let [s0, s1] = self.csum_start.to_ne_bytes();
        let [o0, o1] = self.csum_offset.to_ne_bytes();
        [
            if self.needs_csum { NEEDS_CSUM } else { 0 },
            if self.ecn { gso | GSO_ECN } else { gso },
            h0,
            h1,
            g0,
            g1,
            s0,
            s1,
            o0,
            o1,
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_header_of_a_large_tcp_segment() {
        let bytes = [1, 0x81, 66, 0, 0xa8, 0x05, 20, 0, 16, 0];
        let header = VirtioHeader::parse(&bytes).unwrap();
        assert_eq!(
            header,
            VirtioHeader {
                needs_csum: true,
                gso: Gso::TcpV4,
                ecn: true,
                hdr_len: 66,
                gso_size: 1448,
                csum_start: 20,
                csum_offset: 16,
            }
        );
        assert_eq!(header.to_bytes(), bytes);
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        assert_eq!(
            VirtioHeader::parse(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]),
            Err(VirtioError::GsoType(3))
        );
        assert_eq!(VirtioHeader::parse(&[0; 9]), Err(VirtioError::Short(9)));
    }

    proptest! {
        #[test]
        fn reads_back_what_it_wrote(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(header) = VirtioHeader::parse(&bytes) {
                prop_assert_eq!(VirtioHeader::parse(&header.to_bytes()), Ok(header));
            }
        }
    }
}

//! A view of an IPv4 (RFC 791) or IPv6 (RFC 8200) packet, without copying, and the one change
//! that a queue makes to it: the congestion mark (RFC 3168).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum;

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// TCP flag: the connection is being opened.
pub const SYN: u8 = 0x02;
/// TCP flag: the connection is closed from one side.
pub const FIN: u8 = 0x01;
/// TCP flag: the connection is aborted.
pub const RST: u8 = 0x04;
/// TCP flag: the acknowledgement field counts.
pub const ACK: u8 = 0x10;
/// TCP flag: congestion was seen, or in a SYN: the sender speaks ECN (RFC 3168 section 6.1).
pub const ECE: u8 = 0x40;
/// TCP flag: the congestion window was reduced, or in a SYN: the sender speaks ECN.
pub const CWR: u8 = 0x80;

/// Length of an IPv4 header without options, in bytes.
const IPV4_MIN: usize = 20;
/// Length of the fixed IPv6 header, in bytes.
const IPV6_HEADER: usize = 40;
/// Extension headers followed before giving up: RFC 8200 section 4.1 lists seven, destination
/// options twice.
const MAX_EXTENSIONS: usize = 8;

/// The ECN field (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The transport does not speak ECN.
    NotEct,
    /// ECN-capable, codepoint 01 (L4S, RFC 9331).
    Ect1,
    Ect0,
    Ce,
}

/// What makes packets belong to one flow, in one direction.
///
/// Ports are zero for fragments and for protocols without ports; an ICMP echo has its type in
/// `source_port` and its identifier in `destination_port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Protocol number, after any IPv6 extension headers.
    pub protocol: u8,
    pub source_port: u16,
    pub destination_port: u16,
}

/// A packet whose IP header is whole and consistent.
#[derive(Debug, Clone, Copy)]
pub struct IpPacket<'a> {
    bytes: &'a [u8],
    source: IpAddr,
    destination: IpAddr,
    traffic_class: u8,
    hop_limit: u8,
    protocol: u8,
    header_len: usize,
    total_len: usize,
    fragment: bool,
    first_fragment: bool,
    dont_fragment: bool,
}

impl<'a> IpPacket<'a> {
    /// Looks at the packet that `bytes` start with; `None` when its header is not whole.
    ///
    /// A packet cut short (a capture, the quotation in an ICMP error) is accepted: `total_len`
    /// then exceeds what `payload` can give.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => Self::parse_v4(bytes),
            6 => Self::parse_v6(bytes),
            _ => None,
        }
    }

    fn parse_v4(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk::<IPV4_MIN>()?;
        let [
            version_ihl,
            tos,
            l0,
            l1,
            _,
            _,
            f0,
            f1,
            ttl,
            protocol,
            _,
            _,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ] = *header;
        let header_len = usize::from(version_ihl & 0x0f) * 4;
        let total_len = usize::from(u16::from_be_bytes([l0, l1]));
        if header_len < IPV4_MIN || header_len > bytes.len() || total_len < header_len {
            return None;
        }
        let fragment = u16::from_be_bytes([f0, f1]);
        let (more, offset) = (fragment & 0x2000 != 0, fragment & 0x1fff);
        Some(Self {
            bytes,
            source: Ipv4Addr::new(s0, s1, s2, s3).into(),
            destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
            traffic_class: tos,
            hop_limit: ttl,
            protocol,
            header_len,
            total_len,
            fragment: more || offset != 0,
            first_fragment: offset == 0,
            dont_fragment: fragment & 0x4000 != 0,
        })
    }

    fn parse_v6(bytes: &'a [u8]) -> Option<Self> {
        let (header, _) = bytes.split_first_chunk::<IPV6_HEADER>()?;
        let [b0, b1, _, _, l0, l1, next, hop_limit, addresses @ ..] = *header;
        let (source, rest) = addresses.split_first_chunk::<16>()?;
        let destination = rest.first_chunk::<16>()?;
        let mut packet = Self {
            bytes,
            source: Ipv6Addr::from(*source).into(),
            destination: Ipv6Addr::from(*destination).into(),
            traffic_class: b0 << 4 | b1 >> 4,
            hop_limit,
            protocol: next,
            header_len: IPV6_HEADER,
            total_len: IPV6_HEADER + usize::from(u16::from_be_bytes([l0, l1])),
            fragment: false,
            first_fragment: true,
            dont_fragment: true,
        };
        packet.skip_extensions();
        Some(packet)
    }

    /// Moves `protocol` and `header_len` behind the extension headers (RFC 8200 section 4) that
    /// are whole; stops at the first that is not, and behind the fragment header of any but the
    /// first fragment, where the payload's middle follows.
    fn skip_extensions(&mut self) {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const DESTINATION: u8 = 60;
        for _ in 0..MAX_EXTENSIONS {
            let Some([next, length, f0, f1]) = self
                .bytes
                .get(self.header_len..)
                .and_then(|b| b.first_chunk::<4>())
            else {
                return;
            };
            let extension_len = match self.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION => 8 + usize::from(*length) * 8,
                FRAGMENT => 8,
                _ => return,
            };
            let end = self.header_len + extension_len;
            if end > self.bytes.len().min(self.total_len) {
                return;
            }
            if self.protocol == FRAGMENT {
                let field = u16::from_be_bytes([*f0, *f1]);
                let (offset, more) = (field >> 3, field & 1 != 0);
                self.fragment = more || offset != 0; // an atomic fragment (RFC 6946) is whole
                self.first_fragment = offset == 0;
            }
            self.protocol = *next;
            self.header_len = end;
            if !self.first_fragment {
                return;
            }
        }
    }

    /// 4 or 6.
    pub fn version(&self) -> u8 {
        if self.source.is_ipv4() { 4 } else { 6 }
    }

    /// Length of the IP header in bytes, with options or extension headers.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Length of the packet in bytes as its header says.
    pub fn total_len(&self) -> usize {
        self.total_len
    }

    /// Protocol number of the payload, after any IPv6 extension headers.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    pub fn source(&self) -> IpAddr {
        self.source
    }

    pub fn destination(&self) -> IpAddr {
        self.destination
    }

    /// Time to live, or hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Differentiated services codepoint (RFC 2474), 0…63.
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    pub fn ecn(&self) -> Ecn {
        match self.traffic_class & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The traffic class or type of service as one byte: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.traffic_class
    }

    /// The identification of an IPv4 packet (RFC 791 section 3.1); IPv6 has none.
    pub fn identification(&self) -> Option<u16> {
        let [i0, i1] = *self.bytes.get(4..)?.first_chunk::<2>()?;
        (self.version() == 4).then_some(u16::from_be_bytes([i0, i1]))
    }

    /// Whether this is a part of a fragmented packet.
    pub fn is_fragment(&self) -> bool {
        self.fragment
    }

    /// Whether this is a part other than the first, which has no transport header.
    pub fn is_later_fragment(&self) -> bool {
        !self.first_fragment
    }

    /// Whether routers must not cut it: always in IPv6 (RFC 8200 section 4.5).
    pub fn dont_fragment(&self) -> bool {
        self.dont_fragment
    }

    /// What follows the IP header, up to the packet's length or the end of what was captured.
    pub fn payload(&self) -> &'a [u8] {
        let end = self.total_len.min(self.bytes.len());
        self.bytes.get(self.header_len..end).unwrap_or_default()
    }

    /// Source and destination port of TCP or UDP; `None` for fragments.
    pub fn ports(&self) -> Option<(u16, u16)> {
        if self.fragment || !matches!(self.protocol, TCP | UDP) {
            return None;
        }
        let [s0, s1, d0, d1] = *self.payload().first_chunk::<4>()?;
        Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])))
    }

    /// Length of the TCP header in bytes; `None` when this is not TCP or the header is cut.
    pub fn tcp_header_len(&self) -> Option<usize> {
        if self.fragment || self.protocol != TCP {
            return None;
        }
        let offset = usize::from(self.payload().get(12)? >> 4) * 4;
        (offset >= 20 && offset <= self.payload().len()).then_some(offset)
    }

    /// The TCP flags (RFC 9293 section 3.1); `None` when this is not TCP or the header is cut.
    pub fn tcp_flags(&self) -> Option<u8> {
        self.tcp_header_len()?;
        self.payload().get(13).copied()
    }

    /// Type and code of an ICMP or ICMPv6 message; `None` for anything else, and for fragments
    /// other than the first.
    pub fn icmp_type(&self) -> Option<(u8, u8)> {
        if !self.first_fragment || !matches!(self.protocol, ICMP | ICMPV6) {
            return None;
        }
        let [kind, code] = *self.payload().first_chunk::<2>()?;
        Some((kind, code))
    }

    /// Whether it is an ICMP or ICMPv6 message that reports an error or redirects, about which no error
    /// may be sent (RFC 1122 section 3.2.2, RFC 4443 section 2.4 e).
    pub fn is_icmp_error(&self) -> bool {
        match (self.protocol, self.icmp_type()) {
            // Unreachable, source quench, redirect, time exceeded, parameter problem.
            (ICMP, Some((kind, _))) => matches!(kind, 3 | 4 | 5 | 11 | 12),
            (ICMPV6, Some((kind, _))) => kind < 128 || kind == 137,
            _ => false,
        }
    }

    /// An ICMP or ICMPv6 echo's `(type, identifier, sequence)`.
    pub fn icmp_echo(&self) -> Option<(u8, u16, u16)> {
        if self.fragment {
            return None;
        }
        let [kind, _, _, _, i0, i1, s0, s1] = *self.payload().first_chunk::<8>()?;
        // Echo reply and request: RFC 792, RFC 4443 section 4.
        matches!((self.protocol, kind), (ICMP, 0 | 8) | (ICMPV6, 128 | 129)).then(|| {
            (
                kind,
                u16::from_be_bytes([i0, i1]),
                u16::from_be_bytes([s0, s1]),
            )
        })
    }

    /// The flow that the packet belongs to.
    pub fn flow(&self) -> FlowKey {
        let (source_port, destination_port) = self
            .ports()
            .or_else(|| self.icmp_echo().map(|(kind, id, _)| (u16::from(kind), id)))
            .unwrap_or_default();
        FlowKey {
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            source_port,
            destination_port,
        }
    }
}

/// Marks the packet with congestion experienced when its transport speaks ECN, and puts the
/// IPv4 header checksum right; `true` when the packet carries the mark afterwards.
pub fn set_ce(packet: &mut [u8]) -> bool {
    match packet {
        [b0, b1, rest @ ..] if *b0 >> 4 == 4 => {
            let old = u16::from_be_bytes([*b0, *b1]);
            if old & 3 == 0 {
                return false;
            }
            // Bytes 10 and 11 of the packet.
            let Some([c0, c1]) = rest.get_mut(8..10) else {
                return false;
            };
            let new = old | 3;
            let sum = checksum::updated(u16::from_be_bytes([*c0, *c1]), old, new);
            [*c0, *c1] = sum.to_be_bytes();
            [*b0, *b1] = new.to_be_bytes();
            true
        }
        [b0, b1, ..] if *b0 >> 4 == 6 => {
            let ect = *b1 & 0x30 != 0;
            if ect {
                *b1 |= 0x30;
            }
            ect
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;

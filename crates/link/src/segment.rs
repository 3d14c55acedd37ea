//! Cutting a large TCP segment into smaller ones, as the kernel's tcp_gso_segment() does
//! (net/ipv4/tcp_offload.c), and a train of UDP datagrams into them (net/ipv4/udp_offload.c).

use plumb_wire::checksum::{self, Sum};
use plumb_wire::ip::{IpPacket, TCP, UDP};
use plumb_wire::virtio::{Gso, VirtioHeader};

use crate::packet::{Layout, Packet, Parts, Wire};

/// Where the TCP header has its fields, in bytes (RFC 9293 section 3.1).
const TCP_SEQUENCE: usize = 4;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// Where the UDP header has its fields, and its length, in bytes (RFC 768).
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;
const UDP_HEADER: usize = 8;
/// Where the IPv4 header has its fields, in bytes (RFC 791 section 3.1).
const IPV4_LENGTH: usize = 2;
const IPV4_ID: usize = 4;
const IPV4_CHECKSUM: usize = 10;
/// Where the IPv6 header has the length of what follows its 40 bytes (RFC 8200 section 3).
const IPV6_LENGTH: usize = 4;
const IPV6_HEADER: usize = 40;

/// How a large TCP segment passes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Crossing {
    /// In pieces of several segments, or whole.
    Whole,
    /// One packet after the other.
    Split,
}

/// Cuts a packet into pieces of at most `segments` segments each (at least one); a packet that
/// is small enough comes out untouched.
pub fn split(packet: Packet, segments: u32) -> impl Iterator<Item = Packet> {
    Split {
        next: 0,
        segments: segments.max(1),
        packet: Some(packet),
    }
}

struct Split {
    packet: Option<Packet>,
    /// The first segment of the next piece.
    next: u32,
    segments: u32,
}

impl Iterator for Split {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let packet = self.packet.as_ref()?;
        if packet.segments() <= self.segments {
            return self.packet.take();
        }
        let piece = piece(packet, self.next, self.segments);
        self.next += self.segments;
        if self.next >= packet.segments() {
            self.packet = None;
        }
        Some(piece)
    }
}

/// A new packet of `count` segments of `packet` from the segment number `first` on; fewer when
/// the packet ends before.
///
/// Lengths, identification, sequence number and checksums fit the piece; FIN and PSH are only
/// on the last segment, CWR only on the first.
pub(crate) fn piece(packet: &Packet, first: u32, count: u32) -> Packet {
    let whole = packet.layout;
    let headers = usize::from(whole.headers);
    let end = first.saturating_add(count).min(whole.segments);
    let payload_start = headers + (first * whole.segment_payload) as usize;
    let payload_end = headers + (end * whole.segment_payload).min(whole.tcp_payload) as usize;
    let payload = packet
        .data
        .get(payload_start..payload_end)
        .unwrap_or_default();

    let mut data = Vec::with_capacity(headers + payload.len());
    data.extend_from_slice(packet.data.get(..headers).unwrap_or_default());
    data.extend_from_slice(payload);
    let (is_first, is_last) = (first == 0, end == whole.segments);
    let segments = end - first;
    fix_ip(&mut data, first, usize::from(whole.ip_header));
    fix_tcp(
        &mut data,
        first * whole.segment_payload,
        is_first,
        is_last,
        usize::from(whole.ip_header),
    );

    let last_wire = packet.wire.total - u64::from(whole.segments - 1) * packet.wire.segment;
    let segment_wire = if segments == 1 && is_last {
        last_wire
    } else {
        packet.wire.segment
    };
    let vnet = VirtioHeader {
        needs_csum: true,
        gso: if segments > 1 {
            packet.vnet.gso
        } else {
            Gso::None
        },
        ecn: segments > 1 && is_first && packet.vnet.ecn,
        hdr_len: if segments > 1 { whole.headers } else { 0 },
        gso_size: if segments > 1 {
            packet.vnet.gso_size
        } else {
            0
        },
        csum_start: whole.ip_header,
        csum_offset: TCP_CHECKSUM as u16,
    };
    Packet::from(Parts {
        layout: Layout {
            tcp_payload: payload.len() as u32,
            segments,
            ..whole
        },
        wire: Wire {
            total: u64::from(segments - 1) * packet.wire.segment
                + if is_last {
                    last_wire
                } else {
                    packet.wire.segment
                },
            segment: segment_wire,
        },
        data,
        vnet,
        ..**packet
    })
}

/// Puts length, identification and header checksum right in a piece that starts with the
/// segment number `first`.
fn fix_ip(data: &mut [u8], first: u32, header_len: usize) {
    let len = data.len();
    if data.first().is_some_and(|b| b >> 4 == 6) {
        put16(data, IPV6_LENGTH, (len - IPV6_HEADER.min(len)) as u16);
        return;
    }
    put16(data, IPV4_LENGTH, len as u16);
    let id = get16(data, IPV4_ID).wrapping_add(first as u16);
    put16(data, IPV4_ID, id);
    put16(data, IPV4_CHECKSUM, 0);
    let sum = checksum::checksum(data.get(..header_len).unwrap_or_default());
    put16(data, IPV4_CHECKSUM, sum);
}

/// Puts sequence number and flags right, and the pseudo-header's sum where the kernel expects
/// it for a checksum that is still to be finished.
fn fix_tcp(data: &mut [u8], payload_before: u32, is_first: bool, is_last: bool, ip_header: usize) {
    let sequence = ip_header + TCP_SEQUENCE;
    if let Some(field) = data
        .get_mut(sequence..)
        .and_then(|d| d.first_chunk_mut::<4>())
    {
        *field = u32::from_be_bytes(*field)
            .wrapping_add(payload_before)
            .to_be_bytes();
    }
    if let Some(flags) = data.get_mut(ip_header + TCP_FLAGS) {
        if !is_last {
            *flags &= !(FIN | PSH);
        }
        if !is_first {
            *flags &= !CWR;
        }
    }
    let length = data.len().saturating_sub(ip_header) as u32;
    let pseudo = IpPacket::parse(data).map_or(Sum::new(), |ip| {
        checksum::pseudo_header(ip.source(), ip.destination(), TCP, length)
    });
    put16(data, ip_header + TCP_CHECKSUM, pseudo.folded());
}

/// The datagrams of a train that the kernel passed as one packet, as they are on the wire: their checksums are
/// complete. `None` where it is no such train.
pub fn datagrams(packet: &Packet) -> Option<impl Iterator<Item = Vec<u8>>> {
    let ip = IpPacket::parse(&packet.data)?;
    let ip_header = ip.header_len();
    let (headers, payload) = packet.data.split_at_checked(ip_header + UDP_HEADER)?;
    let each = usize::from(packet.vnet.gso_size);
    if packet.vnet.gso != Gso::Udp || ip.protocol() != UDP || each == 0 {
        return None;
    }
    let (source, destination) = (ip.source(), ip.destination());
    Some(payload.chunks(each).zip(0..).map(move |(payload, number)| {
        let mut data = [headers, payload].concat();
        let length = UDP_HEADER + payload.len();
        fix_ip(&mut data, number, ip_header);
        put16(&mut data, ip_header + UDP_LENGTH, length as u16);
        put16(&mut data, ip_header + UDP_CHECKSUM, 0);
        let sum = checksum::pseudo_header(source, destination, UDP, length as u32)
            .bytes(data.get(ip_header..).unwrap_or_default())
            .checksum();
        put16(&mut data, ip_header + UDP_CHECKSUM, never_none(sum));
        data
    }))
}

/// Zero means "none" in UDP (RFC 768), and the other zero is right in TCP too.
fn never_none(checksum: u16) -> u16 {
    match checksum {
        0 => 0xffff,
        sum => sum,
    }
}

/// Completes a checksum that was left to the hardware, before the bytes are read or changed; `false` when the packet is
/// several segments, each of which has its own.
pub fn finalise_checksum(packet: &mut Packet) -> bool {
    if !packet.vnet.needs_csum {
        return true;
    }
    if packet.segments() > 1 {
        return false;
    }
    let start = usize::from(packet.vnet.csum_start);
    let Some(covered) = packet.data.get(start..) else {
        return false;
    };
    let sum = never_none(checksum::checksum(covered));
    let field = start + usize::from(packet.vnet.csum_offset);
    if field + 2 > packet.data.len() {
        return false;
    }
    put16(&mut packet.data, field, sum);
    packet.vnet = VirtioHeader::default();
    true
}

fn get16(data: &[u8], at: usize) -> u16 {
    data.get(at..)
        .and_then(|d| d.first_chunk::<2>())
        .map_or(0, |b| u16::from_be_bytes(*b))
}

fn put16(data: &mut [u8], at: usize, value: u16) {
    if let Some(field) = data.get_mut(at..).and_then(|d| d.first_chunk_mut::<2>()) {
        *field = value.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::{ACK, CWR, FIN, PSH, tcp};
    use proptest::prelude::*;

    /// The checksums of a packet whose checksum is complete.
    fn checksums_are_right(data: &[u8]) -> bool {
        let ip = IpPacket::parse(data).unwrap();
        let header_ok = ip.version() == 6 || checksum::checksum(&data[..ip.header_len()]) == 0;
        let transport = ip.payload();
        let sum = checksum::pseudo_header(
            ip.source(),
            ip.destination(),
            ip.protocol(),
            transport.len() as u32,
        );
        header_ok && ip.total_len() == data.len() && sum.bytes(transport).checksum() == 0
    }

    #[test]
    fn identification_sequence_and_flags() {
        let pieces: Vec<_> =
            split(tcp(false, 3 * 1448 + 100, 1448, ACK | PSH | FIN | CWR), 1).collect();
        let field = |p: &Packet, at: usize| get16(&p.data, at);
        assert_eq!(
            pieces.iter().map(|p| p.data.len()).collect::<Vec<_>>(),
            [1500, 1500, 1500, 152]
        );
        assert_eq!(
            pieces.iter().map(|p| field(p, 4)).collect::<Vec<_>>(),
            [0xfffe, 0xffff, 0, 1]
        );
        let sequence = |p: &Packet| u32::from_be_bytes(p.data[24..28].try_into().unwrap());
        assert_eq!(
            pieces.iter().map(sequence).collect::<Vec<_>>(),
            [0xffff_ff00, 1192, 2640, 4088]
        );
        assert_eq!(
            pieces.iter().map(|p| p.data[33]).collect::<Vec<_>>(),
            [ACK | CWR, ACK, ACK, ACK | PSH | FIN]
        );
        for p in &pieces {
            assert_eq!(
                (p.vnet.gso, p.vnet.needs_csum, p.segments(), p.vnet.ecn),
                (Gso::None, true, 1, false)
            );
        }
    }

    #[test]
    fn pieces_of_several_segments_keep_the_header_for_the_kernel() {
        let pieces: Vec<_> = split(tcp(true, 5 * 1000 - 1, 1000, ACK | CWR), 2).collect();
        assert_eq!(
            pieces.iter().map(Packet::segments).collect::<Vec<_>>(),
            [2, 2, 1]
        );
        let [a, b, c] = [&pieces[0], &pieces[1], &pieces[2]];
        assert_eq!(
            (a.vnet.gso, a.vnet.gso_size, a.vnet.hdr_len, a.vnet.ecn),
            (Gso::TcpV6, 1000, 72, true)
        );
        assert_eq!(
            (b.vnet.gso, b.vnet.ecn, c.vnet.gso),
            (Gso::TcpV6, false, Gso::None)
        );
        // A partial checksum of the pseudo-header with the piece's own length.
        let ip = IpPacket::parse(&a.data).unwrap();
        let pseudo = checksum::pseudo_header(ip.source(), ip.destination(), TCP, 32 + 2000);
        assert_eq!(get16(&a.data, 40 + 16), pseudo.folded());
        assert!(!finalise_checksum(&mut a.clone()));
    }

    /// A train of datagrams as the kernel passes it on.
    fn train(v6: bool, payload: usize, gso_size: u16) -> Packet {
        let length = ((UDP_HEADER + payload) as u16).to_be_bytes();
        let mut data = match v6 {
            false => crate::packet::tests::ipv4_header(20 + UDP_HEADER + payload, UDP, 0),
            true => {
                let mut header = vec![0x60, 0, 0, 0, length[0], length[1], UDP, 64];
                header.extend([0x20; 32]);
                header
            }
        };
        let headers = data.len();
        data.extend([0x12, 0x34, 0, 9, length[0], length[1], 0xab, 0xcd]);
        data.extend((0..payload).map(|byte| byte as u8));
        let vnet = VirtioHeader {
            needs_csum: true,
            gso: Gso::Udp,
            gso_size,
            csum_start: headers as u16,
            csum_offset: UDP_CHECKSUM as u16,
            ..VirtioHeader::default()
        };
        Packet::new(data, vnet, crate::time::Time::ZERO)
    }

    #[test]
    fn what_is_no_train_of_datagrams() {
        assert!(datagrams(&tcp(false, 3000, 1448, ACK)).is_none());
        assert!(datagrams(&train(false, 100, 0)).is_none());
    }

    proptest! {
        #[test]
        fn datagrams_are_whole_and_join_to_what_was_sent(v6: bool, payload in 1usize..20_000, gso_size in 1u16..1460) {
            let train = train(v6, payload, gso_size);
            let sent = train.data[train.data.len() - payload..].to_vec();
            let mut received = Vec::new();
            for datagram in datagrams(&train).unwrap() {
                prop_assert!(checksums_are_right(&datagram));
                let udp = &datagram[IpPacket::parse(&datagram).unwrap().header_len()..];
                prop_assert_eq!(usize::from(get16(udp, UDP_LENGTH)), udp.len());
                received.extend_from_slice(&udp[UDP_HEADER..]);
            }
            prop_assert_eq!(received, sent);
        }

        #[test]
        fn any_bytes_are_cut_or_not(data in proptest::collection::vec(any::<u8>(), 0..200), gso_size: u16) {
            let vnet = VirtioHeader { gso: Gso::Udp, gso_size, ..VirtioHeader::default() };
            let packet = Packet::new(data, vnet, crate::time::Time::ZERO);
            if let Some(datagrams) = datagrams(&packet) {
                prop_assert!(datagrams.count() <= packet.data.len());
            }
        }

        #[test]
        fn pieces_are_valid_and_join_to_the_same_stream(
            v6: bool, payload in 1usize..20_000, gso_size in 100u16..1460, coarse in 1u32..8, flags in prop::sample::select(vec![ACK, ACK | FIN | PSH, ACK | CWR]),
        ) {
            let mut packet = tcp(v6, payload, gso_size, flags);
            packet.frame(&"docsis".parse().unwrap());
            let (segments, ip_bytes, wire) = (packet.segments(), packet.ip_bytes(), packet.wire.total);
            let headers = usize::from(packet.layout.headers);
            let whole = packet.data.clone();
            let (mut stream, mut seen, mut bytes, mut framed) = (Vec::new(), 0, 0, 0);
            let mut next_sequence = 0xffff_ff00u32;
            // Split coarsely, then those pieces finely: what a partial drop leaves is split again.
            for piece in split(packet, coarse) {
                let again = Packet::new(piece.data.clone(), piece.vnet, piece.arrived);
                prop_assert_eq!(again.layout.segments, piece.layout.segments);
                prop_assert_eq!(again.layout.tcp_payload, piece.layout.tcp_payload);
                framed += piece.wire.total;
                for mut single in split(piece, 1) {
                    prop_assert_eq!(single.wire_bytes(&"docsis".parse().unwrap()), single.wire.total);
                    seen += 1;
                    bytes += single.ip_bytes();
                    prop_assert!(finalise_checksum(&mut single));
                    prop_assert!(checksums_are_right(&single.data));
                    let tcp_start = usize::from(single.layout.ip_header);
                    let sequence = u32::from_be_bytes(single.data[tcp_start + 4..tcp_start + 8].try_into().unwrap());
                    prop_assert_eq!(sequence, next_sequence);
                    next_sequence = next_sequence.wrapping_add(single.layout.tcp_payload);
                    stream.extend_from_slice(&single.data[headers..]);
                }
            }
            prop_assert_eq!((seen, bytes, framed), (segments, ip_bytes, wire));
            prop_assert_eq!(&stream[..], &whole[headers..]);
        }
    }
}

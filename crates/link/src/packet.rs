//! A packet inside a link: an ordinary IP packet, or a large TCP segment (GSO) that represents several packets on the
//! wire.

use std::net::IpAddr;
use std::ops::{Deref, DerefMut};

use plumb_model::framing::Framing;
use plumb_wire::ip::{self, IpPacket};
use plumb_wire::probe_key::ProbeKey;
use plumb_wire::virtio::{Gso, VirtioHeader};

use crate::backlog::Backlog;
use crate::flow_hash::flow_hash;
use crate::time::Time;

/// An IP packet with the header that the TUN device gave it. It stays where it is in memory: cells
/// hand on a pointer, many times a packet.
#[derive(Debug, Clone)]
pub struct Packet(Box<Parts>);

/// What a packet is made of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The IP packet. Its length must not change: cut it up with [`crate::segment`].
    pub data: Vec<u8>,
    /// The TUN device's header.
    pub vnet: VirtioHeader,
    /// When it came to the head of the chain.
    pub arrived: Time,
    /// When it came to the cell that it is in.
    pub(crate) entered: Time,
    /// Whether it goes back to where packets of this direction come from: a cell sent it.
    pub back: bool,
    /// Its number among those that came to the chain, from 0; copies and pieces share it.
    pub(crate) number: u64,
    /// Which probe it is, if any.
    pub(crate) probe: Option<ProbeKey>,
    /// Its record in the chain's probe recorder.
    pub(crate) record: Option<u64>,
    /// The hash of the flow that it came in with; zero for what is no IP.
    pub(crate) flow_hash: u64,
    /// Its flow in the chain's table.
    pub(crate) flow: FlowNumber,
    /// Whether a cell of the chain put the mark of congestion on it.
    pub(crate) marked: bool,
    pub(crate) layout: Layout,
    pub(crate) wire: Wire,
}

/// Which flow of the table a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FlowNumber(pub(crate) u32);

/// Where the parts of a packet are, and how many packets of the wire it represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Length of the IP header in bytes; zero when the packet is no IP.
    pub(crate) ip_header: u16,
    /// Length of IP and TCP headers in bytes, which each segment repeats; zero when not TCP.
    pub(crate) headers: u16,
    /// TCP payload bytes of all segments together.
    pub(crate) tcp_payload: u32,
    /// TCP payload bytes of each segment but the last.
    pub(crate) segment_payload: u32,
    /// How many packets of the wire this is, at least one.
    pub(crate) segments: u32,
    /// Whether it goes to ff02::/16 (RFC 4291 section 2.7).
    pub(crate) link_multicast: bool,
}

/// Bytes on the line under the framing of the shaper that the packet is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wire {
    /// Of all segments together.
    pub(crate) total: u64,
    /// Of each segment but the last; of the only one when there is one.
    pub(crate) segment: u64,
}

impl From<Parts> for Packet {
    fn from(parts: Parts) -> Self {
        Self(Box::new(parts))
    }
}

impl Deref for Packet {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for Packet {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl Packet {
    /// A packet that comes to the head of the chain at `arrived`.
    pub fn new(data: Vec<u8>, vnet: VirtioHeader, arrived: Time) -> Self {
        let ip = IpPacket::parse(&data);
        let layout = Layout::of(ip.as_ref(), data.len(), &vnet);
        let flow_hash = ip.as_ref().map_or(0, |ip| flow_hash(&ip.flow(), 0));
        let probe = ip.as_ref().and_then(ProbeKey::of);
        Self(Box::new(Parts {
            data,
            vnet,
            arrived,
            entered: arrived,
            back: false,
            number: 0,
            probe,
            record: None,
            flow_hash,
            flow: FlowNumber::default(),
            marked: false,
            layout,
            wire: Wire::default(),
        }))
    }

    /// A packet with other bytes that replaces this one, or a part of it.
    pub(crate) fn with_data(&self, data: Vec<u8>) -> Self {
        let mut packet = Self::new(data, VirtioHeader::default(), self.arrived);
        packet.entered = self.entered;
        packet.record = self.record;
        packet.flow_hash = self.flow_hash;
        packet.flow = self.flow;
        packet.marked = self.marked;
        packet
    }

    /// The IP packet's bytes, to use their memory again.
    pub fn into_data(self) -> Vec<u8> {
        self.0.data
    }

    /// How many packets of the wire this represents, at least one.
    pub fn segments(&self) -> u32 {
        self.layout.segments
    }

    /// IP bytes of all the packets of the wire that this represents.
    pub fn ip_bytes(&self) -> u64 {
        self.data.len() as u64
            + u64::from(self.layout.segments - 1) * u64::from(self.layout.headers)
    }

    /// TCP payload bytes; zero for what is not TCP, and for fragments.
    pub fn tcp_payload_bytes(&self) -> u64 {
        u64::from(self.layout.tcp_payload)
    }

    /// Bytes on a line with this framing, of all the packets of the wire that this represents.
    pub fn wire_bytes(&self, framing: &Framing) -> u64 {
        self.wire_under(framing).total
    }

    /// Marks it with congestion experienced (RFC 3168) when its transport supports ECN; `true` when it has the mark
    /// afterwards.
    pub(crate) fn mark(&mut self) -> bool {
        let bears_it = ip::set_ce(&mut self.data);
        self.marked |= bears_it;
        bears_it
    }

    /// Whether it is what hosts send unasked, and no data: IPv6 multicast of link-local scope, as
    /// listener reports and router solicitations are.
    pub(crate) fn is_link_multicast(&self) -> bool {
        self.layout.link_multicast
    }

    /// IP bytes of each segment but the last.
    pub(crate) fn segment_ip_bytes(&self) -> u64 {
        match self.layout.segments {
            1 => self.data.len() as u64,
            _ => u64::from(self.layout.headers) + u64::from(self.layout.segment_payload),
        }
    }

    /// Remembers what the packet takes on a line with this framing.
    pub(crate) fn frame(&mut self, framing: &Framing) {
        self.wire = self.wire_under(framing);
    }

    /// What the packet takes in a queue; [`Self::frame`] comes first.
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog {
            packets: u64::from(self.layout.segments),
            ip_bytes: self.ip_bytes(),
            wire_bytes: self.wire.total,
        }
    }

    fn wire_under(&self, framing: &Framing) -> Wire {
        let on_wire = |ip_bytes: u64| {
            u64::from(framing.wire_bytes(u32::try_from(ip_bytes).unwrap_or(u32::MAX)))
        };
        let full = u64::from(self.layout.segments - 1);
        let segment = on_wire(self.segment_ip_bytes());
        let last = on_wire(self.ip_bytes() - full * self.segment_ip_bytes());
        Wire {
            total: full * segment + last,
            segment,
        }
    }
}

impl Layout {
    /// Of a packet of `len` bytes; `ip` is `None` when it is no IP.
    fn of(ip: Option<&IpPacket<'_>>, len: usize, vnet: &VirtioHeader) -> Self {
        let mut layout = Self {
            ip_header: 0,
            headers: 0,
            tcp_payload: 0,
            segment_payload: 0,
            segments: 1,
            link_multicast: false,
        };
        let Some(ip) = ip else {
            return layout;
        };
        layout.link_multicast = match ip.destination() {
            IpAddr::V4(_) => false,
            IpAddr::V6(address) => address.segments().first() == Some(&0xff02),
        };
        layout.ip_header = u16::try_from(ip.header_len()).unwrap_or(0);
        let Some(tcp_header) = ip.tcp_header_len() else {
            return layout;
        };
        let Ok(headers) = u16::try_from(ip.header_len() + tcp_header) else {
            return layout;
        };
        layout.headers = headers;
        layout.tcp_payload = u32::try_from(ip.payload().len() - tcp_header).unwrap_or(0);
        // The kernel's word is taken for a large segment only when it fits the packet.
        let gso_fits = match vnet.gso {
            // Cut by [`datagrams`](crate::segment::datagrams); a link is offered none.
            Gso::None | Gso::Udp => false,
            Gso::TcpV4 => ip.version() == 4,
            Gso::TcpV6 => ip.version() == 6,
        };
        let whole = ip.total_len() == len;
        if gso_fits && whole && vnet.gso_size > 0 && layout.tcp_payload > 0 {
            layout.segment_payload = u32::from(vnet.gso_size);
            layout.segments = layout.tcp_payload.div_ceil(layout.segment_payload);
        }
        layout
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_wire::checksum;
    use plumb_wire::ip::{TCP, UDP};
    use proptest::prelude::*;

    pub(crate) const CWR: u8 = 0x80;
    pub(crate) const ACK: u8 = 0x10;
    pub(crate) const PSH: u8 = 0x08;
    pub(crate) const FIN: u8 = 0x01;

    /// An IP packet of `len` bytes that is no TCP, of the flow `port`, with this ECN field.
    pub(crate) fn udp(len: usize, port: u16, ecn: u8) -> Packet {
        let mut data = ipv4_header(len, UDP, ecn);
        data.extend(port.to_be_bytes());
        data.extend([0, 9]);
        data.resize(len, 0);
        Packet::new(data, VirtioHeader::default(), Time::ZERO)
    }

    pub(crate) fn ipv4_header(len: usize, protocol: u8, ecn: u8) -> Vec<u8> {
        let [l0, l1] = (len as u16).to_be_bytes();
        let mut header = vec![
            0x45, ecn, l0, l1, 0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        let sum = checksum::checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    pub(crate) fn ipv6_header(len: usize, protocol: u8) -> Vec<u8> {
        let [l0, l1] = ((len - 40) as u16).to_be_bytes();
        let mut header = vec![0x60, 0, 0, 0, l0, l1, protocol, 64];
        header.extend([0xfd; 16]);
        header.extend([0xfe; 16]);
        header
    }

    /// What an IPv6 host sends unasked: to ff02::16 (RFC 3810).
    pub(crate) fn listener_report() -> Packet {
        let mut data = ipv6_header(76, 0);
        data[24..40].copy_from_slice(&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16]);
        data.resize(76, 0);
        Packet::new(data, VirtioHeader::default(), Time::ZERO)
    }

    /// A large TCP segment with `payload` bytes, counting up, of 32 bytes of TCP header.
    pub(crate) fn tcp(v6: bool, payload: usize, gso_size: u16, flags: u8) -> Packet {
        let ip_header = if v6 { 40 } else { 20 };
        let len = ip_header + 32 + payload;
        let mut data = if v6 {
            ipv6_header(len, TCP)
        } else {
            ipv4_header(len, TCP, 0)
        };
        let ip = IpPacket::parse(&data).unwrap();
        let pseudo =
            checksum::pseudo_header(ip.source(), ip.destination(), TCP, (len - ip_header) as u32);
        data.extend([
            0x14, 0x51, 0x1d, 0xa2, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 1, 0x80, flags, 1, 0,
        ]);
        data.extend(pseudo.folded().to_be_bytes());
        data.extend([0; 14]);
        data.extend((0..payload).map(|i| (i % 251) as u8));
        let gso = if v6 { Gso::TcpV6 } else { Gso::TcpV4 };
        let vnet = VirtioHeader {
            needs_csum: true,
            gso,
            ecn: flags & CWR != 0,
            hdr_len: ip_header as u16 + 32,
            gso_size,
            csum_start: ip_header as u16,
            csum_offset: 16,
        };
        Packet::new(data, vnet, Time::ZERO)
    }

    #[test]
    fn a_large_segment_counts_as_its_packets() {
        let docsis: Framing = "docsis".parse().unwrap();
        let p = tcp(false, 3 * 1448 + 100, 1448, ACK);
        assert_eq!(p.segments(), 4);
        assert_eq!(p.ip_bytes(), 3 * 1500 + 152);
        assert_eq!(p.tcp_payload_bytes(), 3 * 1448 + 100);
        assert_eq!(p.wire_bytes(&docsis), 3 * 1518 + 170);
        let p = tcp(true, 2 * 1428, 1428, ACK);
        assert_eq!((p.segments(), p.ip_bytes()), (2, 3000));
        let p = tcp(false, 0, 1448, ACK);
        assert_eq!(
            (p.segments(), p.ip_bytes(), p.tcp_payload_bytes()),
            (1, 52, 0)
        );
        let p = udp(1500, 1, 0);
        assert_eq!(
            (p.segments(), p.wire_bytes(&docsis), p.tcp_payload_bytes()),
            (1, 1518, 0)
        );
    }

    proptest! {
        #[test]
        fn arbitrary_packets_do_not_panic(
            data in proptest::collection::vec(any::<u8>(), 0..200),
            version in 4u8..8,
            header in proptest::array::uniform10(any::<u8>()),
        ) {
            let mut data = data;
            if let Some(first) = data.first_mut() {
                *first = version << 4 | 5;
            }
            if let Some(protocol) = data.get_mut(9) {
                *protocol = TCP;
            }
            let vnet = VirtioHeader::parse(&header).unwrap_or_default();
            let p = Packet::new(data.clone(), vnet, Time::ZERO);
            prop_assert!(p.segments() >= 1);
            prop_assert!(p.tcp_payload_bytes() <= data.len() as u64);
            prop_assert!(p.wire_bytes(&Framing::default()) == p.ip_bytes());
        }
    }
}

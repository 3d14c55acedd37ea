//! IP of both versions, and what it carries.

use plumb_model::results::capture::Layer;

use super::cursor::Cursor;
use super::end::End;
use super::numbers::VXLAN_PORT;
use super::numbers::protocol::{
    AUTHENTICATION, DESTINATION_OPTIONS, ESP, FRAGMENT, GRE, HOP_BY_HOP, ICMP, ICMPV6, IGMP, IPV4,
    IPV6, MOBILITY, NO_NEXT, OSPF, ROUTING, SCTP, TCP, UDP,
};
use super::ports;
use super::segment::Segment;
use super::types::{Address, Network, Packet, Transport};

/// Bytes of headers: IPv4's without options, UDP's.
const IPV4_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;

/// What a tunnel carries.
pub(super) enum Inner {
    Ip,
    Ethernet,
    EtherType(u16),
}

type Read = Result<Option<Inner>, End>;

#[inline]
pub(super) fn ipv4<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Ipv4)?;
    let header = cursor.peek::<20>()?;
    let [
        first,
        traffic_class,
        t0,
        t1,
        i0,
        i1,
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
    let header_bytes = u32::from(first & 0x0f) * 4;
    let total = match u32::from(u16::from_be_bytes([t0, t1])) {
        // The network card was to write it (segmentation offload).
        0 => cursor.wire(),
        total => total,
    };
    if header_bytes < IPV4_HEADER || total < header_bytes {
        return Err(End::Malformed);
    }
    cursor.end_after(total);
    cursor.pass(header_bytes as usize)?;
    packet.network = Some(Network {
        source: Address::v4([s0, s1, s2, s3]),
        destination: Address::v4([d0, d1, d2, d3]),
        traffic_class,
        ttl,
        ident: u16::from_be_bytes([i0, i1]),
        protocol,
    });
    carries(cursor, packet);
    if u16::from_be_bytes([f0, f1]) & 0x1fff != 0 {
        return later_fragment(packet);
    }
    transport(protocol, cursor, packet)
}

pub(super) fn ipv6<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Ipv6)?;
    let header = cursor.header::<40>()?;
    let [c0, c1, _, _, p0, p1, next, ttl, addresses @ ..] = *header;
    let payload = u32::from(u16::from_be_bytes([p0, p1]));
    if payload > 0 {
        cursor.end_after(payload);
    }
    let (source, destination) = addresses.split_at(16);
    let address = |bytes: &[u8]| bytes.try_into().map(Address::v6).unwrap_or_default();
    let mut network = Network {
        source: address(source),
        destination: address(destination),
        traffic_class: c0 << 4 | c1 >> 4,
        ttl,
        ident: 0,
        protocol: next,
    };
    packet.network = Some(network);
    // Ends with the headers of that kind: each turn passes eight bytes at least.
    loop {
        let length = match network.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY => {
                let [_, length] = *cursor.peek::<2>()?;
                (usize::from(length) + 1) * 8
            }
            AUTHENTICATION => {
                let [_, length] = *cursor.peek::<2>()?;
                (usize::from(length) + 2) * 4
            }
            FRAGMENT => 8,
            _ => break,
        };
        let extension = cursor.take(length)?;
        let fragment = network.protocol == FRAGMENT;
        network.protocol = extension.first().copied().unwrap_or(NO_NEXT);
        packet.network = Some(network);
        carries(cursor, packet);
        let place = extension.get(2..4).and_then(|place| place.try_into().ok());
        if fragment && u16::from_be_bytes(place.unwrap_or_default()) & 0xfff8 != 0 {
            return later_fragment(packet);
        }
    }
    carries(cursor, packet);
    transport(network.protocol, cursor, packet)
}

/// Notes what lies behind the header of IP.
#[inline]
fn carries<'a>(cursor: &Cursor<'a>, packet: &mut Packet<'a>) {
    packet.carried = cursor.rest();
    packet.carried_bytes = cursor.wire();
}

fn later_fragment(packet: &mut Packet<'_>) -> Read {
    packet.later_fragment = true;
    packet.transport = Transport::Other;
    packet.layer(Layer::Fragment)?;
    Ok(None)
}

#[inline]
fn transport<'a>(protocol: u8, cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    if protocol == TCP {
        packet.layer(Layer::Tcp)?;
        let segment = Segment::read(cursor)?;
        packet.transport = Transport::Tcp(segment);
        if segment.payload_bytes > 0 {
            packet.layers.push(ports::tcp(segment.ports));
        }
        return Ok(None);
    }
    packet.transport = Transport::Other;
    let other = match protocol {
        UDP => return udp(cursor, packet),
        ICMP | ICMPV6 => return icmp(protocol == ICMPV6, cursor, packet).map(|()| None),
        IPV4 | IPV6 => return Ok(Some(Inner::Ip)),
        GRE => return gre(cursor, packet),
        IGMP => Layer::Igmp,
        ESP => Layer::Esp,
        OSPF => Layer::Ospf,
        SCTP => Layer::Sctp,
        NO_NEXT => return Ok(None),
        _ => Layer::Other,
    };
    packet.layer(other)?;
    match other {
        Layer::Other => Err(End::Unread),
        _ => Ok(None),
    }
}

fn udp<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Udp)?;
    let [s0, s1, d0, d1, l0, l1, _, _] = *cursor.header::<8>()?;
    let ports = [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])];
    let length = u32::from(u16::from_be_bytes([l0, l1]));
    // Longer than the packet where it is its first fragment; 0 where it is a jumbogram.
    if (1..UDP_HEADER).contains(&length) {
        return Err(End::Malformed);
    }
    let payload = cursor.rest();
    packet.transport = Transport::Udp { ports, payload };
    if ports[1] == VXLAN_PORT {
        packet.layer(Layer::Vxlan)?;
        cursor.pass(8)?;
        return Ok(Some(Inner::Ethernet));
    }
    packet.layers.push(ports::udp(ports));
    Ok(None)
}

fn icmp<'a>(v6: bool, cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Result<(), End> {
    let name = match v6 {
        true => Layer::Icmpv6,
        false => Layer::Icmp,
    };
    packet.layer(name)?;
    let [kind, code, _, _] = *cursor.header::<4>()?;
    packet.transport = Transport::Icmp {
        v6,
        kind,
        code,
        body: cursor.rest(),
    };
    Ok(())
}

/// RFC 2784 with the fields of RFC 2890; other versions are not read into.
fn gre<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Gre)?;
    let [flags, version, high, low] = *cursor.header::<4>()?;
    if version & 7 != 0 {
        return Err(End::Unread);
    }
    // Checksum, key and sequence number have four bytes each.
    let optional = (flags & 0b1011_0000).count_ones() as usize * 4;
    cursor.pass(optional)?;
    Ok(Some(Inner::EtherType(u16::from_be_bytes([high, low]))))
}

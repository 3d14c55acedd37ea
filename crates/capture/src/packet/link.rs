//! Headers of links, and what lies between them and IP.

use plumb_model::results::capture::Layer;

use super::cursor::Cursor;
use super::end::End;
use super::network;
use super::numbers::{ethertype, link as types, ppp};
use super::types::Packet;
use super::wireless;

type Read = Result<(), End>;

/// Reads a frame of that link type.
#[inline]
pub(super) fn begin<'a>(link: u16, cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    match link {
        types::ETHERNET => ethernet(cursor, packet),
        link if types::RAW.contains(&link) => {
            packet.layer(Layer::Raw)?;
            ip(cursor, packet)
        }
        types::COOKED_1 => {
            packet.layer(Layer::Cooked1)?;
            let [_, kind, .., high, low] = *cursor.header::<16>()?;
            packet.broadcast = matches!(kind, 1 | 2);
            ethernet_payload(u16::from_be_bytes([high, low]), cursor, packet)
        }
        types::COOKED_2 => {
            packet.layer(Layer::Cooked2)?;
            let [high, low, _, _, _, _, _, _, _, _, kind, ..] = *cursor.header::<20>()?;
            packet.broadcast = matches!(kind, 1 | 2);
            ethernet_payload(u16::from_be_bytes([high, low]), cursor, packet)
        }
        types::NULL | types::LOOP => {
            // The address family differs between systems; the version of IP says the same.
            packet.layer(Layer::Null)?;
            cursor.pass(4)?;
            ip(cursor, packet)
        }
        types::PPP | types::PPP_HDLC => point_to_point(cursor, packet),
        types::PPP_ETHER => pppoe(cursor, packet),
        types::IEEE802_11 | types::RADIOTAP => {
            let carried = match link {
                types::RADIOTAP => wireless::with_radiotap(cursor, packet)?,
                _ => wireless::frame(false, cursor, packet)?,
            };
            match carried {
                Some(kind) => ethernet_payload(kind, cursor, packet),
                None => Ok(()),
            }
        }
        _ => {
            packet.layer(Layer::Other)?;
            Err(End::Unread)
        }
    }
}

#[inline]
pub(super) fn ethernet<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Ethernet)?;
    let header = cursor.header::<14>()?;
    let [first, .., high, low] = *header;
    // The group bit, which broadcast has too.
    packet.broadcast |= first & 1 == 1;
    ethernet_payload(u16::from_be_bytes([high, low]), cursor, packet)
}

/// What an EtherType announces.
#[inline]
pub(super) fn ethernet_payload<'a>(
    mut kind: u16,
    cursor: &mut Cursor<'a>,
    packet: &mut Packet<'a>,
) -> Read {
    // Ends with the tags: each turn reads one, and there is room for few layers.
    while ethertype::VLAN.contains(&kind) {
        packet.layer(Layer::Vlan)?;
        let [_, _, high, low] = *cursor.header::<4>()?;
        kind = u16::from_be_bytes([high, low]);
    }
    match kind {
        ethertype::IPV4 | ethertype::IPV6 => ip(cursor, packet),
        ethertype::ARP => {
            packet.arp = true;
            packet.layer(Layer::Arp)
        }
        ethertype::PPPOE_SESSION => pppoe(cursor, packet),
        ethertype::ETHERNET => ethernet(cursor, packet),
        kind if ethertype::MPLS.contains(&kind) => mpls(cursor, packet),
        kind if kind < ethertype::SMALLEST => packet.layer(Layer::Llc),
        _ => {
            packet.layer(Layer::Other)?;
            Err(End::Unread)
        }
    }
}

/// IP of the version that its first half byte has.
#[inline]
pub(super) fn ip<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    let [first] = *cursor.peek::<1>()?;
    let inner = match first >> 4 {
        4 => network::ipv4(cursor, packet)?,
        6 => network::ipv6(cursor, packet)?,
        _ => return Err(End::Malformed),
    };
    match inner {
        None => Ok(()),
        Some(network::Inner::Ip) => ip(cursor, packet),
        Some(network::Inner::Ethernet) => ethernet(cursor, packet),
        Some(network::Inner::EtherType(kind)) => ethernet_payload(kind, cursor, packet),
    }
}

/// Labels until the bottom of the stack (RFC 3032), below which IP is recognised by its version, as routers do.
fn mpls<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Mpls)?;
    // Ends with the packet: each turn reads a label.
    while cursor.header::<4>()?[2] & 1 == 0 {}
    match cursor.peek::<1>()?[0] >> 4 {
        4 | 6 => ip(cursor, packet),
        // A pseudowire's control word (RFC 4385) begins with zero; behind it is Ethernet.
        0 => {
            cursor.pass(4)?;
            ethernet(cursor, packet)
        }
        _ => Err(End::Unread),
    }
}

/// PPP over Ethernet (RFC 2516): six bytes, then PPP without framing.
fn pppoe<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Pppoe)?;
    let [_, code, _, _, high, low] = *cursor.header::<6>()?;
    cursor.end_after(u32::from(u16::from_be_bytes([high, low])));
    match code {
        0 => point_to_point(cursor, packet),
        _ => Ok(()),
    }
}

fn point_to_point<'a>(cursor: &mut Cursor<'a>, packet: &mut Packet<'a>) -> Read {
    packet.layer(Layer::Ppp)?;
    // Address and control, which may be left out (RFC 1662), as may be the first byte of the protocol.
    if *cursor.peek::<2>()? == [0xff, 0x03] {
        cursor.pass(2)?;
    }
    let [first] = *cursor.peek::<1>()?;
    let protocol = match first & 1 {
        1 => {
            cursor.pass(1)?;
            u16::from(first)
        }
        _ => u16::from_be_bytes(*cursor.header::<2>()?),
    };
    match protocol {
        ppp::IPV4 | ppp::IPV6 => ip(cursor, packet),
        ppp::MPLS => mpls(cursor, packet),
        _ => {
            packet.layer(Layer::Other)?;
            Err(End::Unread)
        }
    }
}

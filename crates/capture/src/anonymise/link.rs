//! Headers of links, and what lies between them and IP, without addresses of hosts.

use super::copied::Copied;
use super::network::{self, Next};
use super::wireless;
use crate::packet::numbers::{ethertype, link as types, ppp};

/// Copies what is understood of a frame of that link type; `None` where a header is not whole.
pub(super) fn copy(link: u16, copied: &mut Copied<'_>) -> Option<()> {
    let mut next = begin(link, copied)?;
    // Ends with the packet: each turn copies a header, of which there are few.
    while let Some(header) = next {
        copied.begin_header()?;
        next = match header {
            Next::Ip => network::ip(copied)?,
            Next::Ethernet => ethernet(copied)?,
            Next::EtherType(kind) => ethernet_payload(kind, copied)?,
        };
    }
    Some(())
}

/// What comes behind a header that was copied, if it is copied too; `None` where the header was not whole.
type Then = Option<Option<Next>>;

fn begin(link: u16, copied: &mut Copied<'_>) -> Then {
    match link {
        types::ETHERNET => ethernet(copied),
        link if types::RAW.contains(&link) => Some(Some(Next::Ip)),
        types::COOKED_1 => {
            let [kind @ .., l0, l1] = copied.take::<6>()?;
            copied.push(&kind);
            copied.push(&[l0, l1]);
            hardware_address(u16::from_be_bytes([l0, l1]), copied)?;
            let [high, low] = copied.keep()?;
            ethernet_payload(u16::from_be_bytes([high, low]), copied)
        }
        types::COOKED_2 => {
            let [high, low, .., length] = copied.keep::<12>()?;
            hardware_address(u16::from(length), copied)?;
            ethernet_payload(u16::from_be_bytes([high, low]), copied)
        }
        types::NULL | types::LOOP => {
            copied.keep::<4>()?;
            Some(Some(Next::Ip))
        }
        types::PPP | types::PPP_HDLC => point_to_point(copied),
        types::PPP_ETHER => pppoe(copied),
        types::IEEE802_11 | types::RADIOTAP => {
            let carried = match link {
                types::RADIOTAP => wireless::with_radiotap(copied)?,
                _ => wireless::frame(false, copied)?,
            };
            carried.map_or(Some(None), |kind| ethernet_payload(kind, copied))
        }
        _ => Some(None),
    }
}

/// The field for the sender's address in Linux's own headers. Only an Ethernet address is understood.
fn hardware_address(length: u16, copied: &mut Copied<'_>) -> Option<()> {
    let [a, b, c, d, e, f, _, _] = copied.take::<8>()?;
    match length {
        6 => copied.push_mac([a, b, c, d, e, f]),
        _ => copied.push(&[0; 6]),
    }
    copied.push(&[0; 2]);
    Some(())
}

fn ethernet(copied: &mut Copied<'_>) -> Then {
    let (destination, source) = (copied.take()?, copied.take()?);
    copied.push_mac(destination);
    copied.push_mac(source);
    let kind = u16::from_be_bytes(copied.keep()?);
    ethernet_payload(kind, copied)
}

fn ethernet_payload(mut kind: u16, copied: &mut Copied<'_>) -> Then {
    // Ends with the tags: each turn copies one, and there is room for few headers.
    while ethertype::VLAN.contains(&kind) {
        copied.begin_header()?;
        let [_, _, high, low] = copied.keep()?;
        kind = u16::from_be_bytes([high, low]);
    }
    match kind {
        ethertype::IPV4 | ethertype::IPV6 => Some(Some(Next::Ip)),
        ethertype::ARP => arp(copied).map(|()| None),
        ethertype::PPPOE_SESSION => pppoe(copied),
        ethertype::ETHERNET => Some(Some(Next::Ethernet)),
        kind if ethertype::MPLS.contains(&kind) => mpls(copied),
        _ => Some(None),
    }
}

/// RFC 826, of IPv4 over Ethernet.
fn arp(copied: &mut Copied<'_>) -> Option<()> {
    /// Ethernet, IPv4, and the lengths of their addresses.
    const ETHERNET_IPV4: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
    let [kind @ .., _, _] = copied.keep::<8>()?;
    if kind != ETHERNET_IPV4 {
        return None;
    }
    for _of in ["sender", "target"] {
        let mac = copied.take()?;
        copied.push_mac(mac);
        let address = copied.take()?;
        copied.push_v4(address);
    }
    Some(())
}

fn mpls(copied: &mut Copied<'_>) -> Then {
    // Ends with the packet: each turn copies a label.
    while copied.keep::<4>()?[2] & 1 == 0 {}
    match copied.peek::<1>()?[0] >> 4 {
        4 | 6 => Some(Some(Next::Ip)),
        0 => {
            // What is taken for a control word may be the address of a pseudowire without one.
            copied.take::<4>()?;
            copied.push(&[0; 4]);
            Some(Some(Next::Ethernet))
        }
        _ => Some(None),
    }
}

fn pppoe(copied: &mut Copied<'_>) -> Then {
    let [_, code, _, _, high, low] = copied.keep()?;
    copied.end_after(u32::from(u16::from_be_bytes([high, low])));
    match code {
        0 => point_to_point(copied),
        _ => Some(None),
    }
}

fn point_to_point(copied: &mut Copied<'_>) -> Then {
    if copied.peek()? == [0xff, 0x03] {
        copied.keep::<2>()?;
    }
    let [first] = copied.peek()?;
    let protocol = match first & 1 {
        1 => u16::from(copied.keep::<1>()?[0]),
        _ => u16::from_be_bytes(copied.keep()?),
    };
    match protocol {
        ppp::IPV4 | ppp::IPV6 => Some(Some(Next::Ip)),
        ppp::MPLS => mpls(copied),
        _ => Some(None),
    }
}

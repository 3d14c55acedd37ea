//! What IP carries, up to the end of its header: no payload is copied.

use plumb_wire::checksum::Sum;
use plumb_wire::tcp_options::{MSS, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};

use super::copied::Copied;
use crate::packet::numbers::VXLAN_PORT;
use crate::packet::numbers::protocol::{ESP, GRE, ICMP, ICMPV6, IGMP, IPV4, IPV6, SCTP, TCP, UDP};

/// A header that comes next, and is copied too.
pub(super) enum Next {
    Ip,
    Ethernet,
    EtherType(u16),
}

/// What comes behind a header that was copied, if it is copied too; `None` where the header was not whole.
type Then = Option<Option<Next>>;

/// Copies the header of a protocol. What an error of ICMP quotes may have a part of one.
pub(super) fn copy(protocol: u8, pseudo: Sum, copied: &mut Copied<'_>) -> Then {
    match protocol {
        TCP => tcp(pseudo, copied).map(|()| None),
        UDP => udp(pseudo, copied),
        ICMP => icmp(copied),
        ICMPV6 => icmpv6(pseudo, copied),
        IPV4 | IPV6 => Some(Some(Next::Ip)),
        GRE => gre(copied),
        IGMP => igmp(copied).map(|()| None),
        ESP => {
            // Index and sequence number (RFC 4303, section 2).
            copied.keep::<8>()?;
            Some(None)
        }
        SCTP => {
            // Ports and tag; the checksum covers what is cut (RFC 9260, section 3.1).
            copied.keep::<8>()?;
            copied.take::<4>()?;
            copied.push(&[0; 4]);
            Some(None)
        }
        _ => Some(None),
    }
}

fn tcp(pseudo: Sum, copied: &mut Copied<'_>) -> Option<()> {
    const HEADER: usize = 20;
    let begins = copied.place();
    let header = copied.part(HEADER);
    copied.push(header);
    copied.checksum(begins, begins + 16, pseudo);
    let length = usize::from(header.get(12)? >> 4) * 4;
    let options = copied.part(length.checked_sub(HEADER)?);
    if header.len() == HEADER {
        copied.push(&without_secrets(options));
    }
    Some(())
}

/// Options of TCP. Values of those that are not known are zeros: MPTCP has keys and addresses, Fast Open has cookies.
fn without_secrets(options: &[u8]) -> Vec<u8> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    /// Selective acknowledgements (RFC 2018, section 3).
    const SACK: u8 = 5;
    let mut clean = Vec::with_capacity(options.len());
    let mut rest = options;
    // Ends with the options: each turn copies one.
    while let [kind, after @ ..] = rest {
        match (*kind, after) {
            (NO_OPERATION, _) => {
                clean.push(NO_OPERATION);
                rest = after;
            }
            (END, _) => break,
            (kind, [length, ..]) if *length >= 2 => {
                let option = rest.get(..usize::from(*length)).unwrap_or(rest);
                match kind {
                    MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS => {
                        clean.extend(option);
                    }
                    _ => {
                        clean.extend([kind, *length]);
                        clean.resize(clean.len() + option.len() - 2, 0);
                    }
                }
                rest = rest.get(option.len()..).unwrap_or_default();
            }
            _ => break,
        }
    }
    clean.resize(options.len(), END);
    clean
}

fn udp(pseudo: Sum, copied: &mut Copied<'_>) -> Then {
    let begins = copied.place();
    let [_, _, d0, d1, _, _, _, _] = copied.keep()?;
    copied.checksum_or_none(begins, begins + 6, pseudo);
    if u16::from_be_bytes([d0, d1]) != VXLAN_PORT {
        return Some(None);
    }
    // Other datagrams may have that port; of a network's number all else is zero (RFC 7348, section 5).
    match copied.peek()? {
        [8, 0, 0, 0, _, _, _, 0] => copied.keep::<8>()?,
        _ => return Some(None),
    };
    Some(Some(Next::Ethernet))
}

/// RFC 792. Echoes lose what they carry; errors keep what they quote, up to the end of its transport header.
fn icmp(copied: &mut Copied<'_>) -> Then {
    let begins = copied.place();
    let [kind, _, _, _] = copied.keep()?;
    copied.checksum(begins, begins + 2, Sum::new());
    match kind {
        3 | 4 | 11 | 12 => {
            copied.keep::<4>()?;
            Some(Some(Next::Ip))
        }
        // Redirects name a gateway.
        5 => {
            let gateway = copied.take()?;
            copied.push_v4(gateway);
            Some(Some(Next::Ip))
        }
        // Echoes and times, with identifier and sequence number.
        0 | 8 | 13 | 14 => {
            copied.keep::<4>()?;
            Some(None)
        }
        _ => Some(None),
    }
}

/// RFC 4443, and the neighbours of RFC 4861.
fn icmpv6(pseudo: Sum, copied: &mut Copied<'_>) -> Then {
    let begins = copied.place();
    let [kind, _, _, _] = copied.keep()?;
    copied.checksum(begins, begins + 2, pseudo);
    if matches!(kind, 1..=4 | 128 | 129 | 133..=137) {
        copied.keep::<4>()?;
    }
    let addresses = match kind {
        1..=4 => return Some(Some(Next::Ip)),
        133 => 0,
        // Times of a router (RFC 4861, section 4.2).
        134 => {
            copied.keep::<8>()?;
            0
        }
        135 | 136 => 1,
        137 => 2,
        _ => return Some(None),
    };
    for _ in 0..addresses {
        let address = copied.take()?;
        copied.push_v6(address);
    }
    neighbour_options(copied).map(|()| None)
}

/// Options that are understood (RFC 4861, section 4.6); the first other one ends the copy.
fn neighbour_options(copied: &mut Copied<'_>) -> Option<()> {
    // Ends with the packet: each turn copies eight bytes.
    loop {
        match copied.peek::<2>()? {
            // Addresses of Ethernet, of source and target.
            [1 | 2, 1] => {
                copied.keep::<2>()?;
                let mac = copied.take()?;
                copied.push_mac(mac);
            }
            // The network of a link, with its length, flags and times.
            [3, 4] => {
                let [_, _, bits, ..] = copied.keep::<16>()?;
                let network = copied.take()?;
                copied.push_network(network, bits);
            }
            // The largest packet.
            [5, 1] => {
                copied.keep::<8>()?;
            }
            _ => return None,
        }
    }
}

/// RFC 2784 with the fields of RFC 2890; other versions are not read into.
fn gre(copied: &mut Copied<'_>) -> Then {
    /// There is a route of RFC 1701, which is no longer in use.
    const ROUTED: u8 = 0x40;
    const SUMMED: u8 = 0x80;
    let begins = copied.place();
    let [flags, version, high, low] = copied.keep()?;
    if version & 7 != 0 || flags & ROUTED != 0 {
        return Some(None);
    }
    if flags & SUMMED != 0 {
        copied.checksum(begins, begins + 4, Sum::new());
    }
    for _ in 0..(flags & 0b1011_0000).count_ones() {
        copied.keep::<4>()?;
    }
    Some(Some(Next::EtherType(u16::from_be_bytes([high, low]))))
}

/// RFC 3376; of its reports the list of groups is cut.
fn igmp(copied: &mut Copied<'_>) -> Option<()> {
    let begins = copied.place();
    let [kind, _, _, _] = copied.keep()?;
    copied.checksum(begins, begins + 2, Sum::new());
    if matches!(kind, 0x11 | 0x12 | 0x16 | 0x17) {
        let group = copied.take()?;
        copied.push_v4(group);
    }
    Some(())
}

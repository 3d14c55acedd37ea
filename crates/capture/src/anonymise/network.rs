//! IP of both versions with other addresses, without options that name hosts.

use std::net::IpAddr;

use plumb_wire::checksum::{Sum, pseudo_header};

use super::copied::Copied;
use super::transport;
use crate::packet::numbers::protocol::{
    AUTHENTICATION, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, NO_NEXT, ROUTING,
};

pub(super) use super::transport::Next;

/// What comes behind a header that was copied, if it is copied too; `None` where the header was not whole.
type Then = Option<Option<Next>>;

/// An option of IPv4 that says nothing (RFC 791, section 3.1).
const NO_OPERATION: u8 = 1;

/// IP of the version that its first half byte has.
pub(super) fn ip(copied: &mut Copied<'_>) -> Then {
    match copied.peek::<1>()?[0] >> 4 {
        4 => ipv4(copied),
        6 => ipv6(copied),
        _ => None,
    }
}

fn ipv4(copied: &mut Copied<'_>) -> Then {
    const HEADER: usize = 20;
    let begins = copied.place();
    let wire = copied.wire();
    let [head @ .., protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = copied.peek::<HEADER>()?;
    let [first, _, t0, t1, _, _, f0, f1, _] = head;
    let length = usize::from(first & 0x0f) * 4;
    let total = match u32::from(u16::from_be_bytes([t0, t1])) {
        // The network card was to write it.
        0 => wire,
        total => total,
    };
    let carried = total.checked_sub(length as u32)?;
    let options = length.checked_sub(HEADER)?;
    copied.end_after(total);
    copied.take::<HEADER>()?;
    copied.push(&head);
    copied.push(&[protocol, 0, 0]);
    let source = copied.push_v4([s0, s1, s2, s3]);
    let destination = copied.push_v4([d0, d1, d2, d3]);
    // Record Route and the like have addresses.
    let there = copied.part(options).len();
    copied.push(&vec![NO_OPERATION; there]);
    copied.checksum_now(begins, begins + 10);
    let later = u16::from_be_bytes([f0, f1]) & 0x1fff != 0;
    if there < options || later {
        return Some(None);
    }
    let pseudo = pseudo(source, destination, protocol, carried);
    transport::copy(protocol, pseudo, copied)
}

fn ipv6(copied: &mut Copied<'_>) -> Then {
    let fixed = copied.keep::<8>()?;
    let [_, _, _, _, p0, p1, mut next, _] = fixed;
    let (source, destination) = (copied.take()?, copied.take()?);
    let source = copied.push_v6(source);
    let destination = copied.push_v6(destination);
    let mut carried = match u32::from(u16::from_be_bytes([p0, p1])) {
        0 => copied.wire(),
        payload => payload,
    };
    copied.end_after(carried);
    // Ends with the headers of that kind: each turn copies eight bytes at least.
    while let HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | AUTHENTICATION | FRAGMENT = next {
        let [after, length] = copied.peek::<2>()?;
        let (length, kept) = match next {
            FRAGMENT => (8, 8),
            // Type and segments left, without addresses (RFC 8200, section 4.4).
            ROUTING => ((usize::from(length) + 1) * 8, 4),
            // Up to the sequence number, without the check value (RFC 4302, section 2).
            AUTHENTICATION => ((usize::from(length) + 2) * 4, 12),
            // Zeros are options that say nothing (Pad1: RFC 8200, section 4.2).
            _ => ((usize::from(length) + 1) * 8, 2),
        };
        let header = copied.part(length);
        let whole = header.len() == length;
        let kept = header.get(..kept.min(header.len())).unwrap_or_default();
        copied.push(kept);
        copied.push(&vec![0; header.len() - kept.len()]);
        let place = header.get(2..4).and_then(|place| place.try_into().ok());
        let later = next == FRAGMENT && u16::from_be_bytes(place.unwrap_or_default()) & 0xfff8 != 0;
        if !whole || later {
            return Some(None);
        }
        carried = carried.checked_sub(length as u32)?;
        next = after;
    }
    if next == NO_NEXT {
        return Some(None);
    }
    transport::copy(next, pseudo(source, destination, next, carried), copied)
}

/// The sum of the pseudo-header, of the other addresses.
fn pseudo<A: Into<IpAddr>>(source: A, destination: A, protocol: u8, length: u32) -> Sum {
    pseudo_header(source.into(), destination.into(), protocol, length)
}

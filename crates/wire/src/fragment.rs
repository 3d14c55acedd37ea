//! Cutting an IPv4 packet into fragments, as a router does (RFC 791 section 3.2).

use crate::checksum;
use crate::ip::IpPacket;

/// Where the header has its fields, in bytes (RFC 791 section 3.1).
const LENGTH: usize = 2;
const FRAGMENT: usize = 6;
const CHECKSUM: usize = 10;
/// Length of the header without options, in bytes.
const HEADER: usize = 20;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Fragments of at most `mtu` bytes each; `None` when the packet must not or cannot be cut: it
/// is no whole IPv4 packet, says "don't fragment", or its header leaves no room for eight bytes.
/// A checksum that covers the payload must be complete.
pub fn fragment(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let ip = IpPacket::parse(packet)?;
    if ip.dont_fragment() || ip.total_len() != packet.len() {
        return None;
    }
    let (header, payload) = packet.split_at_checked(ip.header_len())?;
    let later_header = header_of_later(header);
    let field = u16::from_be_bytes(*header.get(FRAGMENT..)?.first_chunk()?);
    let (mut offset, more) = (field & OFFSET, field & MORE_FRAGMENTS);

    let mut fragments = Vec::new();
    let mut rest = payload;
    let mut header = header.to_vec();
    while !rest.is_empty() {
        // All but the last are whole eights, which the offset counts in.
        let room = mtu.checked_sub(header.len())?;
        let length = if rest.len() <= room {
            rest.len()
        } else {
            room / 8 * 8
        };
        let (part, after) = rest.split_at_checked(length).filter(|_| length > 0)?;
        let flags = if after.is_empty() {
            more
        } else {
            MORE_FRAGMENTS
        };
        let mut fragment = header;
        let total = u16::try_from(fragment.len() + part.len()).ok()?;
        put(&mut fragment, LENGTH, total);
        put(&mut fragment, FRAGMENT, flags | offset);
        put(&mut fragment, CHECKSUM, 0);
        let sum = checksum::checksum(&fragment);
        put(&mut fragment, CHECKSUM, sum);
        fragment.extend_from_slice(part);
        fragments.push(fragment);
        offset = offset.wrapping_add((length / 8) as u16) & OFFSET;
        header = later_header.clone();
        rest = after;
    }
    Some(fragments)
}

/// The header of the fragments after the first: of the options only those that say so by their
/// highest bit, padded to whole words.
fn header_of_later(header: &[u8]) -> Vec<u8> {
    /// The end of the list, and the option that does nothing; both are one byte.
    const END: u8 = 0;
    const NOP: u8 = 1;
    const COPIED: u8 = 0x80;
    let (fixed, mut options) = header.split_at_checked(HEADER).unwrap_or((header, &[]));
    let mut later = fixed.to_vec();
    while let [kind, rest @ ..] = options {
        if *kind == END {
            break;
        }
        if *kind == NOP {
            options = rest;
            continue;
        }
        let length = usize::from(*rest.first().unwrap_or(&0));
        let Some((option, after)) = options.split_at_checked(length).filter(|_| length >= 2) else {
            break;
        };
        if kind & COPIED != 0 {
            later.extend_from_slice(option);
        }
        options = after;
    }
    later.resize(later.len().next_multiple_of(4), END);
    let words = (later.len() / 4) as u8; // at most fifteen: not longer than the first's
    if let Some(version_and_words) = later.first_mut() {
        *version_and_words = 0x40 | words;
    }
    later
}

fn put(packet: &mut [u8], at: usize, value: u16) {
    if let Some(field) = packet.get_mut(at..).and_then(|p| p.first_chunk_mut::<2>()) {
        *field = value.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    /// Options of whole words.
    fn packet(options: &[u8], payload: &[u8], field: u16) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, 17, 0, 0];
        p.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        p.extend(options);
        p[0] = 0x40 | (p.len() / 4) as u8;
        let total = (p.len() + payload.len()) as u16;
        put(&mut p, LENGTH, total);
        put(&mut p, FRAGMENT, field);
        let sum = checksum::checksum(&p);
        put(&mut p, CHECKSUM, sum);
        p.extend(payload);
        p
    }

    fn field(p: &[u8]) -> u16 {
        u16::from_be_bytes([p[6], p[7]])
    }

    #[test]
    fn the_parts_are_whole_eights() {
        let payload: Vec<u8> = (0..=255).cycle().take(3000).collect();
        let parts = fragment(&packet(&[], &payload, 0), 1402).unwrap();
        // 1382 bytes of room are 172 eights: 1376.
        assert_eq!(
            parts.iter().map(Vec::len).collect::<Vec<_>>(),
            [1396, 1396, 268]
        );
        assert_eq!(
            parts.iter().map(|p| field(p)).collect::<Vec<_>>(),
            [0x2000, 0x2000 | 172, 344]
        );
    }

    #[test]
    fn some_options_are_only_in_the_first() {
        // Record route is not copied, loose source route is (RFC 791 section 3.1).
        let options = [7, 7, 4, 1, 2, 3, 4, 131, 7, 4, 5, 6, 7, 8, 1, 0];
        let parts = fragment(&packet(&options, &[0; 64], 0), 60).unwrap();
        assert_eq!(
            parts.iter().map(|p| p[0] & 15).collect::<Vec<_>>(),
            [9, 7, 7]
        );
        assert_eq!(parts[1][20..28], [131, 7, 4, 5, 6, 7, 8, 0]);
    }

    #[test]
    fn what_must_not_be_cut() {
        assert_eq!(fragment(&packet(&[], &[0; 99], 0x4000), 60), None);
        assert_eq!(fragment(&packet(&[], &[0; 99], 0), 27), None);
        assert_eq!(fragment(&packet(&[], &[0; 99], 0)[..100], 60), None);
        assert_eq!(fragment(&[0x60; 100], 60), None);
    }

    proptest! {
        #[test]
        fn the_parts_join_to_the_whole(size in 1usize..4000, mtu in 68usize..1500, words in 0usize..10, middle: bool) {
            let payload: Vec<u8> = (0..=255).cycle().take(size).collect();
            let whole = packet(&vec![1; words * 4], &payload, if middle { 0x2007 } else { 0 });
            let parts = fragment(&whole, mtu).unwrap();
            let mut joined = Vec::new();
            for (i, part) in parts.iter().enumerate() {
                let ip = IpPacket::parse(part).unwrap();
                prop_assert!(part.len() <= mtu && ip.total_len() == part.len());
                prop_assert_eq!(checksum::checksum(&part[..ip.header_len()]), 0);
                prop_assert_eq!(usize::from(field(part) & OFFSET) * 8, joined.len() + if middle { 56 } else { 0 });
                prop_assert_eq!(field(part) & MORE_FRAGMENTS != 0, middle || i + 1 < parts.len());
                joined.extend_from_slice(ip.payload());
            }
            prop_assert_eq!(joined, payload);
        }

        #[test]
        fn arbitrary_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), words in 0u8..16, mtu in 0usize..100) {
            let length = bytes.len() as u16;
            if let Some(b) = bytes.first_mut() { *b = 0x40 | words; }
            put(&mut bytes, LENGTH, length);
            for part in fragment(&bytes, mtu).unwrap_or_default() {
                prop_assert!(part.len() <= mtu);
                prop_assert!(IpPacket::parse(&part).is_some());
            }
        }
    }
}

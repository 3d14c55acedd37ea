//! TCP options (RFC 9293 section 3.1) as middleboxes change them. The packet's checksum must be
//! complete, and is kept right.

use std::ops::Range;

use crate::ip::IpPacket;
use crate::rewrite::replace;

/// Maximum segment size (RFC 9293 section 3.7.1).
pub const MSS: u8 = 2;
/// Window scale (RFC 7323 section 2).
pub const WINDOW_SCALE: u8 = 3;
/// Selective acknowledgements are understood (RFC 2018 section 2).
pub const SACK_PERMITTED: u8 = 4;
/// Timestamps (RFC 7323 section 3).
pub const TIMESTAMPS: u8 = 8;
/// Multipath TCP (RFC 8684 section 3).
pub const MPTCP: u8 = 30;
/// Fast Open (RFC 7413 section 4.1.1).
pub const FAST_OPEN: u8 = 34;

/// The end of the list, and the option that does nothing; both are one byte.
const END: u8 = 0;
const NOP: u8 = 1;

/// Where the checksum is in the TCP header, in bytes.
const CHECKSUM: usize = 16;
/// Length of the TCP header without options, in bytes.
const HEADER: usize = 20;

/// Puts NOPs in the place of all options of these kinds; `true` when there were any.
pub fn strip(packet: &mut [u8], kinds: &[u8]) -> bool {
    let mut changed = false;
    let (tcp, options) = options(packet);
    for (kind, range) in options {
        if kinds.contains(&kind) {
            let nops = vec![NOP; range.len()];
            replace(packet, range.start, &nops, tcp, tcp + CHECKSUM);
            changed = true;
        }
    }
    changed
}

/// Lowers the maximum segment size to `bytes` when it is more; `true` when it was. A packet
/// without the option is left so.
pub fn clamp_mss(packet: &mut [u8], bytes: u16) -> bool {
    let mut changed = false;
    let (tcp, options) = options(packet);
    for (kind, range) in options {
        let value = range.start + 2;
        let old = packet
            .get(value..range.end)
            .and_then(|v| <[u8; 2]>::try_from(v).ok());
        if kind == MSS && old.is_some_and(|old| u16::from_be_bytes(old) > bytes) {
            replace(packet, value, &bytes.to_be_bytes(), tcp, tcp + CHECKSUM);
            changed = true;
        }
    }
    changed
}

/// The kinds of options that a packet has, in their order.
pub fn kinds(packet: &[u8]) -> Vec<u8> {
    let (_, options) = options(packet);
    options.into_iter().map(|(kind, _)| kind).collect()
}

/// The maximum segment size that a TCP segment announces, which begins with its header; `None`
/// where it announces none, or is cut before.
pub fn mss(segment: &[u8]) -> Option<u16> {
    let length = usize::from(segment.get(12)? >> 4) * 4;
    let options = within(segment, HEADER..length.min(segment.len()));
    options.into_iter().find_map(|(kind, range)| {
        let value = segment.get(range.start + 2..range.end)?;
        (kind == MSS).then_some(u16::from_be_bytes(value.try_into().ok()?))
    })
}

/// What a SYN or SYN-ACK offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// Maximum segment size in bytes.
    pub mss_bytes: Option<u16>,
    /// Window scale: the power of two.
    pub window_scale: Option<u8>,
    /// The kinds of all options, in their order, without padding.
    pub kinds: Vec<u8>,
}

/// Reads all options of a TCP segment, from its header on; `None` when the header is cut.
pub fn offered(segment: &[u8]) -> Option<Offered> {
    let length = usize::from(segment.get(12)? >> 4) * 4;
    segment.get(HEADER..length)?;
    let mut offered = Offered {
        mss_bytes: mss(segment),
        ..Offered::default()
    };
    for (kind, range) in within(segment, HEADER..length) {
        if kind == WINDOW_SCALE {
            offered.window_scale = segment
                .get(range.start + 2..range.end)
                .and_then(|v| v.first().copied());
        }
        offered.kinds.push(kind);
    }
    Some(offered)
}

/// Where the TCP header begins, and the options with where they are, up to the first that is
/// not whole.
fn options(packet: &[u8]) -> (usize, Vec<(u8, Range<usize>)>) {
    let header =
        IpPacket::parse(packet).and_then(|ip| Some((ip.header_len(), ip.tcp_header_len()?)));
    let Some((tcp, length)) = header else {
        return (0, Vec::new());
    };
    (tcp, within(packet, tcp + HEADER..tcp + length))
}

/// The options in a range of bytes.
fn within(bytes: &[u8], range: Range<usize>) -> Vec<(u8, Range<usize>)> {
    let mut found = Vec::new();
    let (mut at, end) = (range.start, range.end);
    while at < end {
        match bytes.get(at..end) {
            Some([NOP, ..]) => at += 1,
            Some([kind, length, ..]) if *kind != END => {
                let next = at + usize::from(*length);
                if *length < 2 || next > end {
                    break;
                }
                found.push((*kind, at..next));
                at = next;
            }
            _ => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::ip::TCP;
    use crate::rewrite::tests::{ipv4, is_sound};
    use proptest::prelude::*;

    #[test]
    fn the_maximum_segment_size_is_read() {
        let packet = syn(&[4, 2, 2, 4, 5, 0xb4, 1, 1]);
        assert_eq!(mss(&packet[20..]), Some(1460));
        assert_eq!(mss(&packet[20..44]), None, "cut in the middle of it");
        assert_eq!(mss(&syn(&[4, 2, 0, 0])[20..]), None);
        assert_eq!(mss(&[0; 12]), None);
    }

    fn syn(options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x02, 1, 0];
        tcp.resize(20, 0);
        tcp[12] = ((20 + options.len()) / 4 * 16) as u8;
        tcp.extend(options);
        ipv4(TCP, &tcp)
    }

    /// As Linux sends them: MSS 1460, SACK permitted, timestamps, NOP, window scale 7.
    const LINUX: [u8; 20] = [
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7,
    ];

    #[test]
    fn stripped_options_are_nops() {
        let mut p = syn(&LINUX);
        assert_eq!(kinds(&p), [MSS, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE]);
        assert!(strip(&mut p, &[WINDOW_SCALE, SACK_PERMITTED]));
        assert!(is_sound(&p));
        assert_eq!(
            p[40..],
            [
                2, 4, 0x05, 0xb4, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1, 1, 1
            ]
        );
        assert!(!strip(&mut p, &[WINDOW_SCALE]));
        assert!(strip(&mut p, &[TIMESTAMPS]) && is_sound(&p));
        assert_eq!(kinds(&p), [MSS]);
    }

    #[test]
    fn the_mss_is_only_lowered() {
        let mut p = syn(&LINUX);
        assert!(!clamp_mss(&mut p, 1460));
        assert!(clamp_mss(&mut p, 1300));
        assert!(is_sound(&p));
        assert_eq!(p[42..44], 1300u16.to_be_bytes());
        // At an odd place, too.
        let mut p = syn(&[1, 2, 4, 0x05, 0xb4, 1, 1, 1]);
        assert!(clamp_mss(&mut p, 536) && is_sound(&p));
    }

    #[test]
    fn an_offer_is_read() {
        let read = offered(&syn(&LINUX)[20..]).unwrap();
        assert_eq!((read.mss_bytes, read.window_scale), (Some(1460), Some(7)));
        assert_eq!(read.kinds, [MSS, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE]);
    }

    proptest! {
        #[test]
        fn whatever_the_options_are(
            words in proptest::collection::vec(any::<[u8; 4]>(), 0..10), stripped in proptest::collection::vec(2u8..40, 0..4), mss: u16,
        ) {
            let options = words.concat();
            let mut p = syn(&options);
            let length = p.len();
            strip(&mut p, &stripped);
            clamp_mss(&mut p, mss);
            prop_assert!(is_sound(&p));
            prop_assert_eq!(p.len(), length);
            prop_assert!(!kinds(&p).iter().any(|kind| stripped.contains(kind)));
        }

        #[test]
        fn what_is_offered_is_what_the_packet_has(words in proptest::collection::vec(any::<[u8; 4]>(), 0..10), cut in 0usize..70) {
            let p = syn(&words.concat());
            let read = offered(&p[20..]).unwrap();
            prop_assert!(read.kinds.starts_with(&kinds(&p)));
            let _ = offered(p.get(20..20 + cut).unwrap_or_default());
        }

        #[test]
        fn arbitrary_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), v6: bool) {
            if let Some(b) = bytes.first_mut() { *b = if v6 { 0x60 } else { 0x45 }; }
            if let Some(b) = bytes.get_mut(if v6 { 6 } else { 9 }) { *b = TCP; }
            strip(&mut bytes, &[WINDOW_SCALE, TIMESTAMPS]);
            clamp_mss(&mut bytes, 100);
        }
    }
}

//! Reading the ICMP and ICMPv6 errors that a probe causes on its path (RFC 792, RFC 4443): what happened, the packet
//! that they quote, and the MPLS labels that it bore (RFC 4884, RFC 4950).

use crate::checksum;
use crate::icmp::Version;

/// Bytes of an ICMP error before the packet that it quotes.
const HEADER_BYTES: usize = 8;
/// Where extensions begin in the quotation of routers that do not say its length (RFC 4884
/// section 5.5), in bytes.
const COMPATIBLE_QUOTE_BYTES: usize = 128;
/// Bytes of an extension structure's header and of an object's (RFC 4884 section 7).
const EXTENSION_HEADER_BYTES: usize = 4;
const OBJECT_HEADER_BYTES: usize = 4;
/// Class and type of the MPLS label stack (RFC 4950 section 3).
const MPLS_STACK: (u8, u8) = (1, 1);
/// Labels that are looked at: deeper stacks do not occur.
const MAX_LABELS: usize = 16;

/// What an ICMP error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Report {
    /// The time to live reached zero on the path (code 0), or fragments were missing (code 1).
    TimeExceeded(u8),
    /// The packet was not delivered; the code says why, in the words of the protocol's version.
    Unreachable(u8),
    /// The packet is larger than the next line carries.
    TooBig {
        /// What that carries, in bytes; zero from routers older than RFC 1191.
        mtu_bytes: u32,
    },
    /// A header made no sense.
    ParameterProblem(u8),
}

impl Report {
    /// What the type and code of a message say; `None` for those that are no such errors. `word`
    /// is the message's second 32-bit word, which holds the MTU.
    pub fn of(version: Version, kind: u8, code: u8, word: u32) -> Option<Self> {
        Some(match (version, kind, code) {
            (Version::V4, 3, 4) => Self::TooBig {
                mtu_bytes: word & 0xffff,
            },
            (Version::V4, 3, _) | (Version::V6, 1, _) => Self::Unreachable(code),
            (Version::V6, 2, _) => Self::TooBig { mtu_bytes: word },
            (Version::V4, 11, _) | (Version::V6, 3, _) => Self::TimeExceeded(code),
            (Version::V4, 12, _) | (Version::V6, 4, _) => Self::ParameterProblem(code),
            _ => return None,
        })
    }

    /// Whether the far host itself says that nothing listens on the port, so that the packet
    /// arrived.
    pub fn is_port_unreachable(self, version: Version) -> bool {
        match version {
            Version::V4 => self == Self::Unreachable(3),
            Version::V6 => self == Self::Unreachable(4),
        }
    }

    /// traceroute's mark for it: `!H` host, `!N` network, `!P` protocol, `!S` source route failed,
    /// `!F` fragmentation needed, `!X` prohibited, `!V` host precedence, `!C` precedence cutoff,
    /// `!A` (IPv6) beyond scope or rejected, `!<code>` for others; `None` where the packet arrived
    /// or only its time ended.
    pub fn annotation(self, version: Version) -> Option<String> {
        let text = match (version, self) {
            (_, Self::TimeExceeded(_)) => return None,
            _ if self.is_port_unreachable(version) => return None,
            (_, Self::TooBig { mtu_bytes }) => format!("!F-{mtu_bytes}"),
            (_, Self::ParameterProblem(code)) => format!("!<p{code}>"),
            (Version::V4, Self::Unreachable(code)) => match code {
                0 | 6 | 11 => "!N".to_owned(),
                1 | 7 | 8 | 12 => "!H".to_owned(),
                2 => "!P".to_owned(),
                5 => "!S".to_owned(),
                9 | 10 | 13 => "!X".to_owned(),
                14 => "!V".to_owned(),
                15 => "!C".to_owned(),
                other => format!("!<{other}>"),
            },
            (Version::V6, Self::Unreachable(code)) => match code {
                0 => "!N".to_owned(),
                1 => "!X".to_owned(),
                2 => "!S".to_owned(),
                3 => "!H".to_owned(),
                5 | 6 => "!A".to_owned(),
                other => format!("!<{other}>"),
            },
        };
        Some(text)
    }
}

/// One entry of an MPLS label stack (RFC 3032 section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MplsLabel {
    /// The label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits (RFC 5462).
    pub traffic_class: u8,
    /// Whether it is the bottom of the stack.
    pub bottom: bool,
    pub ttl: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcmpReport<'a> {
    pub report: Report,
    /// The beginning of the packet that it is about, from the IP header on.
    pub quote: &'a [u8],
    /// The labels that the packet bore, the outermost first; empty without MPLS.
    pub labels: Vec<MplsLabel>,
}

impl<'a> IcmpReport<'a> {
    /// Reads a message without its IP header; `None` when it is no error, is cut before the
    /// quotation, or (ICMP) its checksum is wrong. The kernel verifies the checksum of ICMPv6.
    pub fn parse(version: Version, message: &'a [u8]) -> Option<Self> {
        let (header, body) = message.split_first_chunk::<HEADER_BYTES>()?;
        if version == Version::V4 && checksum::checksum(message) != 0 {
            return None;
        }
        let [kind, code, _, _, w0, w1, w2, w3] = *header;
        let report = Report::of(version, kind, code, u32::from_be_bytes([w0, w1, w2, w3]))?;
        // RFC 4884 section 3: in words of 32 bits in ICMP, of 64 bits in ICMPv6; of the messages
        // that have a length at all.
        let told = match (version, report) {
            (Version::V4, Report::TooBig { .. }) => usize::from(w1) * 4,
            (_, Report::TooBig { .. }) | (Version::V6, Report::ParameterProblem(_)) => 0,
            (Version::V4, _) => usize::from(w1) * 4,
            (Version::V6, _) => usize::from(w0) * 8,
        };
        let (quote, extensions) = match body.split_at_checked(told) {
            Some((quote, extensions)) if told > 0 => (quote, extensions),
            _ => match body.split_at_checked(COMPATIBLE_QUOTE_BYTES) {
                Some((quote, extensions)) if is_extensions(extensions) => (quote, extensions),
                _ => (body, [].as_slice()),
            },
        };
        Some(Self {
            report,
            quote,
            labels: labels(extensions),
        })
    }
}

/// Whether bytes are an extension structure of version 2 with a right checksum (RFC 4884 section 7).
fn is_extensions(bytes: &[u8]) -> bool {
    let Some([version, _, c0, c1]) = bytes.first_chunk::<EXTENSION_HEADER_BYTES>() else {
        return false;
    };
    // A checksum of zero means that there is none, which proves nothing about these bytes.
    version >> 4 == 2 && [*c0, *c1] != [0, 0] && checksum::checksum(bytes) == 0
}

/// The label stack among the objects of an extension structure.
fn labels(extensions: &[u8]) -> Vec<MplsLabel> {
    let mut found = Vec::new();
    if !is_extensions(extensions) {
        return found;
    }
    let mut rest = extensions.get(EXTENSION_HEADER_BYTES..).unwrap_or_default();
    while let Some([l0, l1, class, kind]) = rest.first_chunk::<OBJECT_HEADER_BYTES>() {
        let length = usize::from(u16::from_be_bytes([*l0, *l1]));
        let Some(object) = rest.get(OBJECT_HEADER_BYTES..length) else {
            break;
        };
        if (*class, *kind) == MPLS_STACK {
            for entry in object.as_chunks::<4>().0 {
                if found.len() < MAX_LABELS {
                    found.push(label(u32::from_be_bytes(*entry)));
                }
            }
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

fn label(entry: u32) -> MplsLabel {
    MplsLabel {
        label: entry >> 12,
        traffic_class: (entry >> 9 & 7) as u8,
        bottom: entry >> 8 & 1 == 1,
        ttl: entry as u8,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, code: u8, word: [u8; 4], body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, code, 0, 0];
        bytes.extend(word);
        bytes.extend(body);
        let sum = checksum::checksum(&bytes).to_be_bytes();
        bytes[2..4].copy_from_slice(&sum);
        bytes
    }

    fn extensions(entries: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0x20, 0, 0, 0];
        bytes.extend((4 + 4 * entries.len() as u16).to_be_bytes());
        bytes.extend([1, 1]);
        entries.iter().for_each(|e| bytes.extend(e.to_be_bytes()));
        let sum = checksum::checksum(&bytes).to_be_bytes();
        bytes[2..4].copy_from_slice(&sum);
        bytes
    }

    #[test]
    fn an_error_and_its_quotation() {
        let bytes = message(11, 0, [0; 4], &[0x45; 28]);
        let read = IcmpReport::parse(Version::V4, &bytes).unwrap();
        assert_eq!(read.report, Report::TimeExceeded(0));
        assert_eq!((read.quote, read.labels), ([0x45; 28].as_slice(), vec![]));
        let bytes = message(3, 4, [0, 0, 0x05, 0x78], &[0x45; 28]);
        let read = IcmpReport::parse(Version::V4, &bytes).unwrap();
        assert_eq!(read.report, Report::TooBig { mtu_bytes: 1400 });
        let bytes = message(2, 0, [0, 0, 0x05, 0], &[0x60; 60]);
        let read = IcmpReport::parse(Version::V6, &bytes).unwrap();
        assert_eq!(read.report, Report::TooBig { mtu_bytes: 1280 });
        // An echo reply is none, and neither is a damaged message.
        assert!(IcmpReport::parse(Version::V4, &message(0, 0, [0; 4], &[0; 28])).is_none());
        let mut damaged = message(11, 0, [0; 4], &[0x45; 28]);
        damaged[20] ^= 1;
        assert!(IcmpReport::parse(Version::V4, &damaged).is_none());
    }

    #[test]
    fn labels_behind_a_length_and_where_old_routers_put_them() {
        let stack = extensions(&[(16001 << 12) | (5 << 9) | 3, (24 << 12) | (1 << 8) | 1]);
        let wanted = vec![
            MplsLabel {
                label: 16001,
                traffic_class: 5,
                bottom: false,
                ttl: 3,
            },
            MplsLabel {
                label: 24,
                traffic_class: 0,
                bottom: true,
                ttl: 1,
            },
        ];
        let body = [vec![0x45; 128], stack].concat();
        for (version, kind, word) in [
            (Version::V4, 11, [0, 32, 0, 0]),
            (Version::V4, 11, [0; 4]),
            (Version::V6, 3, [16, 0, 0, 0]),
            (Version::V6, 3, [0; 4]),
        ] {
            let bytes = message(kind, 0, word, &body);
            let read = IcmpReport::parse(version, &bytes).unwrap();
            assert_eq!(read.labels, wanted, "{version:?} {word:?}");
            assert_eq!(read.quote.len(), 128);
        }
        // What only looks like extensions is a part of the quotation.
        let mut body = body;
        body[140] ^= 1;
        let bytes = message(11, 0, [0; 4], &body);
        let read = IcmpReport::parse(Version::V4, &bytes).unwrap();
        assert_eq!((read.quote.len(), read.labels.len()), (body.len(), 0));
    }

    #[test]
    fn annotations_are_those_of_traceroute() {
        let v4 = |code| Report::Unreachable(code).annotation(Version::V4);
        let v6 = |code| Report::Unreachable(code).annotation(Version::V6);
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(
            (v4(0), v4(1), v4(2), v4(3)),
            (of("!N"), of("!H"), of("!P"), None)
        );
        assert_eq!(
            (v4(5), v4(13), v4(14), v4(15)),
            (of("!S"), of("!X"), of("!V"), of("!C"))
        );
        assert_eq!(v4(99), of("!<99>"));
        assert_eq!(
            (v6(0), v6(1), v6(2), v6(3)),
            (of("!N"), of("!X"), of("!S"), of("!H"))
        );
        assert_eq!(
            (v6(4), v6(5), v6(6), v6(7)),
            (None, of("!A"), of("!A"), of("!<7>"))
        );
        let big = Report::TooBig { mtu_bytes: 1400 };
        assert_eq!(big.annotation(Version::V4), of("!F-1400"));
        assert_eq!(Report::TimeExceeded(0).annotation(Version::V6), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(kind in 0u8..16, word: [u8; 4], body in proptest::collection::vec(any::<u8>(), 0..300), v6: bool) {
            let bytes = message(kind, 0, word, &body);
            let version = if v6 { Version::V6 } else { Version::V4 };
            if let Some(read) = IcmpReport::parse(version, &bytes) {
                prop_assert!(read.quote.len() <= body.len());
                prop_assert!(read.labels.len() <= MAX_LABELS);
            }
            let _ = IcmpReport::parse(version, &body);
        }

        #[test]
        fn any_extensions_are_survived(entries in proptest::collection::vec(any::<u32>(), 0..40), cut in 0usize..200) {
            let mut bytes = extensions(&entries);
            prop_assert_eq!(labels(&bytes).len(), entries.len().min(MAX_LABELS));
            bytes.truncate(cut);
            let _ = labels(&bytes);
        }
    }
}

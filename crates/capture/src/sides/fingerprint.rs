//! What of a packet is the same at both places, whatever the path may change: not addresses and ports, which are translated,
//! nor TTL, DSCP, ECN, checksums and options of TCP.

use std::hash::{BuildHasher as _, Hasher as _};

use plumb_wire::checksum::pseudo_header;
use plumb_wire::ip::{ACK, FIN, RST, SYN};
use plumb_wire::tcp_options::MSS;

use crate::packet::{Address, Packet, Segment, Transport, flags};
use crate::table::Seeded;

/// Bytes of payload that are compared: as many as a capture of 96 bytes has of every UDP packet (14 of Ethernet, 40 of IPv6, 8 of
/// UDP).
const COMPARED_BYTES: usize = 32;
/// Bytes of a header of UDP, and of ICMP up to what follows its checksum.
const UDP_HEADER: usize = 8;
const ICMP_HEADER: usize = 4;
/// Echo, in both versions of ICMP (RFC 792, RFC 4443).
const ECHOES: [(bool, u8); 4] = [(false, 8), (false, 0), (true, 128), (true, 129)];

/// An address with a port; 0 where there are none.
pub(super) type End = (Address, u16);

/// What is compared of a packet, and what may be changed of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    pub(super) ns: u64,
    /// Addresses and ports of source and destination.
    pub(super) ends: [End; 2],
    /// Identification of IPv4, 0 where there is none.
    pub(super) ident: u16,
    /// Timestamp of TCP, from the segment's option.
    pub(super) stamp: Option<u32>,
    pub(super) ttl: u8,
    pub(super) traffic_class: u8,
    /// Checksum of the transport, where it covers the packet that was on the wire.
    pub(super) checksum: Option<u16>,
    /// The network card is to write the checksum, behind the capture.
    pub(super) unwritten: bool,
    pub(super) body: Body,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Body {
    Tcp(Numbers),
    /// What was hashed before.
    Other(u64),
}

/// What of a segment is the same at both places, but for rewritten sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) payload_bytes: u32,
    pub(super) option_bytes: u32,
    pub(super) syn: Option<Syn>,
}

/// What a SYN offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Syn {
    pub(super) mss: Option<u16>,
    /// The kinds of its options below 64, a bit each.
    pub(super) kinds: u64,
}

impl Summary {
    /// Of a packet of IP; `None` of any other.
    pub(super) fn of(packet: &Packet<'_>, ns: u64, seed: &Seeded) -> Option<Self> {
        let network = packet.network?;
        let mut summary = Self {
            ns,
            ends: [(network.source, 0), (network.destination, 0)],
            ident: network.ident,
            stamp: None,
            ttl: network.ttl,
            traffic_class: network.traffic_class,
            checksum: None,
            unwritten: false,
            body: Body::Other(0),
        };
        let carried = packet.carried;
        summary.body = match packet.transport {
            Transport::Tcp(segment) => {
                summary.with_ports(segment.ports);
                summary.checksum = field(carried, 16);
                summary.stamp = segment.options.timestamps().map(|[value, _]| value);
                Body::Tcp(Numbers::of(&segment))
            }
            Transport::Udp { ports, .. } => {
                summary.with_ports(ports);
                summary.checksum = field(carried, 6).filter(|sum| *sum != 0);
                let length = field(carried, 4).unwrap_or(0);
                let payload = carried.get(UDP_HEADER..).unwrap_or_default();
                hashed(seed, [17, u64::from(length)], payload)
            }
            Transport::Icmp {
                v6,
                kind,
                code,
                body,
            } => {
                let what = u64::from(kind) << 8 | u64::from(code);
                let length = u64::from(packet.carried_bytes);
                let compared = match ECHOES.contains(&(v6, kind)) {
                    // All but the identifier, which is translated as a port is.
                    true => body.get(2..),
                    // Of what an error quotes, the length and the identification.
                    false => body.get(ICMP_HEADER + 2..ICMP_HEADER + 6),
                };
                hashed(seed, [1 << 16 | what, length], compared.unwrap_or(body))
            }
            Transport::Other | Transport::None => {
                let what = 2 << 16 | u64::from(network.protocol);
                hashed(seed, [what, u64::from(packet.carried_bytes)], carried)
            }
        };
        // Until then Linux keeps the sum of the pseudo-header in its place (CHECKSUM_PARTIAL, include/linux/skbuff.h).
        let pseudo = pseudo_header(
            network.source.ip(),
            network.destination.ip(),
            network.protocol,
            packet.carried_bytes,
        );
        summary.unwritten = summary.checksum == Some(pseudo.folded());
        Some(summary)
    }

    fn with_ports(&mut self, ports: [u16; 2]) {
        for (end, port) in self.ends.iter_mut().zip(ports) {
            end.1 = port;
        }
    }

    /// The hash of what is compared; `shifts` is what was added to the sequence numbers of the two directions, the packet's own
    /// first.
    pub(super) fn key(&self, shifts: [u32; 2], seed: &Seeded) -> u64 {
        let [own, other] = shifts;
        match self.body {
            Body::Other(hash) => hash,
            Body::Tcp(numbers) => {
                let mut hasher = seed.build_hasher();
                let seq = u64::from(numbers.seq.wrapping_sub(own));
                hasher.write_u64(seq << 32 | u64::from(numbers.acknowledged(other)));
                let kept = numbers.flags & (SYN | FIN | RST | ACK);
                let rest = u64::from(kept) << 48 | u64::from(numbers.window) << 32;
                hasher.write_u64(rest | u64::from(numbers.payload_bytes));
                hasher.finish()
            }
        }
    }

    /// What a SYN is found by where its sequence number was rewritten: a SYN by its identification, the answer by what it
    /// acknowledges.
    pub(super) fn syn_key(&self, shifts: [u32; 2], seed: &Seeded) -> Option<u64> {
        let Body::Tcp(numbers) = self.body else {
            return None;
        };
        numbers.syn?;
        let [(_, source), (_, destination)] = self.ends;
        let mut hasher = seed.build_hasher();
        if numbers.flags & ACK != 0 {
            hasher.write_u64(1 << 32 | u64::from(numbers.acknowledged(shifts[1])));
            hasher.write_u16(source);
        } else {
            let ident = match self.ident {
                0 => u64::from(self.stamp?),
                ident => u64::from(ident) << 32,
            };
            hasher.write_u64(ident);
            hasher.write_u64(2 << 32 | u64::from(numbers.window));
            hasher.write_u16(destination);
        }
        Some(hasher.finish())
    }

    /// Whether it may be the same packet as another one of the same hash: not where it goes the other way, as an echo of the same
    /// payload does.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let stamps = self.stamp.zip(other.stamp);
        let opposite = self.shared_ends(other) == 0 && {
            let ([a, b], [c, d]) = (self.ends, other.ends);
            a == d || b == c
        };
        stamps.is_none_or(|(one, two)| one == two) && !opposite
    }

    /// How many of its two ends are the same: translation changes one as a rule.
    pub(super) fn shared_ends(&self, other: &Self) -> usize {
        let ends = self.ends.iter().zip(&other.ends);
        ends.filter(|(one, two)| one == two).count()
    }

    /// What a SYN offers, where it is one.
    pub(super) fn syn(&self) -> Option<(u32, Syn)> {
        match self.body {
            Body::Tcp(numbers) => numbers.syn.map(|syn| (numbers.seq, syn)),
            Body::Other(_) => None,
        }
    }
}

impl Numbers {
    fn of(segment: &Segment<'_>) -> Self {
        let syn = segment.has(flags::SYN).then(|| {
            let mut syn = Syn {
                mss: None,
                kinds: 0,
            };
            for (kind, value) in segment.options.all() {
                syn.kinds |= 1_u64.checked_shl(u32::from(kind)).unwrap_or(0);
                if let (MSS, [high, low]) = (kind, value) {
                    syn.mss = Some(u16::from_be_bytes([*high, *low]));
                }
            }
            syn
        });
        Self {
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            payload_bytes: segment.payload_bytes,
            option_bytes: segment.options.bytes(),
            syn,
        }
    }

    /// The acknowledged number as it was before it was rewritten.
    fn acknowledged(&self, shift: u32) -> u32 {
        match self.flags & ACK {
            0 => 0,
            _ => self.ack.wrapping_sub(shift),
        }
    }
}

/// A hash of what a packet is, and of the beginning of its payload.
fn hashed(seed: &Seeded, what: [u64; 2], payload: &[u8]) -> Body {
    let mut hasher = seed.build_hasher();
    for part in what {
        hasher.write_u64(part);
    }
    let compared = payload.get(..COMPARED_BYTES).unwrap_or(payload);
    for part in compared.chunks(8) {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(part) {
            *to = *from;
        }
        hasher.write_u64(u64::from_le_bytes(word));
    }
    Body::Other(hasher.finish())
}

/// Two bytes of a header.
fn field(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_be_bytes(bytes))
}

//! Probes that explore a path, as whole IP packets, and how what comes back names them.
//!
//! All probes of one flow look the same to routers that share traffic over equal paths, as in
//! Paris traceroute (Augustin et al., IMC 2006): the fields that such routers look at are
//! constant, and the number of the probe is in the IPv4 identification and in
//! - ICMP: the sequence number, with a payload that keeps the checksum constant;
//! - UDP: the checksum, with a payload that makes it so;
//! - TCP: the sequence number of the SYN.
//!
//! Every ICMP and UDP probe also has plumb's mark ([`Mark`]), which routers may quote.

use std::net::IpAddr;

use crate::checksum::{self, Sum};
use crate::icmp::{Echo, Kind, MARK_BYTES, Mark, Version};
use crate::ip::{self, ICMP, ICMPV6, IpPacket, TCP, UDP};

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
/// Header of ICMP echo and of UDP.
const SHORT_HEADER_BYTES: usize = 8;
/// A TCP header with the options that a SYN of Linux has.
const SYN_BYTES: usize = 40;
/// The mark, and the word that makes the checksum what it is to be.
const PAYLOAD_BYTES: usize = MARK_BYTES + 2;
/// Largest number of a probe: zero is what the kernel fills in by itself, and one number is left
/// for the UDP checksum that means none (RFC 768).
pub const MAX_NUMBER: u16 = 0xfffe;

/// What a probe is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// ICMP or ICMPv6 echo.
    Icmp {
        /// The identifier of flow 0; the next flow has the next.
        identifier: u16,
    },
    /// UDP to a port on which nothing should listen.
    Udp {
        /// Source port of flow 0; the next flow has the next.
        source_port: u16,
        destination_port: u16,
    },
    Tcp {
        /// Source port of flow 0; the next flow has the next.
        source_port: u16,
        destination_port: u16,
    },
}

/// What all probes of one program to one target have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSet {
    pub source: IpAddr,
    /// The target, of the same version.
    pub destination: IpAddr,
    /// What they are made of.
    pub transport: Transport,
    /// A random number, in the mark; TCP sequence numbers count from it.
    pub session: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// From 1 to [`MAX_NUMBER`].
    pub number: u16,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Which flow, from 0: routers that balance by flow may send another flow over another path.
    pub flow: u16,
    /// Type of service, or traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Size of the whole packet in bytes; raised to [`ProbeSet::min_bytes`], TCP always has that.
    pub size_bytes: u16,
    /// Whether IPv4 routers must not cut it. IPv6 routers never do.
    pub dont_fragment: bool,
    /// Whether a TCP SYN asks for ECN (RFC 3168 section 6.1.1).
    pub ask_ecn: bool,
    /// What fills ICMP and UDP probes that are larger than the smallest.
    pub fill: u8,
}

/// What an answer says of the probe that it is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    pub number: u16,
    /// The flow whose identifier or port it came back to.
    pub flow: u16,
}

/// The maximum segment size that a SYN announces, in bytes: what Ethernet carries, as most hosts do.
pub fn announced_mss(v4: bool) -> u16 {
    let ip_header_bytes = if v4 {
        IPV4_HEADER_BYTES
    } else {
        IPV6_HEADER_BYTES
    };
    (1500 - ip_header_bytes - 20) as u16
}

impl ProbeSet {
    fn version(&self) -> Version {
        if self.destination.is_ipv4() {
            Version::V4
        } else {
            Version::V6
        }
    }

    /// Protocol number of the probes.
    pub fn protocol(&self) -> u8 {
        match (self.transport, self.version()) {
            (Transport::Icmp { .. }, Version::V4) => ICMP,
            (Transport::Icmp { .. }, Version::V6) => ICMPV6,
            (Transport::Udp { .. }, _) => UDP,
            (Transport::Tcp { .. }, _) => TCP,
        }
    }

    fn ip_header_bytes(&self) -> usize {
        match self.version() {
            Version::V4 => IPV4_HEADER_BYTES,
            Version::V6 => IPV6_HEADER_BYTES,
        }
    }

    /// Size of the smallest probe, IP header included, in bytes.
    pub fn min_bytes(&self) -> u16 {
        let above = match self.transport {
            Transport::Tcp { .. } => SYN_BYTES,
            _ => SHORT_HEADER_BYTES + PAYLOAD_BYTES,
        };
        (self.ip_header_bytes() + above) as u16
    }

    /// The whole packet. The IPv4 header checksum is left to the kernel, which writes it in any case
    /// (raw(7), IP_HDRINCL).
    pub fn write(&self, probe: &Numbered) -> Vec<u8> {
        let size = match self.transport {
            Transport::Tcp { .. } => self.min_bytes(),
            _ => probe.size_bytes.max(self.min_bytes()),
        };
        let above = match self.transport {
            Transport::Icmp { identifier } => self.echo(probe, identifier, size),
            Transport::Udp {
                source_port,
                destination_port,
            } => self.datagram(probe, source_port, destination_port, size),
            Transport::Tcp {
                source_port,
                destination_port,
            } => self.syn(probe, source_port, destination_port),
        };
        let mut out = self.ip_header(probe, size);
        out.extend_from_slice(&above);
        out
    }

    fn ip_header(&self, probe: &Numbered, size: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(usize::from(size));
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                out.extend_from_slice(&[0x45, probe.traffic_class]);
                out.extend_from_slice(&size.to_be_bytes());
                out.extend_from_slice(&probe.number.to_be_bytes());
                let dont_fragment = if probe.dont_fragment { 0x40 } else { 0 };
                out.extend_from_slice(&[dont_fragment, 0, probe.hop_limit, self.protocol(), 0, 0]);
                out.extend_from_slice(&source.octets());
                out.extend_from_slice(&destination.octets());
            }
            (source, destination) => {
                // The flow label is the flow's (RFC 6437); any that is not zero will do.
                let label = (self.session.wrapping_add(u32::from(probe.flow)) & 0xf_ffff).max(1);
                let first = 6u32 << 28 | u32::from(probe.traffic_class) << 20 | label;
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&size.saturating_sub(IPV6_HEADER_BYTES as u16).to_be_bytes());
                out.extend_from_slice(&[self.protocol(), probe.hop_limit]);
                for address in [source, destination] {
                    if let IpAddr::V6(address) = address {
                        out.extend_from_slice(&address.octets());
                    }
                }
            }
        }
        out
    }

    /// The mark, room for the word of the checksum, and what fills the rest: what follows a short header.
    fn payload(&self, probe: &Numbered, size: u16) -> Vec<u8> {
        let bytes = usize::from(size)
            .saturating_sub(self.ip_header_bytes() + SHORT_HEADER_BYTES)
            .max(PAYLOAD_BYTES);
        let mark = Mark {
            session: self.session,
            sequence: probe.number.into(),
        };
        let mut payload = mark.payload_filled(bytes, &[probe.fill]);
        zero_word(&mut payload, MARK_BYTES);
        payload
    }

    fn echo(&self, probe: &Numbered, identifier: u16, size: u16) -> Vec<u8> {
        let mut payload = self.payload(probe, size);
        let request = |payload: &[u8]| {
            Echo {
                kind: Kind::Request,
                identifier: identifier.wrapping_add(probe.flow),
                sequence: probe.number,
                payload,
            }
            .write(self.version())
        };
        // The same for all probes of a flow, another for each flow, and never zero: always odd.
        let wanted = (self.session as u16 | 1).wrapping_add(probe.flow.wrapping_mul(2));
        let mut without = request(&payload);
        zero_word(&mut without, 2);
        set_word(
            &mut payload,
            MARK_BYTES,
            balance(self.pseudo_of_icmp(without.len()).bytes(&without), wanted),
        );
        let mut out = request(&payload);
        set_word(&mut out, 2, wanted);
        out
    }

    /// The part of the checksum that covers the addresses, which ICMP has not and ICMPv6 has.
    fn pseudo_of_icmp(&self, length: usize) -> Sum {
        match self.version() {
            Version::V4 => Sum::new(),
            Version::V6 => {
                checksum::pseudo_header(self.source, self.destination, ICMPV6, length as u32)
            }
        }
    }

    fn datagram(&self, probe: &Numbered, source: u16, destination: u16, size: u16) -> Vec<u8> {
        let mut payload = self.payload(probe, size);
        let length = (SHORT_HEADER_BYTES + payload.len()) as u16;
        let header = |sum: u16| {
            [source.wrapping_add(probe.flow), destination, length, sum]
                .map(u16::to_be_bytes)
                .concat()
        };
        let sum = checksum::pseudo_header(self.source, self.destination, UDP, length.into())
            .bytes(&header(0))
            .bytes(&payload);
        set_word(&mut payload, MARK_BYTES, balance(sum, probe.number));
        let mut out = header(probe.number);
        out.append(&mut payload);
        out
    }

    fn syn(&self, probe: &Numbered, source: u16, destination: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(SYN_BYTES);
        out.extend_from_slice(&source.wrapping_add(probe.flow).to_be_bytes());
        out.extend_from_slice(&destination.to_be_bytes());
        out.extend_from_slice(&self.tcp_sequence(probe.number).to_be_bytes());
        out.extend_from_slice(&0u32.to_be_bytes());
        let ecn = if probe.ask_ecn { ip::ECE | ip::CWR } else { 0 };
        out.extend_from_slice(&[(SYN_BYTES / 4 * 16) as u8, ip::SYN | ecn]);
        // A window, the checksum to be, no urgent data.
        out.extend_from_slice(&[0xfa, 0xf0, 0, 0, 0, 0]);
        out.extend_from_slice(&self.syn_options(probe.number));
        let sum = checksum::pseudo_header(self.source, self.destination, TCP, SYN_BYTES as u32);
        let sum = sum.bytes(&out).checksum();
        set_word(&mut out, 16, sum);
        out
    }

    /// The options of every SYN, in Linux's order: MSS of an Ethernet, SACK permitted, timestamps,
    /// NOP, window scale 7.
    fn syn_options(&self, number: u16) -> [u8; 20] {
        let [m0, m1] = announced_mss(self.destination.is_ipv4()).to_be_bytes();
        let [n0, n1] = number.to_be_bytes();
        [
            2, 4, m0, m1, 4, 2, 8, 10, 0, 0, n0, n1, 0, 0, 0, 0, 1, 3, 3, 7,
        ]
    }

    /// The segment that ends what a SYN began when it was answered (RFC 9293 section 3.5.3), as a
    /// whole packet; `None` for other probes.
    pub fn reset(&self, number: u16, flow: u16) -> Option<Vec<u8>> {
        let Transport::Tcp {
            source_port,
            destination_port,
        } = self.transport
        else {
            return None;
        };
        let bytes = 20u16;
        let probe = Numbered {
            number,
            hop_limit: 64,
            flow,
            traffic_class: 0,
            size_bytes: 0,
            dont_fragment: true,
            ask_ecn: false,
            fill: 0,
        };
        let mut tcp = Vec::with_capacity(usize::from(bytes));
        tcp.extend_from_slice(&source_port.wrapping_add(flow).to_be_bytes());
        tcp.extend_from_slice(&destination_port.to_be_bytes());
        tcp.extend_from_slice(&self.tcp_sequence(number).wrapping_add(1).to_be_bytes());
        tcp.extend_from_slice(&[0, 0, 0, 0, 0x50, ip::RST, 0, 0, 0, 0, 0, 0]);
        let sum = checksum::pseudo_header(self.source, self.destination, TCP, bytes.into());
        let sum = sum.bytes(&tcp).checksum();
        set_word(&mut tcp, 16, sum);
        let mut out = self.ip_header(&probe, self.ip_header_bytes() as u16 + bytes);
        out.extend_from_slice(&tcp);
        Some(out)
    }

    fn tcp_sequence(&self, number: u16) -> u32 {
        self.session.wrapping_add(number.into())
    }

    /// The number of the probe that an ICMP error quotes; `None` when it is none of ours. NATs on
    /// the path may have changed ports, identifiers and checksums.
    pub fn quoted(&self, quote: &[u8]) -> Option<u16> {
        let ip = IpPacket::parse(quote)?;
        if ip.protocol() != self.protocol() || ip.is_later_fragment() {
            return None;
        }
        let [a, b, c, d] = words(ip.payload())?;
        let mark = ip.payload().get(SHORT_HEADER_BYTES..).and_then(Mark::parse);
        let marked = mark.filter(|mark| mark.session == self.session);
        if let (Some(mark), false) = (marked, self.protocol() == TCP) {
            return u16::try_from(mark.sequence).ok();
        }
        let to_target = ip.destination() == self.destination;
        let claimed = match self.transport {
            Transport::Icmp { identifier } => (a >> 8
                == u16::from(Kind::Request.code(self.version()))
                && c.wrapping_sub(identifier) < FLOWS)
                .then_some(d),
            Transport::Udp {
                source_port,
                destination_port,
            } => (b == destination_port && a.wrapping_sub(source_port) < FLOWS)
                // The checksum is what a NAT may leave changed; the identification it leaves.
                .then(|| ip.identification().unwrap_or(d)),
            Transport::Tcp {
                destination_port, ..
            } => {
                let sequence = u32::from(c) << 16 | u32::from(d);
                (b == destination_port)
                    .then(|| sequence.wrapping_sub(self.session))
                    .and_then(|number| u16::try_from(number).ok())
            }
        };
        claimed.filter(|number| to_target && (1..=MAX_NUMBER).contains(number))
    }

    /// The probe that an answer of the target is to: an echo reply, a segment or a datagram, without its
    /// IP header. A datagram without plumb's mark does not name its probe, and its number is 0. The caller knows the
    /// flow of that number: an answer to another identifier or port is none.
    pub fn answered(&self, protocol: u8, message: &[u8]) -> Option<Named> {
        if protocol != self.protocol() {
            return None;
        }
        match self.transport {
            Transport::Icmp { identifier } => {
                let reply = Echo::parse(self.version(), message)?;
                let mark = Mark::parse(reply.payload)?;
                let flow = reply.identifier.wrapping_sub(identifier);
                let ours = reply.kind == Kind::Reply
                    && flow < FLOWS
                    && mark.session == self.session
                    && mark.sequence == u32::from(reply.sequence);
                ours.then_some(Named {
                    number: reply.sequence,
                    flow,
                })
            }
            Transport::Udp {
                source_port,
                destination_port,
            } => {
                let [a, b, ..] = words(message)?;
                let flow = b.wrapping_sub(source_port);
                let ours = a == destination_port && flow < FLOWS;
                let mark = message.get(SHORT_HEADER_BYTES..).and_then(Mark::parse);
                let number = mark
                    .filter(|mark| mark.session == self.session)
                    .and_then(|mark| u16::try_from(mark.sequence).ok());
                ours.then_some(Named {
                    number: number.unwrap_or(0),
                    flow,
                })
            }
            Transport::Tcp {
                source_port,
                destination_port,
            } => {
                let [a, b, ..] = words(message)?;
                let acknowledged = message.get(8..)?.first_chunk::<4>()?;
                let number = u32::from_be_bytes(*acknowledged)
                    .wrapping_sub(1)
                    .wrapping_sub(self.session);
                let flow = b.wrapping_sub(source_port);
                let ours = a == destination_port && flow < FLOWS;
                let number = u16::try_from(number).ok()?;
                (ours && (1..=MAX_NUMBER).contains(&number)).then_some(Named { number, flow })
            }
        }
    }

    /// The ports of a flow as they left, or type and identifier of an echo.
    pub fn sent_ports(&self, flow: u16) -> (u16, u16) {
        match self.transport {
            Transport::Icmp { identifier } => (
                u16::from(Kind::Request.code(self.version())),
                identifier.wrapping_add(flow),
            ),
            Transport::Udp {
                source_port,
                destination_port,
            }
            | Transport::Tcp {
                source_port,
                destination_port,
            } => (source_port.wrapping_add(flow), destination_port),
        }
    }
}

/// Flows that a set of probes may have: enough to find 16 equal paths with 95 % confidence, and few enough to
/// distinguish their ports from the ports of other programs.
pub const FLOWS: u16 = 512;

/// The first eight bytes of what IP carries, which every router quotes.
fn words(message: &[u8]) -> Option<[u16; 4]> {
    let [a0, a1, b0, b1, c0, c1, d0, d1] = *message.first_chunk::<8>()?;
    Some([[a0, a1], [b0, b1], [c0, c1], [d0, d1]].map(u16::from_be_bytes))
}

/// The word that makes a checksum `wanted` when it is added to what `sum` is of.
fn balance(sum: Sum, wanted: u16) -> u16 {
    Sum::new().word(!wanted).word(!sum.folded()).folded()
}

fn set_word(bytes: &mut [u8], at: usize, word: u16) {
    if let Some(field) = bytes.get_mut(at..).and_then(|b| b.first_chunk_mut::<2>()) {
        *field = word.to_be_bytes();
    }
}

fn zero_word(bytes: &mut [u8], at: usize) {
    set_word(bytes, at, 0);
}

#[cfg(test)]
mod tests;

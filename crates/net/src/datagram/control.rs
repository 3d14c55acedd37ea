//! Control messages (cmsg(3)): what the kernel says beside a packet. Bytes to types and back,
//! without system calls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::notice::Unreachable;
use crate::socket_options::{ERRORS, SO_TIMESTAMPING_NEW, TRAFFIC_CLASS};

/// Room for every message that the options of this module switch on; about 200 bytes are used.
pub(crate) const CONTROL_BYTES: usize = 512;

/// `struct cmsghdr`: length (with this header), level, type; messages are aligned to a word.
const HEADER_BYTES: usize = align(WORD + 8);
const WORD: usize = size_of::<usize>();

const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(WORD)
}

/// One control message: level, type, data.
type Message<'a> = (i32, i32, &'a [u8]);

/// The messages in a control buffer, up to the first malformed one.
fn messages(mut control: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::from_ne_bytes(*control.first_chunk()?);
        let level = i32::from_ne_bytes(field(control, WORD)?);
        let kind = i32::from_ne_bytes(field(control, WORD + 4)?);
        let data = control.get(HEADER_BYTES..length)?;
        control = control
            .get(length.checked_next_multiple_of(WORD)?..)
            .unwrap_or_default();
        Some((level, kind, data))
    })
}

/// The bytes of one control message.
fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(align(HEADER_BYTES + data.len()));
    out.extend_from_slice(&(HEADER_BYTES + data.len()).to_ne_bytes());
    out.extend_from_slice(&level.to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.resize(HEADER_BYTES, 0);
    out.extend_from_slice(data);
    out.resize(align(out.len()), 0);
    out
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

/// The software stamp in a `struct scm_timestamping64`: its first `{ i64 s; i64 ns }`.
fn software_stamp(data: &[u8]) -> Option<u64> {
    let (seconds, rest) = data.split_first_chunk()?;
    let seconds = u64::try_from(i64::from_ne_bytes(*seconds)).ok()?;
    let ns = u64::try_from(i64::from_ne_bytes(*rest.first_chunk()?)).ok()?;
    // The kernel fills in zero for a stamp that it did not take.
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(ns)
        .filter(|stamp| *stamp != 0)
}

/// The address of this host that a packet was sent to: an answer should come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAddress {
    pub address: IpAddr,
    /// The interface, where the address means nothing without it (link-local); otherwise zero.
    interface: u32,
}

impl LocalAddress {
    /// `struct in_pktinfo` (ip(7)) and `struct in6_pktinfo` (RFC 3542, section 6.1).
    fn parse(level: i32, kind: i32, data: &[u8]) -> Option<Self> {
        match (level, kind) {
            (libc::SOL_IP, libc::IP_PKTINFO) => {
                // ipi_spec_dst, after the interface: for a multicast it is the address to answer from.
                Some(Self {
                    address: Ipv4Addr::from(field::<4>(data, 4)?).into(),
                    interface: 0,
                })
            }
            (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                let address = Ipv6Addr::from(field::<16>(data, 0)?);
                let interface = u32::from_ne_bytes(field(data, 16)?);
                let scoped = address.is_unicast_link_local();
                Some(Self {
                    address: address.into(),
                    interface: if scoped { interface } else { 0 },
                })
            }
            _ => None,
        }
    }

    /// The control message that makes a packet leave from this address.
    pub(super) fn control(self) -> Vec<u8> {
        match self.address {
            IpAddr::V4(address) => {
                let data = [[0; 4], address.octets(), [0; 4]].concat();
                message(libc::SOL_IP, libc::IP_PKTINFO, &data)
            }
            IpAddr::V6(address) => {
                let data = [address.octets().as_slice(), &self.interface.to_ne_bytes()].concat();
                message(libc::SOL_IPV6, libc::IPV6_PKTINFO, &data)
            }
        }
    }
}

/// Bits of the traffic class below the DSCP (RFC 3168, section 5).
const ECN_BITS: u8 = 2;

/// The control message that gives a packet to `to` a DSCP.
pub(super) fn dscp_control(dscp: u8, to: SocketAddr) -> Vec<u8> {
    let [v4, v6] = TRAFFIC_CLASS;
    let (level, kind) = match to.ip().to_canonical().is_ipv4() {
        true => v4,
        false => v6,
    };
    let class = i32::from(dscp) << ECN_BITS;
    message(level, kind, &class.to_ne_bytes())
}

/// What came with a received packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// When the kernel received it, ns of CLOCK_REALTIME.
    pub(crate) kernel_ns: Option<u64>,
    /// Packets that the socket dropped since it was opened (SO_RXQ_OVFL).
    pub(crate) drops: Option<u32>,
    /// Address it was sent to.
    pub(crate) to: Option<LocalAddress>,
    /// The traffic class that it bore: DSCP and ECN.
    pub(crate) traffic_class: Option<u8>,
    /// Its time to live, or hop limit, as it came in.
    pub(crate) hop_limit: Option<u8>,
    /// Size of the datagrams of a train that is received as one (UDP_GRO).
    pub(crate) segment_bytes: Option<usize>,
}

impl Beside {
    /// The DSCP that it bore.
    pub(crate) fn dscp(&self) -> Option<u8> {
        self.traffic_class.map(|class| class >> ECN_BITS)
    }

    /// The ECN codepoint that it bore.
    pub(crate) fn ecn(&self) -> Option<u8> {
        self.traffic_class
            .map(|class| class & ((1 << ECN_BITS) - 1))
    }

    pub(crate) fn parse(control: &[u8]) -> Self {
        let mut beside = Self::default();
        for (level, kind, data) in messages(control) {
            match (level, kind) {
                (libc::SOL_SOCKET, SO_TIMESTAMPING_NEW) => beside.kernel_ns = software_stamp(data),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    beside.drops = field(data, 0).map(u32::from_ne_bytes)
                }
                // ip(7): one byte. RFC 3542, section 6.5: an integer.
                (libc::SOL_IP, libc::IP_TOS) => beside.traffic_class = data.first().copied(),
                (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                    let class = field(data, 0).map(i32::from_ne_bytes);
                    beside.traffic_class = class.map(|class| class as u8)
                }
                // Both are integers: ip(7), IP_RECVTTL; RFC 3542, section 6.3.
                (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                    let hops = field(data, 0).map(i32::from_ne_bytes);
                    beside.hop_limit = hops.and_then(|hops| u8::try_from(hops).ok());
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    beside.segment_bytes = field(data, 0)
                        .map(i32::from_ne_bytes)
                        .and_then(|bytes| usize::try_from(bytes).ok())
                        .filter(|bytes| *bytes > 0);
                }
                _ => beside.to = LocalAddress::parse(level, kind, data).or(beside.to),
            }
        }
        beside
    }
}

/// An entry of the error queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueEntry {
    /// The packet of that number entered the packet scheduler at that time.
    Departed { id: u32, ns: u64 },
    /// A router reported that the hop limit of a packet of this socket reached zero there.
    Expired { by: IpAddr, kernel_ns: Option<u64> },
    /// Another ICMP error about something that this socket sent, and who says so.
    Unreachable {
        why: Unreachable,
        by: Option<IpAddr>,
    },
    /// Something of no interest.
    Other,
}

impl QueueEntry {
    pub(crate) fn parse(control: &[u8]) -> Self {
        let Some(error) = ExtendedError::find(control) else {
            return Self::Other;
        };
        let kernel_ns = Beside::parse(control).kernel_ns;
        match (error.origin, error.offender, kernel_ns) {
            (libc::SO_EE_ORIGIN_TIMESTAMPING, _, Some(ns)) => Self::Departed { id: error.data, ns },
            (_, Some(by), kernel_ns) if error.is_time_exceeded() => Self::Expired { by, kernel_ns },
            (libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6, by, _) => Self::Unreachable {
                why: Unreachable::of(error.errno),
                by,
            },
            _ => Self::Other,
        }
    }
}

/// `struct sock_extended_err` (linux/errqueue.h), and what follows it (SO_EE_OFFENDER): who sent the
/// ICMP error.
pub(crate) struct ExtendedError {
    errno: i32,
    pub(crate) origin: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// For an ICMP error the MTU that it reports, if any; otherwise zero.
    pub(crate) info: u32,
    /// For a timestamp the number of its packet.
    pub(crate) data: u32,
    pub(crate) offender: Option<IpAddr>,
}

/// Type of the message "time exceeded": RFC 792, and RFC 4443, section 3.3.
const ICMP_TIME_EXCEEDED: u8 = 11;
const ICMP6_TIME_EXCEEDED: u8 = 3;

impl ExtendedError {
    /// The one in a control buffer of the error queue.
    pub(crate) fn find(control: &[u8]) -> Option<Self> {
        let [v4, v6] = ERRORS;
        let mut messages = messages(control);
        let data = messages.find_map(|(level, kind, data)| {
            ((level, kind) == v4 || (level, kind) == v6).then_some(data)
        })?;
        let [origin, kind, code] = field(data, 4)?;
        Some(Self {
            errno: i32::from_ne_bytes(field(data, 0)?),
            origin,
            kind,
            code,
            info: u32::from_ne_bytes(field(data, 8)?),
            data: u32::from_ne_bytes(field(data, 12)?),
            offender: offender(data),
        })
    }

    fn is_time_exceeded(&self) -> bool {
        matches!(
            (self.origin, self.kind),
            (libc::SO_EE_ORIGIN_ICMP, ICMP_TIME_EXCEEDED)
                | (libc::SO_EE_ORIGIN_ICMP6, ICMP6_TIME_EXCEEDED)
        )
    }
}

/// The address in the `struct sockaddr` after the error.
fn offender(data: &[u8]) -> Option<IpAddr> {
    /// Bytes of `struct sock_extended_err`.
    const ERROR_BYTES: usize = 16;
    let family = u16::from_ne_bytes(field(data, ERROR_BYTES)?);
    match i32::from(family) {
        // After family and port, and for IPv6 the flow label.
        libc::AF_INET => Some(Ipv4Addr::from(field::<4>(data, ERROR_BYTES + 4)?).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(field::<16>(data, ERROR_BYTES + 8)?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp(seconds: i64, ns: i64) -> Vec<u8> {
        let mut data = [seconds.to_ne_bytes(), ns.to_ne_bytes()].concat();
        data.resize(48, 0);
        message(libc::SOL_SOCKET, SO_TIMESTAMPING_NEW, &data)
    }

    fn extended(errno: i32, origin: u8, data: u32) -> Vec<u8> {
        let head = [
            errno.to_ne_bytes(),
            [origin, 0, 0, 0],
            [0; 4],
            data.to_ne_bytes(),
        ]
        .concat();
        message(libc::SOL_IP, libc::IP_RECVERR, &head)
    }

    #[test]
    fn stamps_are_whole_positive_times() {
        let stamp = |s: i64, ns: i64| software_stamp(&[s.to_ne_bytes(), ns.to_ne_bytes()].concat());
        assert_eq!(stamp(2, 3), Some(2_000_000_003));
        assert_eq!(stamp(0, 0), None);
        assert_eq!(stamp(-1, 0), None);
        assert_eq!(stamp(i64::MAX, 0), None);
        assert_eq!(software_stamp(&[0; 15]), None);
    }

    #[test]
    fn what_comes_with_a_packet() {
        let control = [
            stamp(1_700_000_000, 5),
            message(libc::SOL_IP, libc::IP_TTL, &64i32.to_ne_bytes()),
            message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &3u32.to_ne_bytes()),
            LocalAddress {
                address: Ipv4Addr::LOCALHOST.into(),
                interface: 0,
            }
            .control(),
        ]
        .concat();
        let beside = Beside::parse(&control);
        assert_eq!(beside.kernel_ns, Some(1_700_000_000_000_000_005));
        assert_eq!((beside.drops, beside.dscp()), (Some(3), None));
        assert_eq!(beside.hop_limit, Some(64));
        assert_eq!(
            beside.to.map(|to| to.address),
            Some(Ipv4Addr::LOCALHOST.into())
        );
    }

    #[test]
    fn a_dscp_is_read_without_the_bits_of_ecn() {
        let v4 = message(libc::SOL_IP, libc::IP_TOS, &[46 << 2 | 1]);
        assert_eq!(Beside::parse(&v4).dscp(), Some(46));
        assert_eq!(Beside::parse(&v4).ecn(), Some(1));
        let v6 = dscp_control(8, SocketAddr::from((Ipv6Addr::LOCALHOST, 1)));
        assert_eq!(Beside::parse(&v6).dscp(), Some(8));
    }

    #[test]
    fn departures_and_errors_are_told_apart() {
        let departed = [
            stamp(1, 2),
            extended(libc::ENOMSG, libc::SO_EE_ORIGIN_TIMESTAMPING, 9),
        ]
        .concat();
        assert_eq!(
            QueueEntry::parse(&departed),
            QueueEntry::Departed {
                id: 9,
                ns: 1_000_000_002
            }
        );
        let refused = extended(libc::ECONNREFUSED, libc::SO_EE_ORIGIN_ICMP, 0);
        assert_eq!(
            QueueEntry::parse(&refused),
            QueueEntry::Unreachable {
                why: Unreachable::Port,
                by: None
            }
        );
        assert_eq!(
            QueueEntry::parse(&extended(1, libc::SO_EE_ORIGIN_LOCAL, 0)),
            QueueEntry::Other
        );
    }

    #[test]
    fn a_router_at_which_the_hop_limit_ends_is_named() {
        let head = [
            libc::EHOSTUNREACH.to_ne_bytes(),
            [libc::SO_EE_ORIGIN_ICMP, ICMP_TIME_EXCEEDED, 0, 0],
            [0; 4],
            [0; 4],
        ]
        .concat();
        let family = (libc::AF_INET as u16).to_ne_bytes();
        let address = [family.as_slice(), &[0, 0], &[192, 0, 2, 7], &[0; 8]].concat();
        let whole = message(
            libc::SOL_IP,
            libc::IP_RECVERR,
            &[head.as_slice(), &address].concat(),
        );
        assert_eq!(
            QueueEntry::parse(&[stamp(1, 2), whole].concat()),
            QueueEntry::Expired {
                by: [192, 0, 2, 7].into(),
                kernel_ns: Some(1_000_000_002)
            }
        );
        // Without the router's address it is an error like others.
        let short = message(libc::SOL_IP, libc::IP_RECVERR, &head);
        assert_eq!(
            QueueEntry::parse(&short),
            QueueEntry::Unreachable {
                why: Unreachable::Other(libc::EHOSTUNREACH),
                by: None
            }
        );
    }

    #[test]
    fn only_link_local_addresses_keep_their_interface() {
        for (address, interface) in [("fe80::1", 7), ("2001:db8::1", 0)] {
            let address: Ipv6Addr = address.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
            let control = LocalAddress {
                address: address.into(),
                interface: 7,
            }
            .control();
            assert_eq!(
                Beside::parse(&control).to,
                Some(LocalAddress {
                    address: address.into(),
                    interface
                })
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), length in 0usize..210) {
            let _ = (Beside::parse(&bytes), QueueEntry::parse(&bytes));
            let framed = [length.to_ne_bytes().as_slice(), &bytes].concat();
            prop_assert!(messages(&framed).count() <= framed.len() / HEADER_BYTES + 1);
            let _ = (Beside::parse(&framed), QueueEntry::parse(&framed));
        }
    }
}

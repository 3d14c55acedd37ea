//! What the kernel reports about packets sent: when they left, and the ICMP errors that came back.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::egress::{Outlet, source_towards};
use crate::udp_counters::Drops;

/// Number of a packet sent, which its departure stamp refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendId(pub(super) u64);

/// A report of the kernel about packets sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A packet entered the packet scheduler at `ns` of CLOCK_REALTIME.
    Departed { id: SendId, ns: u64 },
    /// The hop limit of a packet reached zero on the path.
    Expired(Expired),
    /// A host or router on the path answered with another ICMP error.
    Failed(Failure),
}

/// What a router reported about a packet whose hop limit reached zero there (ICMP time exceeded).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    pub by: IpAddr,
    /// When the kernel received the message, ns of CLOCK_REALTIME; absent where it took no stamp.
    pub kernel_ns: Option<u64>,
    /// The first bytes of what the packet carried above IP, as routers must quote them (RFC 792).
    pub quoted: [u8; QUOTED_BYTES],
    /// Packets that this socket had dropped until then.
    pub drops: Drops,
}

/// Bytes above the IP header that every time exceeded quotes (RFC 792).
pub const QUOTED_BYTES: usize = 8;

/// What an ICMP error said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// The far host has nothing on that port.
    Port,
    /// The hop limit reached zero on the path, as in a routing loop.
    HopLimit,
    /// Anything else, as the errno that the kernel makes of it.
    Other(i32),
}

/// An ICMP error about a packet that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    pub why: Unreachable,
    pub by: Reporter,
}

/// Who sent an ICMP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reporter {
    /// A host with this address: a router, or the far end itself.
    Host(IpAddr),
    /// This host's own kernel, from this address, which could not send the packet on (net/ipv4/arp.c, arp_error_report).
    ThisHost(IpAddr),
    /// The kernel does not report it.
    Unknown,
}

impl Failure {
    /// An error about a packet to `to`, from the address `by`.
    pub fn about(to: IpAddr, why: Unreachable, by: Option<IpAddr>) -> Self {
        let by = match by {
            None => Reporter::Unknown,
            Some(by) if by != to && is_own(by) => Reporter::ThisHost(by),
            Some(by) => Reporter::Host(by),
        };
        Self { why, by }
    }

    /// A whole sentence, but for its end.
    pub fn sentence(&self) -> String {
        match (self.by, self.why) {
            (Reporter::Host(by), why) => format!("an ICMP error came back from {by}: {why}"),
            (Reporter::Unknown, why) => format!("an ICMP error came back: {why}"),
            (Reporter::ThisHost(_), Unreachable::Other(libc::EHOSTUNREACH)) => {
                "this host could not send it on: the next hop, a router or the far end, does not \
                 answer to its address (ARP, neighbour discovery)"
                    .to_owned()
            }
            (Reporter::ThisHost(_), why) => format!("this host could not send it on: {why}"),
        }
    }
}

/// What it says and who says so, in a few words.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            Reporter::Host(by) => write!(f, "{} (from {by})", self.why),
            Reporter::ThisHost(_) => write!(f, "{} (from this host)", self.why),
            Reporter::Unknown => self.why.fmt(f),
        }
    }
}

/// Whether it is an address of this host: what is sent to one of those comes from the same address.
/// To be bound to, an address need not be its own (`net.ipv4.ip_nonlocal_bind`).
fn is_own(address: IpAddr) -> bool {
    let source = source_towards(SocketAddr::new(address, 0), &Outlet::default());
    source.is_ok_and(|source| source == address)
}

impl Unreachable {
    pub(super) fn of(errno: i32) -> Self {
        if errno == libc::ECONNREFUSED {
            Self::Port
        } else {
            Self::Other(errno)
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port => f.write_str("port unreachable"),
            Self::HopLimit => f.write_str("hop limit exceeded on the path"),
            Self::Other(errno) => f.write_str(nix::errno::Errno::from_raw(*errno).desc()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn who_sent_an_error_is_told() {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        // TEST-NET-1 (RFC 5737).
        let far = IpAddr::from([192, 0, 2, 1]);
        let no_route = Unreachable::Other(libc::EHOSTUNREACH);
        let by = |to, by| Failure::about(to, no_route, by).by;
        assert_eq!(by(far, Some(far)), Reporter::Host(far));
        assert_eq!(by(far, Some(loopback)), Reporter::ThisHost(loopback));
        assert_eq!(by(loopback, Some(loopback)), Reporter::Host(loopback));
        assert_eq!(by(far, None), Reporter::Unknown);
        let said = Failure::about(far, no_route, Some(loopback)).sentence();
        assert!(
            said.starts_with("this host") && said.contains("ARP"),
            "{said}"
        );
        let said = Failure::about(far, Unreachable::HopLimit, Some(far));
        assert_eq!(
            said.to_string(),
            "hop limit exceeded on the path (from 192.0.2.1)"
        );
        assert!(said.sentence().contains("came back from 192.0.2.1"));
    }
}

//! What the kernel tells about packets sent: when they left, and what became of them on the way.

use std::fmt;
use std::net::IpAddr;

use super::SendId;

/// What the kernel tells about packets sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A packet entered the packet scheduler at `ns` of CLOCK_REALTIME.
    Departed {
        /// Which packet.
        id: SendId,
        /// When.
        ns: u64,
    },
    /// The hop limit of a packet ended on the way.
    Expired(Expired),
    /// Somebody on the way answered with another ICMP error.
    Unreachable(Unreachable),
}

/// What a router said about a packet whose hop limit ended at it (ICMP time exceeded).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// The router.
    pub by: IpAddr,
    /// When the kernel received the message, ns of CLOCK_REALTIME; absent where it took no stamp.
    pub kernel_ns: Option<u64>,
    /// The first bytes of what the packet carried above IP, as routers must quote them (RFC 792).
    pub quoted: [u8; QUOTED_BYTES],
    /// Packets that this socket had dropped until then.
    pub drops: u32,
}

/// Bytes above the IP header that every time exceeded quotes (RFC 792).
pub const QUOTED_BYTES: usize = 8;

/// What an ICMP error said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// The far host has nothing on that port.
    Port,
    /// The hop limit ended on the way, as it does when routers send packets round in a circle.
    HopLimit,
    /// Anything else, as the errno that the kernel makes of it.
    Other(i32),
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
            Self::HopLimit => f.write_str("hop limit exceeded on the way"),
            Self::Other(errno) => f.write_str(nix::errno::Errno::from_raw(*errno).desc()),
        }
    }
}

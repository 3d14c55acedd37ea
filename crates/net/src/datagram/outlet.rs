//! By which way packets leave this host, and whether they may be fragmented.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::Socket;

use super::set_option;

/// The way out of this host; by default the one that the routing table says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlet {
    /// The interface, by its name (SO_BINDTODEVICE).
    pub interface: Option<String>,
    /// The address to send from.
    pub source: Option<IpAddr>,
}

impl Outlet {
    /// Binds a socket that will talk to `target`.
    pub(crate) fn apply(&self, socket: &Socket, target: SocketAddr) -> io::Result<()> {
        if let Some(interface) = &self.interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        if let Some(source) = self.source {
            // An address of the other version of IP cannot be the source: the kernel says so.
            let mut from = SocketAddr::new(source, 0);
            if let (SocketAddr::V6(from), SocketAddr::V6(to)) = (&mut from, target) {
                from.set_scope_id(to.scope_id());
            }
            socket.bind(&from.into())?;
        }
        Ok(())
    }
}

/// What becomes of packets larger than the path carries whole (ip(7), IP_MTU_DISCOVER).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathMtuDiscovery {
    /// Never fragment, and refuse to send more than the path MTU known here.
    Do,
    /// Fragment here what is larger than the path MTU known.
    Want,
    /// Let routers fragment.
    Dont,
    /// Never fragment, and send whatever the path MTU known.
    Probe,
}

impl PathMtuDiscovery {
    pub(crate) fn apply(self, socket: &Socket, v4: bool) -> io::Result<()> {
        let (level, option, value) = if v4 {
            let value = match self {
                Self::Do => libc::IP_PMTUDISC_DO,
                Self::Want => libc::IP_PMTUDISC_WANT,
                Self::Dont => libc::IP_PMTUDISC_DONT,
                Self::Probe => libc::IP_PMTUDISC_PROBE,
            };
            (libc::SOL_IP, libc::IP_MTU_DISCOVER, value)
        } else {
            let value = match self {
                Self::Do => libc::IPV6_PMTUDISC_DO,
                Self::Want => libc::IPV6_PMTUDISC_WANT,
                Self::Dont => libc::IPV6_PMTUDISC_DONT,
                Self::Probe => libc::IPV6_PMTUDISC_PROBE,
            };
            (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, value)
        };
        set_option(socket, level, option, &value.to_ne_bytes())
    }
}

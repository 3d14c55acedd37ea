//! Where probes of a path go, and what they are made of.

use std::net::SocketAddr;

use plumb_net::egress::Outlet;

/// The first port of traceroute's range: nothing should listen there.
pub const UDP_PORT: u16 = 33_434;

/// What probes are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolAndPort {
    /// ICMP or ICMPv6 echo.
    Icmp,
    Udp {
        port: u16,
    },
    Tcp {
        port: u16,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As the user typed it, for messages.
    pub name: String,
    /// The address; its port is not looked at.
    pub address: SocketAddr,
    /// By which way probes leave this host.
    pub outlet: Outlet,
}

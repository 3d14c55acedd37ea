//! What this host itself holds of the size of packets towards an address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::netlink::{Netlink, NetlinkError};
use crate::route;
use crate::tcp::info::get_option;

/// What the kernel holds of the path's MTU: what an ICMP error told it lately
/// (net/ipv4/route.c, ip_rt_mtu_expires: for ten minutes), or a route says, or the interface.
///
/// # Errors
/// Those of the kernel, such as no route.
pub fn known_bytes(to: IpAddr) -> io::Result<u32> {
    // A datagram socket that is connected sends nothing by that. Port 9 is discard (RFC 863).
    let (here, level, option): (IpAddr, _, _) = match to {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), libc::SOL_IP, libc::IP_MTU),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), libc::SOL_IPV6, libc::IPV6_MTU),
    };
    let socket = UdpSocket::bind(SocketAddr::new(here, 0))?;
    socket.connect(SocketAddr::new(to, 9))?;
    let mut bytes = 0u32;
    get_option(&socket, level, option, &mut bytes)?;
    Ok(bytes)
}

/// The MTU of the interface by which packets to an address leave; `None` where it is an address
/// of this host.
///
/// # Errors
/// When there is no route, and those of the kernel.
pub fn interface_bytes(to: IpAddr) -> Result<Option<u32>, NetlinkError> {
    match route::next_hop(to)? {
        Some(hop) => Netlink::open()?.mtu_bytes(hop.interface),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_loopback_has_a_size() {
        assert!(known_bytes(Ipv4Addr::LOCALHOST.into()).unwrap() >= 1500);
        assert!(known_bytes(Ipv6Addr::LOCALHOST.into()).unwrap() >= 1280);
        assert_eq!(interface_bytes(Ipv4Addr::LOCALHOST.into()).unwrap(), None);
        // The loopback's number is 1 on every Linux.
        let loopback = Netlink::open().unwrap().mtu_bytes(1).unwrap();
        assert!(loopback.unwrap() >= 1500);
    }
}

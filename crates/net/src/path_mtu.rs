//! What this host itself holds of the size of packets towards an address.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::egress::{Outlet, connected};
use crate::netlink::{Netlink, NetlinkError};
use crate::route;
use crate::tcp::info::get_option;

/// The path's MTU as the kernel knows it: from an ICMP error within the last ten minutes (net/ipv4/route.c,
/// ip_rt_mtu_expires), or from the route or the interface.
///
/// # Errors
/// Errors of the kernel, such as no route.
pub fn known_bytes(to: SocketAddr, outlet: &Outlet) -> io::Result<u32> {
    let (level, option) = match to.ip() {
        IpAddr::V4(_) => (libc::SOL_IP, libc::IP_MTU),
        IpAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_MTU),
    };
    let mut bytes = 0u32;
    get_option(&connected(to, outlet)?, level, option, &mut bytes)?;
    Ok(bytes)
}

/// The MTU of the interface by which packets to an address leave; `None` where it is an address
/// of this host.
///
/// # Errors
/// When there is no route, and on errors of the kernel.
pub fn interface_bytes(to: IpAddr, outlet: &Outlet) -> Result<Option<u32>, NetlinkError> {
    match route::next_hop_by(to, outlet)? {
        Some(hop) => Netlink::open()?.mtu_bytes(hop.interface),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn the_loopback_has_a_size() {
        let any = Outlet::default();
        assert!(known_bytes((Ipv4Addr::LOCALHOST, 0).into(), &any).unwrap() >= 1500);
        assert!(known_bytes((Ipv6Addr::LOCALHOST, 0).into(), &any).unwrap() >= 1280);
        assert_eq!(
            interface_bytes(Ipv4Addr::LOCALHOST.into(), &any).unwrap(),
            None
        );
        // The loopback's number is 1 on every Linux.
        let loopback = Netlink::open().unwrap().mtu_bytes(1).unwrap();
        assert!(loopback.unwrap() >= 1500);
    }
}

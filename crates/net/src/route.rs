//! The route that a packet from this host would take: the kernel's own look-up (rtnetlink(7), RTM_GETROUTE).

use std::net::IpAddr;

use crate::egress::Outlet;
use crate::netlink::{Netlink, NetlinkError, NextHop, interface_index};

/// The first step towards `to`, in the network namespace of the calling thread; `None` where it is
/// an address of this host.
///
/// # Errors
/// When there is no route, and on errors of the kernel.
pub fn next_hop(to: IpAddr) -> Result<Option<NextHop>, NetlinkError> {
    next_hop_by(to, &Outlet::default())
}

/// The same through an outlet of this host that the caller chooses.
///
/// # Errors
/// As [`next_hop`], and when there is no such interface or address.
pub fn next_hop_by(to: IpAddr, outlet: &Outlet) -> Result<Option<NextHop>, NetlinkError> {
    let index = |name: &String| {
        interface_index(name).map_err(NetlinkError::when(|| format!("find the interface {name}")))
    };
    let interface = outlet.interface.as_ref().map(index).transpose()?;
    Netlink::open()?.find_route(to, outlet.source, interface)
}

/// The first steps of the default routes of IPv4 and of IPv6, where there are any.
///
/// # Errors
/// Errors of the kernel.
pub fn default_routes() -> Result<[Option<NextHop>; 2], NetlinkError> {
    let mut netlink = Netlink::open()?;
    Ok([
        netlink.default_route(libc::AF_INET as u8)?,
        netlink.default_route(libc::AF_INET6 as u8)?,
    ])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn this_host_needs_no_step() {
        assert_eq!(next_hop(Ipv4Addr::LOCALHOST.into()).unwrap(), None);
        assert_eq!(next_hop(Ipv6Addr::LOCALHOST.into()).unwrap(), None);
    }
}

//! Which way a packet from this host would go: the kernel's own look-up (rtnetlink(7), RTM_GETROUTE).

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteType, RouteVia,
};

use crate::netlink::{Netlink, NetlinkError, NextHop, family, interface_index};
use crate::outlet::Outlet;

/// The first step towards `to`, in the network namespace of the calling thread; `None` where it is
/// an address of this host.
///
/// # Errors
/// When there is no route, and those of the kernel.
pub fn next_hop(to: IpAddr) -> Result<Option<NextHop>, NetlinkError> {
    next_hop_by(to, &Outlet::default())
}

/// The same by a way out of this host that the caller chooses.
///
/// # Errors
/// As [`next_hop`], and when there is no such interface or address.
pub fn next_hop_by(to: IpAddr, outlet: &Outlet) -> Result<Option<NextHop>, NetlinkError> {
    let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let mut message = RouteMessage::default();
    message.header.address_family = family(to);
    message.header.destination_prefix_length = bits(to);
    message.attributes = vec![RouteAttribute::Destination(to.into())];
    if let Some(source) = outlet.source {
        message.header.source_prefix_length = bits(source);
        message
            .attributes
            .push(RouteAttribute::Source(source.into()));
    }
    let mut netlink = Netlink::open()?;
    if let Some(name) = &outlet.interface {
        let index = interface_index(name).map_err(|source| NetlinkError {
            what: format!("find the interface {name}"),
            source,
        })?;
        message.attributes.push(RouteAttribute::Oif(index));
    }
    let answer = netlink.exchange(RouteNetlinkMessage::GetRoute(message), 0, || {
        format!("look up the route to {to}")
    })?;
    Ok(match answer {
        Some(RouteNetlinkMessage::NewRoute(route)) => hop(&route),
        _ => None,
    })
}

fn hop(route: &RouteMessage) -> Option<NextHop> {
    if route.header.kind == RouteType::Local {
        return None;
    }
    let mut interface = None;
    let mut gateway = None;
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = Some(*index),
            RouteAttribute::Gateway(RouteAddress::Inet(address))
            | RouteAttribute::Via(RouteVia::Inet(address)) => gateway = Some((*address).into()),
            RouteAttribute::Gateway(RouteAddress::Inet6(address))
            | RouteAttribute::Via(RouteVia::Inet6(address)) => gateway = Some((*address).into()),
            _ => {}
        }
    }
    Some(NextHop {
        interface: interface?,
        gateway,
    })
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

    #[test]
    fn the_gateway_is_read_from_a_route() {
        let mut route = RouteMessage::default();
        route.header.kind = RouteType::Unicast;
        let gateway = IpAddr::from([192, 0, 2, 1]);
        route.attributes = vec![
            RouteAttribute::Oif(7),
            RouteAttribute::Gateway(gateway.into()),
        ];
        let expected = NextHop {
            interface: 7,
            gateway: Some(gateway),
        };
        assert_eq!(hop(&route), Some(expected));
        route.attributes.pop();
        assert_eq!(hop(&route).unwrap().gateway, None, "a neighbour");
    }
}

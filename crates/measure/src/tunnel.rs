//! Whether packets to a host leave through a tunnel: its other end is where the path begins.

use std::net::IpAddr;

use plumb_model::results::host::Interface;
use plumb_net::egress::Outlet;
use plumb_net::netlink::link::links;
use plumb_net::route::next_hop_by;

/// A hint about a tunnel to the target, as far as this host's routes and interfaces show one.
pub(crate) fn hint(target: IpAddr, outlet: &Outlet) -> Option<String> {
    let hop = next_hop_by(target, outlet).ok()??;
    let index = hop.interface;
    of(&links().ok()?.into_iter().find(|link| link.index == index)?)
}

fn of(way: &Interface) -> Option<String> {
    way.is_tunnel().then(|| {
        format!(
            "The route leaves through {}, a tunnel: the times describe the path through its other end (a VPN?).",
            way.name
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_tunnel_is_named() {
        let way = |kind: &str| Interface {
            name: "wg0".to_owned(),
            kind: Some(kind.to_owned()),
            ..Interface::default()
        };
        assert!(of(&way("wireguard")).unwrap().contains("wg0, a tunnel"));
        assert_eq!(of(&way("veth")), None);
        assert_eq!(hint(IpAddr::from([127, 0, 0, 1]), &Outlet::default()), None);
    }
}

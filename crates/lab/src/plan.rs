//! What a network is given, node by node: the result of [`crate::layout`], which
//! [`crate::network`] carries out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use plumb_model::prefix::Prefix;

use crate::graph::{PREFIX_V4, PREFIX_V6};

#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// What each node is given, in the scenario's order.
    pub(crate) nodes: Vec<NodePlan>,
    /// Routes that change while the laboratory runs, in the order of time.
    pub(crate) changes: Vec<Change>,
    /// The hosts(5) file that every node sees.
    pub(crate) hosts: String,
}

/// What one node is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    /// Whether it passes packets on.
    pub(crate) forward: bool,
    pub(crate) interfaces: Vec<Interface>,
    /// Its routes, from the start.
    pub(crate) routes: Vec<Route>,
    /// Prefixes whose packets are dealt out one by one.
    pub(crate) deals: Vec<Deal>,
    /// Multicast groups, and the interface by which it sends or receives them.
    pub(crate) groups: BTreeMap<Prefix, String>,
    /// Multicast that it passes on.
    pub(crate) multicast: Vec<MulticastRoute>,
}

/// One end of a link or lan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its name: the name of the link or lan.
    pub(crate) name: String,
    /// Its address in IPv4.
    pub(crate) v4: Ipv4Addr,
    /// Its address in IPv6, unless the scenario has none.
    pub(crate) v6: Option<Ipv6Addr>,
    /// Its link-local address. Only on Ethernet, where a router asks for its neighbours with it.
    pub(crate) link_local: Option<Ipv6Addr>,
    /// The largest packet in bytes, where it is not the 1500 of a device's own.
    pub(crate) mtu_bytes: Option<u32>,
    /// Whether every packet must leave it as a single segment.
    pub(crate) single_segments: bool,
}

impl Interface {
    /// Its addresses, and the lengths of their prefixes.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        let v6 = self.v6.into_iter().chain(self.link_local);
        std::iter::once((self.v4.into(), PREFIX_V4)).chain(v6.map(|a| (a.into(), PREFIX_V6)))
    }
}

/// Packets to a group, and the interfaces by which a router takes them in and passes them on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MulticastRoute {
    pub(crate) source: IpAddr,
    pub(crate) group: IpAddr,
    /// Where they come in.
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
}

/// A route of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) to: Prefix,
    /// The neighbours that lead there; over several, the kernel chooses one for each flow.
    pub(crate) hops: Vec<Hop>,
    /// Tables of a [`Deal`] that it is in besides the main one, and the neighbours there.
    pub(crate) tables: Vec<(u32, Vec<Hop>)>,
}

/// A neighbour that leads somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) interface: String,
    /// Its address; none when it is the destination itself.
    pub(crate) gateway: Option<IpAddr>,
}

/// Packets to a prefix bear marks in turn, and each mark is looked up in a table of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deal {
    pub(crate) to: Prefix,
    /// The first mark, and the first table.
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// A change of routes while the laboratory runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at: Duration,
    pub(crate) node: String,
    /// What they are from then on.
    pub(crate) route: Route,
}

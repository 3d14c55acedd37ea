//! Gives a network what was planned for it ([`crate::layout`]): addresses, routes, lans, multicast,
//! and routes that change while it runs.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plumb_model::results::host::Interface;
use plumb_net::multicast::MulticastRouter;
use plumb_net::namespace::Namespaces;
use plumb_net::netlink::{MAIN_TABLE, Netlink, NextHop, interface_index};
use plumb_net::{packet_spray, sysctl};

use crate::epoch::Epoch;
use crate::error::LabError;
use crate::nearest::known;
use crate::node::set_variables;
use crate::plan::{Change, Hop, NodePlan, Plan, Route};
use crate::scenario::Scenario;
use crate::topology::LanSpec;

/// Packets that may wait at a TUN device for its reader. The kernel drops the rest without a
/// word, and the default of 500 overflows under a burst.
const TUN_QUEUE_PACKETS: u32 = 20_000;

/// The nodes by their names.
pub(crate) type Nodes = BTreeMap<String, Arc<Namespaces>>;

/// The namespaces of a node.
///
/// # Errors
/// When there is no such node.
pub(crate) fn node<'a>(nodes: &'a Nodes, name: &str) -> Result<&'a Arc<Namespaces>, LabError> {
    nodes.get(name).ok_or_else(|| {
        let names: Vec<&str> = nodes.keys().map(String::as_str).collect();
        LabError::Control(format!(
            "there is no node '{name}': {}",
            known(name, &names, "nodes")
        ))
    })
}

/// What keeps a configured network running. When it is dropped, routes stop changing.
#[derive(Default)]
pub(crate) struct Network {
    /// Each lan is a bridge in a namespace of its own.
    bridges: Vec<Namespaces>,
    /// The kernel passes multicast on for as long as these are open.
    multicast: Vec<MulticastRouter>,
    /// Ends the thread that changes routes.
    _changing: Option<Sender<()>>,
    failed: Arc<Mutex<Vec<String>>>,
}

impl Network {
    /// Configures nodes that are joined by their links already.
    pub(crate) fn configure(
        scenario: &Scenario,
        plan: &Plan,
        nodes: &Nodes,
        epoch: Epoch,
    ) -> Result<Self, LabError> {
        let mut network = Self::default();
        for lan in &scenario.lans {
            network.bridges.push(join_lan(lan, nodes)?);
        }
        // A network namespace, and what is planned for it.
        let planned = || {
            let node = |plan: &NodePlan| Some((plan.clone(), Arc::clone(nodes.get(&plan.name)?)));
            plan.nodes.iter().filter_map(node)
        };
        for (plan, node) in planned() {
            let spec = scenario.nodes.iter().find(|spec| spec.name == plan.name);
            let chosen = |key: &str| spec.is_some_and(|spec| spec.sysctl.contains_key(key));
            node.in_network(|| {
                raise(&plan, scenario.ipv6, chosen)?;
                spec.map_or(Ok(()), |spec| set_variables(spec, true))
            })?;
        }
        for (lan, bridge) in scenario.lans.iter().zip(&network.bridges) {
            bridge.in_network(|| {
                let mut netlink = Netlink::open()?;
                for number in 0..lan.nodes.len() {
                    netlink.let_send(interface_index(&port(number))?)?;
                }
                Ok::<_, LabError>(())
            })?;
        }
        // Routes only when every link is up: a gateway behind a device that is down is refused.
        for (plan, node) in planned() {
            network.multicast.extend(node.in_network(|| route(&plan))?);
        }
        thread::sleep(SETTLES_IN);
        if !plan.changes.is_empty() {
            let (stop, stopped) = channel();
            let (changes, nodes) = (plan.changes.clone(), nodes.clone());
            let failed = Arc::clone(&network.failed);
            thread::Builder::new()
                .name("lab-routes".into())
                .spawn(move || change_routes(&changes, &nodes, epoch, &stopped, &failed))?;
            network._changing = Some(stop);
        }
        Ok(network)
    }

    /// What the user must know about it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let failed = self.failed.lock();
        failed.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the kernel does by itself once an address is set, above all to join the group at which neighbours ask for it (`addrconf_dad_work`
/// in `net/ipv6/addrconf.c`), it does in threads of its own: where time is virtual, they run when others sleep.
const SETTLES_IN: Duration = Duration::from_millis(1);

/// The port of a bridge to a node. No lan has such a name.
fn port(number: usize) -> String {
    format!("port_{number}")
}

/// Joins the nodes of a lan by a bridge.
fn join_lan(lan: &LanSpec, nodes: &Nodes) -> Result<Namespaces, LabError> {
    let bridge = Namespaces::create(&lan.name, || {
        // A bridge without addresses has nothing to say.
        match sysctl::write("net.ipv6.conf.default.disable_ipv6", "1") {
            Err(e) if !e.is_absent() => return Err(e.into()),
            _ => {}
        }
        let mut netlink = Netlink::open()?;
        netlink.add_bridge(&lan.name)?;
        netlink.set_up(interface_index(&lan.name)?, None)?;
        Ok::<_, LabError>(())
    })?;
    for (number, node) in lan.nodes.iter().enumerate() {
        if let Some(node) = nodes.get(node) {
            node.in_network(|| {
                Netlink::open()?.add_veth(&lan.name, &port(number), bridge.net().as_fd())?;
                Ok::<_, LabError>(())
            })?;
        }
    }
    bridge.in_network(|| {
        let mut netlink = Netlink::open()?;
        let whole = interface_index(&lan.name)?;
        for number in 0..lan.nodes.len() {
            let port = interface_index(&port(number))?;
            netlink.set_bridge(port, whole)?;
            if let Some(bytes) = lan.mtu {
                netlink.set_mtu(port, bytes)?;
            }
            netlink.set_up(port, None)?;
        }
        Ok::<_, LabError>(())
    })?;
    Ok(bridge)
}

/// Raises the interfaces of the current namespace, with their addresses, and lets it forward.
/// `chosen` returns whether the scenario sets a kernel variable itself.
fn raise(plan: &NodePlan, ipv6: bool, chosen: impl Fn(&str) -> bool) -> Result<(), LabError> {
    let mut netlink = Netlink::open()?;
    let mut indexes = Vec::new();
    for interface in &plan.interfaces {
        let index = interface_index(&interface.name)?;
        // A router greets the group of all IPv6 routers on every link that carries multicast when it begins to forward
        // (dev_forward_change, net/ipv6/addrconf.c). These links are to carry only what programs send.
        netlink.set_multicast(index, false)?;
        indexes.push(index);
    }
    if plan.forward {
        for (key, wanted) in [
            ("net.ipv4.ip_forward", true),
            ("net.ipv6.conf.all.forwarding", ipv6),
        ] {
            if wanted && !chosen(key) {
                sysctl::write(key, "1")?;
            }
        }
    }
    for (interface, index) in plan.interfaces.iter().zip(indexes) {
        if interface.single_segments {
            netlink.set_single_segments(index)?;
        }
        if let Some(bytes) = interface.mtu_bytes {
            netlink.set_mtu(index, bytes)?;
        }
        // So that they are not taken for tunnels to somewhere else.
        netlink.set_alias(index, Interface::LAB_ALIAS)?;
        netlink.set_up(index, Some(TUN_QUEUE_PACKETS))?;
        for (address, prefix) in interface.addresses() {
            netlink.add_address(index, address, prefix)?;
        }
        netlink.set_multicast(index, true)?;
    }
    Ok(())
}

/// Sets the routes of the current namespace.
fn route(plan: &NodePlan) -> Result<Vec<MulticastRouter>, LabError> {
    let mut netlink = Netlink::open()?;
    let mut indexes = BTreeMap::new();
    for interface in &plan.interfaces {
        let index = interface_index(&interface.name)?;
        netlink.let_send(index)?;
        indexes.insert(interface.name.as_str(), index);
    }
    let index = |name: &str| {
        let known = indexes.get(name).copied();
        known.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    for route in &plan.routes {
        set_route(&mut netlink, route, index)?;
    }
    for deal in &plan.deals {
        for mark in deal.first..deal.first + deal.count {
            netlink.add_mark_rules(deal.to, mark, mark)?;
        }
        packet_spray::deal_out(deal.to, deal.first, deal.count).map_err(|e| {
            LabError::Control(format!(
                "node {}: the kernel does not share packets out one by one ({e}): it needs nf_tables with numgen (CONFIG_NFT_NUMGEN); balance = \"flow\" needs neither",
                plan.name
            ))
        })?;
    }
    for (groups, interface) in &plan.groups {
        netlink.set_group_route(*groups, index(interface)?)?;
    }
    let mut routers = Vec::new();
    for ipv6 in [false, true] {
        let routes = plan.multicast.iter().filter(|r| r.group.is_ipv6() == ipv6);
        let mut router = None;
        for route in routes {
            let router = match &mut router {
                Some(router) => router,
                none => none.insert(MulticastRouter::new(ipv6).map_err(|e| {
                    LabError::Control(format!(
                        "node {}: the kernel routes no multicast ({e}): it needs CONFIG_IP_MROUTE and CONFIG_IPV6_MROUTE",
                        plan.name
                    ))
                })?),
            };
            let to = route.to.iter().map(|name| index(name));
            let to = to.collect::<Result<Vec<u32>, _>>()?;
            router.add_route(route.source, route.group, index(&route.from)?, &to)?;
        }
        routers.extend(router);
    }
    Ok(routers)
}

/// Sets a route in all its tables; `index` knows the numbers of interfaces.
fn set_route(
    netlink: &mut Netlink,
    route: &Route,
    index: impl Fn(&str) -> io::Result<u32>,
) -> Result<(), LabError> {
    let next = |hop: &Hop| -> Result<NextHop, LabError> {
        Ok(NextHop {
            interface: index(&hop.interface)?,
            gateway: hop.gateway,
        })
    };
    let main = [(MAIN_TABLE, route.hops.clone())];
    for (table, hops) in main.iter().chain(&route.tables) {
        let hops = hops.iter().map(next).collect::<Result<Vec<_>, _>>()?;
        netlink.set_route(route.to, &hops, *table)?;
    }
    Ok(())
}

/// Changes routes at their times. The thread ends after the last, and at once when the sender of
/// `stopped` is dropped.
fn change_routes(
    changes: &[Change],
    nodes: &Nodes,
    epoch: Epoch,
    stopped: &Receiver<()>,
    failed: &Mutex<Vec<String>>,
) {
    for change in changes {
        let left = change
            .at
            .saturating_sub(Duration::from_nanos(epoch.now().as_nanos()));
        if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let Some(node) = nodes.get(&change.node) else {
            continue;
        };
        let changed =
            node.in_network(|| set_route(&mut Netlink::open()?, &change.route, interface_index));
        if let Err(e) = changed {
            failed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(format!("{}, at {:?}: {e}", change.node, change.at));
        }
    }
}

//! What some hosts have in common: a network, or a router that only packets towards them pass.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use plumb_model::results::path::PathHop;

use super::host::Host;
use crate::Case;

/// Bits of the smallest network of IPv4 that is announced to the Internet by itself, and of an IPv6 site (RFC 6177).
const PREFIX_BITS: [u8; 2] = [24, 48];

/// Hosts that have something in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub by: Uniting,
    /// Their places in the list of hosts.
    pub hosts: BTreeSet<usize>,
}

/// What the hosts of a network have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uniting {
    /// One network of addresses.
    Prefix { address: IpAddr, bits: u8 },
    /// One autonomous system, as a database of them has it.
    System { asn: u32, name: Option<String> },
    /// A router that packets towards them pass, and packets towards other hosts do not.
    Router(Hop),
}

/// A router on the way to some hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// How many hops it is from here.
    pub ttl: u8,
    pub address: String,
}

/// The routers towards a host, by their address: the smallest distance. Empty where its path was not seen.
fn routers(host: &Host<'_>) -> BTreeMap<String, u8> {
    let mut routers = BTreeMap::new();
    let own = host.address.map(|address| address.to_string());
    for hop in hops(host) {
        let addresses = hop.addresses.iter().chain(&hop.address);
        for address in addresses.filter(|address| Some(*address) != own.as_ref()) {
            let ttl = routers.entry(address.clone()).or_insert(hop.ttl);
            *ttl = hop.ttl.min(*ttl);
        }
    }
    routers
}

/// Whether routers of the paths to all hosts are known.
pub(super) fn are_paths_seen(hosts: &[Host<'_>]) -> bool {
    hosts.iter().all(|host| hops(host).next().is_some())
}

fn hops<'a>(host: &Host<'a>) -> impl Iterator<Item = &'a PathHop> {
    let routes = host.runs.iter().flat_map(|run| Case::of(run).routes());
    let hops = routes.flat_map(|route| &route.result.hops);
    hops.filter(|hop| !hop.this_host)
}

/// The network that an address is in.
fn prefix(address: IpAddr) -> Uniting {
    let (address, bits): (IpAddr, u8) = match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX << (32 - u32::from(PREFIX_BITS[0]));
            (
                std::net::Ipv4Addr::from_bits(v4.to_bits() & mask).into(),
                PREFIX_BITS[0],
            )
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX << (128 - u32::from(PREFIX_BITS[1]));
            (
                std::net::Ipv6Addr::from_bits(v6.to_bits() & mask).into(),
                PREFIX_BITS[1],
            )
        }
    };
    Uniting::Prefix { address, bits }
}

/// The autonomous system of a host: the system of the last hop, where the path was seen to its end.
fn system(host: &Host<'_>) -> Option<Uniting> {
    let own = host.address.map(|address| address.to_string());
    let itself = hops(host).filter(|hop| hop.address == own);
    let (asn, name) = itself
        .filter_map(|hop| Some((hop.asn?, hop.as_name.clone())))
        .last()?;
    Some(Uniting::System { asn, name })
}

/// Every network that two hosts or more are in: first networks of addresses, then autonomous systems, then routers, the
/// nearest first. Systems and routers are known of all hosts or left out: a host of which they are unknown may have the
/// same.
pub(super) fn networks(hosts: &[Host<'_>]) -> Vec<Network> {
    let mut all: Vec<Network> = Vec::new();
    let mut add = |by: Uniting, index: usize| match all.iter_mut().find(|n| n.by == by) {
        Some(network) => {
            network.hosts.insert(index);
        }
        None => all.push(Network {
            by,
            hosts: BTreeSet::from([index]),
        }),
    };
    for (index, host) in hosts.iter().enumerate() {
        if let Some(address) = host.address {
            add(prefix(address), index);
        }
    }
    let systems: Vec<Option<Uniting>> = hosts.iter().map(system).collect();
    if systems.iter().all(Option::is_some) {
        for (index, system) in systems.into_iter().flatten().enumerate() {
            add(system, index);
        }
    }
    let paths: Vec<BTreeMap<String, u8>> = hosts.iter().map(routers).collect();
    if are_paths_seen(hosts) {
        let mut nearest: BTreeMap<&String, u8> = BTreeMap::new();
        for (address, ttl) in paths.iter().flatten() {
            let known = nearest.entry(address).or_insert(*ttl);
            *known = (*ttl).min(*known);
        }
        let mut routers: Vec<(u8, &String)> =
            nearest.into_iter().map(|(a, ttl)| (ttl, a)).collect();
        routers.sort();
        for (ttl, address) in routers {
            let passing = paths.iter().enumerate();
            let passing = passing.filter(|(_, path)| path.contains_key(address));
            let passing: BTreeSet<usize> = passing.map(|(index, _)| index).collect();
            let known = all.iter().any(|network| network.hosts == passing);
            if passing.len() < hosts.len() && !known {
                let address = address.clone();
                all.push(Network {
                    by: Uniting::Router(Hop { ttl, address }),
                    hosts: passing,
                });
            }
        }
    }
    all.retain(|network| network.hosts.len() > 1);
    all
}

/// The router that packets towards a host pass first, where it answered.
pub fn first_router(host: &Host<'_>) -> Option<String> {
    let mut all = routers(host).into_iter();
    all.find(|(_, ttl)| *ttl == 1).map(|(address, _)| address)
}

/// The last router that the paths to all of these hosts lead over; `None` where they share none that answers.
pub fn last_shared(hosts: &[Host<'_>], those: &BTreeSet<usize>) -> Option<Hop> {
    let mut paths = those
        .iter()
        .filter_map(|index| hosts.get(*index))
        .map(routers);
    let first = paths.next()?;
    let others: Vec<BTreeMap<String, u8>> = paths.collect();
    let shared = first
        .into_iter()
        .filter(|(address, _)| others.iter().all(|path| path.contains_key(address)));
    let (address, ttl) = shared.max_by_key(|(_, ttl)| *ttl)?;
    Some(Hop { ttl, address })
}

/// The last router at which packets towards some hosts, and towards some others, have not parted yet.
pub fn split_after(
    hosts: &[Host<'_>],
    some: &BTreeSet<usize>,
    others: &BTreeSet<usize>,
) -> Option<Hop> {
    let with = others.iter().filter_map(|other| {
        let mut together = some.clone();
        together.insert(*other);
        last_shared(hosts, &together)
    });
    with.max_by_key(|hop| hop.ttl)
}

//! Addresses and routes of a scenario: pure arithmetic on its links.
//!
//! Link *k* is 10.0.*k*.0/24; the first end has .1, the second .2. A node answers by the
//! address of its first link, and every node knows a shortest way to every link.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use crate::scenario::{LinkSpec, Scenario};

/// Prefix length of every link.
pub const PREFIX: u8 = 24;

/// What one node is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlan {
    /// Interfaces and their addresses.
    pub addresses: Vec<(String, Ipv4Addr)>,
    /// Networks and the neighbours that lead to them.
    pub routes: Vec<(Ipv4Addr, Ipv4Addr)>,
}

/// Address of one end (0 or 1) of link number `link`.
fn address(link: usize, end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, link as u8, end as u8 + 1)
}

fn network(link: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, link as u8, 0)
}

/// Which end of `link` is `node`.
fn end_of(link: &LinkSpec, node: &str) -> Option<usize> {
    link.between.iter().position(|name| name == node)
}

/// The address that the name of a node resolves to; `None` for a node without links.
pub fn address_of(scenario: &Scenario, node: &str) -> Option<Ipv4Addr> {
    scenario
        .links
        .iter()
        .enumerate()
        .find_map(|(k, link)| end_of(link, node).map(|end| address(k, end)))
}

/// Addresses and routes of one node.
pub fn plan(scenario: &Scenario, node: &str) -> NodePlan {
    let mut addresses = Vec::new();
    let mut routes = Vec::new();
    // Breadth first from this node: each entry is a node and the neighbour that leads there.
    let mut queue = VecDeque::from([(node, None::<Ipv4Addr>)]);
    let mut seen_nodes = vec![node];
    let mut seen_links = vec![false; scenario.links.len()];
    while let Some((here, via)) = queue.pop_front() {
        for (k, link) in scenario.links.iter().enumerate() {
            let Some(end) = end_of(link, here) else {
                continue;
            };
            if let Some(seen) = seen_links.get_mut(k)
                && !std::mem::replace(seen, true)
            {
                match via {
                    None => addresses.push((link.name.clone(), address(k, end))),
                    Some(via) => routes.push((network(k), via)),
                }
            }
            let Some(other) = link.between.get(1 - end) else {
                continue;
            };
            if !seen_nodes.contains(&other.as_str()) {
                seen_nodes.push(other);
                queue.push_back((other, via.or(Some(address(k, 1 - end)))));
            }
        }
    }
    NodePlan { addresses, routes }
}

/// The hosts(5) file that every node sees.
pub fn hosts_file(scenario: &Scenario) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    for node in &scenario.nodes {
        if let Some(address) = address_of(scenario, &node.name) {
            text += &format!("{address} {}\n", node.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn home_cable_is_routed_end_to_end() {
        let scenario = Scenario::load("home-cable").unwrap();
        let ip = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        let client = plan(&scenario, "client");
        assert_eq!(client.addresses, [("lan".to_owned(), ip("10.0.0.1"))]);
        assert_eq!(
            client.routes,
            [
                (ip("10.0.1.0"), ip("10.0.0.2")),
                (ip("10.0.2.0"), ip("10.0.0.2"))
            ]
        );
        let server = plan(&scenario, "server");
        assert_eq!(
            server.routes,
            [
                (ip("10.0.1.0"), ip("10.0.2.1")),
                (ip("10.0.0.0"), ip("10.0.2.1"))
            ]
        );
        assert!(hosts_file(&scenario).contains("10.0.2.2 server\n"));
    }
}

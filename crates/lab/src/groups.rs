//! Multicast: the way of each group from its sender to its receivers, over the routers between
//! them. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use plumb_model::prefix::Prefix;
use plumb_net::multicast::MAX_INTERFACES;

use crate::graph::Graph;
use crate::nearest::known;
use crate::plan::{MulticastRoute, Plan};
use crate::problem::{Problem, each};
use crate::scenario::Scenario;
use crate::topology::MulticastSpec;

/// Every IPv4 group (RFC 5771 section 3). For IPv6's the kernel has such a route by itself.
const ALL_GROUPS: Prefix = Prefix {
    address: IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)),
    length: 4,
};

/// Adds the scenario's groups to a plan. They go the shortest way, whatever `[[route]]` says.
pub(crate) fn lay(scenario: &Scenario, graph: &Graph<'_>, plan: &mut Plan) -> Result<(), Problem> {
    let mut said = BTreeSet::new();
    for (number, spec) in scenario.multicasts.iter().enumerate() {
        let what = format!("multicast to {}", spec.group);
        let here = |problem: Problem| problem.of(&what).in_element("multicast", number);
        let wrong = |problem: String| here(problem.into());
        if !may_be_routed(spec.group) {
            return Err(wrong(
                "this is no group that routers pass on: use one such as 239.1.2.3 or ff3e::1234"
                    .into(),
            ));
        }
        if spec.group.is_ipv6() && !scenario.ipv6 {
            return Err(wrong("the scenario has ipv6 = false".into()));
        }
        if !said.insert((spec.group, &spec.from)) {
            return Err(wrong(format!(
                "there are two from '{}': name all receivers in one",
                spec.from
            )));
        }
        lay_one(spec, graph, plan).map_err(here)?;
    }
    for (number, node) in plan.nodes.iter_mut().enumerate() {
        // Groups that a program sends to or joins, and that the scenario does not mention.
        if let (false, Some(first)) = (scenario.multicasts.is_empty(), node.interfaces.first()) {
            node.groups.insert(ALL_GROUPS, first.name.clone());
        }
        let used: BTreeSet<&String> = node
            .multicast
            .iter()
            .flat_map(|route| route.to.iter().chain([&route.from]))
            .collect();
        if used.len() > MAX_INTERFACES {
            return Err(Problem::from(format!(
                "node '{}' passes multicast on over {} links, and the kernel does it over at most {MAX_INTERFACES}",
                node.name,
                used.len()
            ))
            .in_element("node", number));
        }
    }
    Ok(())
}

fn lay_one(spec: &MulticastSpec, graph: &Graph<'_>, plan: &mut Plan) -> Result<(), Problem> {
    let find = |name: &str| {
        graph.node(name).ok_or_else(|| {
            format!(
                "there is no node '{name}': {}",
                known(name, &graph.nodes, "nodes")
            )
        })
    };
    let from = find(&spec.from).map_err(|problem| Problem::from(problem).at("from"))?;
    if spec.to.is_empty() {
        return Err("to is empty: name the receivers".into());
    }
    let tree = graph.tree(from);
    // Segments by which each node passes the packets on, and by which it gets them.
    let mut sends: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut gets: BTreeMap<usize, usize> = BTreeMap::new();
    each("to", &spec.to, |name| {
        let receiver = find(name)?;
        if receiver == from {
            return Err(format!("'{name}' sends it and needs not receive it").into());
        }
        let mut here = receiver;
        while here != from {
            let Some(reached) = tree.nodes.get(here).copied().flatten() else {
                return Err(format!("no path leads from '{}' to '{name}'", spec.from).into());
            };
            gets.insert(here, reached.by);
            sends.entry(reached.before).or_default().insert(reached.by);
            here = reached.before;
        }
        Ok(())
    })?;
    let segment = |k: usize| graph.segments.get(k).map_or("", |s| s.name).to_owned();
    let first: Vec<usize> = sends.remove(&from).into_iter().flatten().collect();
    let [first] = first.as_slice() else {
        let names: Vec<String> = first.iter().map(|k| segment(*k)).collect();
        return Err(format!(
            "it would leave '{}' by {}, and a sender sends by one link: put a router behind that link",
            spec.from,
            names.join(" and ")
        )
        .into());
    };
    let Some((v4, v6)) = graph.addresses(from, *first) else {
        return Err(format!("'{}' has no link", spec.from).into());
    };
    let source: IpAddr = if spec.group.is_ipv4() {
        v4.into()
    } else {
        v6.into()
    };
    gets.insert(from, *first);
    for (node, by) in gets {
        let Some(of_node) = plan.nodes.get_mut(node) else {
            continue;
        };
        if let Some(to) = sends.get(&node) {
            of_node.multicast.push(MulticastRoute {
                source,
                group: spec.group,
                from: segment(by),
                to: to.iter().map(|k| segment(*k)).collect(),
            });
        }
        of_node
            .groups
            .entry(Prefix::host(spec.group))
            .or_insert_with(|| segment(by));
    }
    Ok(())
}

/// Multicast beyond the link that it is sent on (RFC 5771 section 4, RFC 4291 section 2.7).
fn may_be_routed(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.is_multicast() && !group.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(group) => {
            let [_, scope, ..] = group.octets();
            // 1 is the interface, 2 the link; 0 and 15 are reserved.
            group.is_multicast() && (3..15).contains(&(scope & 0xf))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    const STAR: &str = "name = \"x\"\nsummary = \"x\"\n\
        [[node]]\nname = \"s\"\n[[node]]\nname = \"r\"\nforward = true\n\
        [[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[node]]\nname = \"c\"\n\
        [[link]]\nname = \"up\"\nbetween = [\"s\", \"r\"]\n\
        [[link]]\nname = \"la\"\nbetween = [\"r\", \"a\"]\n[[link]]\nname = \"lb\"\nbetween = [\"r\", \"b\"]\n\
        [[link]]\nname = \"lc\"\nbetween = [\"r\", \"c\"]\n";

    fn plan(group: &str, from: &str, to: &str) -> Result<Plan, String> {
        let text =
            format!("{STAR}[[multicast]]\ngroup = \"{group}\"\nfrom = \"{from}\"\nto = {to}\n");
        Scenario::parse(&text, "x")
            .map(|scenario| crate::layout::plan(&scenario).unwrap())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn routers_pass_it_on_towards_receivers_only() {
        for (group, source) in [("239.1.2.3", "10.0.0.1"), ("ff3e::9", "fd00::1")] {
            let plan = plan(group, "s", "[\"a\", \"b\"]").unwrap();
            let group: IpAddr = group.parse().unwrap();
            assert_eq!(
                plan.nodes[1].multicast,
                [MulticastRoute {
                    source: source.parse().unwrap(),
                    group,
                    from: "up".into(),
                    to: vec!["la".into(), "lb".into()],
                }]
            );
            let by = |node: usize| {
                let groups = &plan.nodes[node].groups;
                groups.get(&Prefix::host(group)).map(String::as_str)
            };
            assert_eq!(
                [by(0), by(2), by(3), by(4)],
                [Some("up"), Some("la"), Some("lb"), None]
            );
        }
    }

    #[test]
    fn contradictions_are_named() {
        let wrong = |group, from, to, word: &str| {
            let error = plan(group, from, to).unwrap_err();
            assert!(error.contains(word), "{error}");
        };
        wrong("10.0.0.1", "s", "[\"a\"]", "239.1.2.3");
        wrong("224.0.0.5", "s", "[\"a\"]", "239.1.2.3");
        wrong("ff02::5", "s", "[\"a\"]", "ff3e::1234");
        wrong("239.1.2.3", "s", "[]", "to is empty");
        wrong("239.1.2.3", "s", "[\"s\"]", "'s' sends it");
        wrong("239.1.2.3", "s", "[\"d\"]", "no node 'd'");
        wrong("239.1.2.3", "r", "[\"a\", \"b\"]", "la and lb");
    }
}

//! What each node of a scenario is given: interfaces, addresses, names and routes. Pure; every
//! contradiction between the parts of a network shows here.
//!
//! Every node knows a shortest way to every segment, unless the scenario says otherwise
//! ([`crate::routes`]).

use std::net::Ipv6Addr;

use crate::graph::{self, Graph};
use crate::plan::{Interface, NodePlan, Plan, Route};
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::{groups, routes};

/// Plans the network of a scenario whose names are sound.
///
/// # Errors
/// When its parts contradict each other; the text says which, and what is allowed.
pub(crate) fn plan(scenario: &Scenario) -> Result<Plan, Problem> {
    let graph = Graph::new(scenario);
    let mut plan = Plan {
        hosts: hosts_file(scenario, &graph),
        ..Plan::default()
    };
    for (node, spec) in scenario.nodes.iter().enumerate() {
        let tree = graph.tree(node);
        if let Some((between, behind)) = graph.stands_between(node, &tree) {
            let number = between;
            let (between, behind) = (graph.name(between), graph.name(behind));
            return Err(Problem::from(format!(
                "node '{between}' stands between '{}' and '{behind}' and does not forward: give it forward = true, or forward = false if that is meant",
                spec.name
            ))
            .in_element("node", number));
        }
        let mut routes = Vec::new();
        for (k, way) in tree.segments.iter().enumerate() {
            if let Ok(Some(step)) = way {
                routes.extend(graph::prefixes(k, scenario.ipv6).map(|to| Route {
                    to,
                    hops: routes::hop(&graph, *step, to).into_iter().collect(),
                    tables: Vec::new(),
                }));
            }
        }
        plan.nodes.push(NodePlan {
            name: spec.name.clone(),
            forward: spec.forward == Some(true),
            interfaces: interfaces(&graph, node, scenario.ipv6),
            routes,
            ..NodePlan::default()
        });
    }
    routes::lay(scenario, &graph, &mut plan)?;
    groups::lay(scenario, &graph, &mut plan)?;
    Ok(plan)
}

fn interfaces(graph: &Graph<'_>, node: usize, ipv6: bool) -> Vec<Interface> {
    let ends = graph.ends.get(node).into_iter().flatten();
    ends.filter_map(|&k| {
        let segment = graph.segments.get(k)?;
        let (v4, v6) = graph.addresses(node, k)?;
        let [.., host] = v6.segments();
        let ethernet = ipv6 && !segment.emulated;
        Some(Interface {
            name: segment.name.to_owned(),
            v4,
            v6: ipv6.then_some(v6),
            link_local: ethernet.then(|| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host)),
            mtu_bytes: segment.mtu,
            single_segments: false,
        })
    })
    .collect()
}

/// Every node under its own name at its first address, and under `NODE.LINK` at each.
fn hosts_file(scenario: &Scenario, graph: &Graph<'_>) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    if scenario.ipv6 {
        text += "::1 localhost\n";
    }
    for (node, spec) in scenario.nodes.iter().enumerate() {
        let ends = graph.ends.get(node).into_iter().flatten();
        for (i, &k) in ends.enumerate() {
            let (Some((v4, v6)), Some(segment)) = (graph.addresses(node, k), graph.segments.get(k))
            else {
                continue;
            };
            let end = graph::end_name(&spec.name, segment.name);
            let names = if i == 0 {
                let own = [spec.name.clone(), end].into_iter();
                own.chain(spec.names.iter().cloned())
                    .collect::<Vec<_>>()
                    .join(" ")
            } else {
                end
            };
            text += &format!("{v4} {names}\n");
            if scenario.ipv6 {
                text += &format!("{v6} {names}\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::net::IpAddr;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn home_cable_is_routed_end_to_end() {
        let plan = super::plan(&Scenario::load("home-cable").unwrap()).unwrap();
        let client = &plan.nodes[0];
        assert_eq!(client.name, "client");
        assert_eq!(
            client.interfaces,
            [Interface {
                name: "lan".into(),
                v4: "10.0.0.1".parse().unwrap(),
                v6: Some("fd00::1".parse().unwrap()),
                link_local: Some("fe80::1".parse().unwrap()),
                mtu_bytes: None,
                single_segments: false,
            }]
        );
        let routes: Vec<_> = client
            .routes
            .iter()
            .map(|r| (r.to.to_string(), r.hops[0].gateway, &*r.hops[0].interface))
            .collect();
        let via = |to: &str, gateway| (to.to_owned(), Some(ip(gateway)), "lan");
        assert_eq!(
            routes,
            [
                via("10.0.1.0/24", "10.0.0.2"),
                via("fd00:0:0:1::/64", "fd00::2"),
                via("10.0.2.0/24", "10.0.0.2"),
                via("fd00:0:0:2::/64", "fd00::2"),
            ]
        );
        // Emulated, and so no Ethernet.
        assert_eq!(plan.nodes[3].interfaces[0].link_local, None);
    }

    #[test]
    fn every_end_has_a_name_and_every_node_one_of_its_own() {
        let text = "name = \"x\"\nsummary = \"x\"\n[[node]]\nname = \"a\"\nnames = [\"www.example\"]\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n[[link]]\nname = \"m\"\nbetween = [\"a\", \"b\"]\n";
        let hosts = |text: &str| plan(&Scenario::parse(text, "x").unwrap()).unwrap().hosts;
        assert_eq!(
            hosts(&format!("ipv6 = false\n{text}")),
            "127.0.0.1 localhost\n10.0.0.1 a a.l www.example\n10.0.1.1 a.m\n10.0.0.2 b b.l\n10.0.1.2 b.m\n"
        );
        assert!(hosts(text).contains("\nfd00::1 a a.l www.example\n"));
        assert!(hosts(text).contains("\nfd00:0:0:1::2 b.m\n"));
    }

    #[test]
    fn a_node_in_the_middle_must_say_whether_it_forwards() {
        let text = |middle: &str| {
            format!(
                "name = \"x\"\nsummary = \"x\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"m\"\n{middle}\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"m\"]\n[[link]]\nname = \"k\"\nbetween = [\"m\", \"b\"]\n"
            )
        };
        let error = Scenario::parse(&text(""), "x").unwrap_err().to_string();
        assert!(
            error.contains("'m' stands between 'a' and 'b'") && error.contains("forward = true"),
            "{error}"
        );
        let routes = |middle: &str| {
            let scenario = Scenario::parse(&text(middle), "x").unwrap();
            plan(&scenario).unwrap().nodes[0].routes.len()
        };
        assert_eq!(routes("forward = true"), 2);
        // The middle's own address on the other side is there; what is behind it is not.
        assert_eq!(routes("forward = false"), 2);
    }
}

//! The routes of a scenario that differ from the shortest: what each `[[route]]` means. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use plumb_model::prefix::Prefix;

use crate::graph::{self, Graph, Step};
use crate::nearest::known;
use crate::plan::{Change, Deal, Hop, Plan, Route};
use crate::problem::{Problem, each};
use crate::scenario::Scenario;
use crate::topology::{Balance, RouteSpec};

/// The first table and mark of routes that are dealt out packet by packet; the kernel's own tables
/// are 253 to 255.
const FIRST_DEALT: u32 = 1000;

/// The interface and gateway of a step towards a prefix.
pub(crate) fn hop(graph: &Graph<'_>, step: Step, to: Prefix) -> Option<Hop> {
    let (v4, v6) = graph.addresses(step.node, step.segment)?;
    let gateway: IpAddr = if to.address.is_ipv4() {
        v4.into()
    } else {
        v6.into()
    };
    Some(Hop {
        interface: graph.segments.get(step.segment)?.name.to_owned(),
        gateway: (Prefix::host(gateway) != to).then_some(gateway),
    })
}

/// Adds the scenario's routes to a plan that has the shortest ones.
pub(crate) fn lay(scenario: &Scenario, graph: &Graph<'_>, plan: &mut Plan) -> Result<(), Problem> {
    let mut said: BTreeSet<(usize, Prefix, Duration)> = BTreeSet::new();
    let mut deals: BTreeMap<(usize, Prefix), Deal> = BTreeMap::new();
    let mut resolved = Vec::new();
    for (number, spec) in scenario.routes.iter().enumerate() {
        let what = format!("the route of '{}' to '{}'", spec.node, spec.to);
        let here = |problem: Problem| problem.of(&what).in_element("route", number);
        let wrong = |problem: String| here(problem.into());
        if spec.at == Some(Duration::ZERO) {
            return Err(wrong("at = 0 is from the start: leave it out".into()));
        }
        let Some(node) = graph.node(&spec.node) else {
            return Err(wrong(format!(
                "there is no such node: {}",
                known(&spec.node, &graph.nodes, "nodes")
            )));
        };
        let steps = steps(graph, node, spec).map_err(here)?;
        let balance = match (spec.balance, steps.as_slice()) {
            (_, []) => return Err(wrong("via is empty: name a neighbour".into())),
            (Some(_), [_]) => {
                return Err(wrong(
                    "balance shares packets among several neighbours, and via names one".into(),
                ));
            }
            (balance, _) => balance.unwrap_or(Balance::Flow),
        };
        for to in destinations(graph, node, spec, scenario.ipv6).map_err(wrong)? {
            let at = spec.at.unwrap_or_default();
            if !said.insert((node, to, at)) {
                return Err(wrong(format!(
                    "there are two for {to} from the same time on; keep one, give the other an at = \"10s\", or name several neighbours in one via"
                )));
            }
            let count = steps.len() as u32;
            if balance == Balance::Packet {
                let of_node = deals.iter().filter(|((n, _), _)| *n == node);
                let used: u32 = of_node.map(|(_, deal)| deal.count).sum();
                let first = FIRST_DEALT + used;
                let deal = deals.entry((node, to)).or_insert(Deal { to, first, count });
                if deal.count != count {
                    return Err(wrong(format!(
                        "its packets are shared among {} neighbours at one time and {count} at another; their number has to stay",
                        deal.count
                    )));
                }
            }
            resolved.push((node, to, spec.at, balance, steps.clone()));
        }
    }
    for (node, to, at, balance, steps) in resolved {
        let hops: Vec<Hop> = steps.iter().filter_map(|s| hop(graph, *s, to)).collect();
        let tables = deals.get(&(node, to)).map_or_else(Vec::new, |deal| {
            (0..deal.count)
                .map(|i| {
                    let own = hops.get(i as usize).filter(|_| balance == Balance::Packet);
                    let hops = own.map_or_else(|| hops.clone(), |own| vec![own.clone()]);
                    (deal.first + i, hops)
                })
                .collect()
        });
        let route = Route { to, hops, tables };
        let Some(of_node) = plan.nodes.get_mut(node) else {
            continue;
        };
        match at {
            Some(at) => plan.changes.push(Change {
                at,
                node: of_node.name.clone(),
                route,
            }),
            None => {
                of_node.routes.retain(|shortest| shortest.to != to);
                of_node.routes.push(route);
            }
        }
    }
    plan.changes.sort_by_key(|change| change.at);
    for ((node, _), deal) in deals {
        if let Some(of_node) = plan.nodes.get_mut(node) {
            of_node.deals.push(deal);
        }
        // Marks in turn need single packets: the sender must not join the segments that come in, and this node must not
        // join those that begin here.
        for k in graph.ends.get(node).into_iter().flatten() {
            let Some(segment) = graph.segments.get(*k) else {
                continue;
            };
            for member in &segment.nodes {
                let interfaces = plan.nodes.get_mut(*member).map(|n| n.interfaces.iter_mut());
                for interface in interfaces.into_iter().flatten() {
                    interface.single_segments |= interface.name == segment.name;
                }
            }
        }
    }
    Ok(())
}

/// The steps that `via` names.
fn steps(graph: &Graph<'_>, node: usize, spec: &RouteSpec) -> Result<Vec<Step>, Problem> {
    let mut steps: Vec<Step> = Vec::new();
    each("via", &spec.via, |via| {
        let ways: Vec<Step> = graph
            .steps(node)
            .filter(|step| graph.name(step.node) == via || graph.step_name(*step) == *via)
            .collect();
        let step = match ways.as_slice() {
            [step] => *step,
            [] => {
                let mut neighbours: Vec<&str> =
                    graph.steps(node).map(|s| graph.name(s.node)).collect();
                neighbours.dedup();
                return Err(format!(
                    "via '{via}' is no neighbour: {}",
                    known(via, &neighbours, "neighbours")
                )
                .into());
            }
            several => {
                let names: Vec<String> = several.iter().map(|s| graph.step_name(*s)).collect();
                return Err(format!(
                    "several links lead to '{via}': name one of {}",
                    names.join(", ")
                )
                .into());
            }
        };
        if !graph.forwards(step.node) && graph.name(step.node) != spec.to {
            return Err(format!(
                "via '{via}' leads nowhere, because that node has no forward = true"
            )
            .into());
        }
        if steps.contains(&step) {
            return Err(format!("via names '{via}' twice").into());
        }
        steps.push(step);
        Ok(())
    })?;
    Ok(steps)
}

/// The prefixes that `to` names.
fn destinations(
    graph: &Graph<'_>,
    node: usize,
    spec: &RouteSpec,
    ipv6: bool,
) -> Result<Vec<Prefix>, String> {
    if spec.to == "default" {
        let all = |address: IpAddr| Prefix { address, length: 0 };
        let v6 = ipv6.then(|| all(Ipv6Addr::UNSPECIFIED.into()));
        return Ok([all(Ipv4Addr::UNSPECIFIED.into())]
            .into_iter()
            .chain(v6)
            .collect());
    }
    let to = graph.node(&spec.to);
    let segment = graph.segments.iter().position(|s| s.name == spec.to);
    match (to, segment) {
        (Some(_), Some(_)) => Err(format!(
            "'{}' is a node and a link: name one of them otherwise",
            spec.to
        )),
        (Some(to), None) if to == node => Err("it leads from the node to itself".into()),
        (Some(to), None) => {
            let ends = graph.ends.get(to).into_iter().flatten();
            let addresses = ends.filter_map(|&k| graph.addresses(to, k));
            Ok(addresses
                .flat_map(|(v4, v6)| [v4.into(), v6.into()])
                .filter(|address: &IpAddr| ipv6 || address.is_ipv4())
                .map(Prefix::host)
                .collect())
        }
        (None, Some(k)) if graph.ends.get(node).is_some_and(|ends| ends.contains(&k)) => {
            Err("the node is on it itself and needs no route".into())
        }
        (None, Some(k)) => Ok(graph::prefixes(k, ipv6).collect()),
        (None, None) => {
            let mut names = graph.nodes.clone();
            names.extend(graph.segments.iter().map(|s| s.name));
            names.push("default");
            Err(format!(
                "there is no such node or link: {}",
                known(&spec.to, &names, "destinations")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    /// A diamond: a, then r1 or r2, then b; and r1 and r2 joined twice.
    const DIAMOND: &str = "name = \"x\"\nsummary = \"x\"\nipv6 = false\n\
        [[node]]\nname = \"a\"\nforward = true\n[[node]]\nname = \"b\"\n\
        [[node]]\nname = \"r1\"\nforward = true\n[[node]]\nname = \"r2\"\nforward = true\n\
        [[link]]\nname = \"a1\"\nbetween = [\"a\", \"r1\"]\n[[link]]\nname = \"a2\"\nbetween = [\"a\", \"r2\"]\n\
        [[link]]\nname = \"b1\"\nbetween = [\"r1\", \"b\"]\n[[link]]\nname = \"b2\"\nbetween = [\"r2\", \"b\"]\n\
        [[link]]\nname = \"c1\"\nbetween = [\"r1\", \"r2\"]\n[[link]]\nname = \"c2\"\nbetween = [\"r1\", \"r2\"]\n";

    fn plan(extra: &str) -> Result<Plan, String> {
        Scenario::parse(&format!("{DIAMOND}{extra}"), "x")
            .map(|scenario| crate::layout::plan(&scenario).unwrap())
            .map_err(|e| e.to_string())
    }

    fn to(text: &str) -> Prefix {
        Prefix::host(text.parse().unwrap())
    }

    fn hops_of(route: &Route) -> Vec<&str> {
        route.hops.iter().map(|h| &*h.interface).collect()
    }

    #[test]
    fn a_route_goes_to_each_address_of_a_node() {
        let plan = plan("[[route]]\nnode = \"a\"\nto = \"b\"\nvia = \"r2\"\n").unwrap();
        let routes = &plan.nodes[0].routes;
        for address in ["10.0.2.2", "10.0.3.2"] {
            let route = routes.iter().find(|r| r.to == to(address)).unwrap();
            assert_eq!(hops_of(route), ["a2"], "{address}");
            assert_eq!(route.hops[0].gateway, Some("10.0.1.2".parse().unwrap()));
        }
        // The shortest way to the network is there as before.
        let network = |r: &&Route| r.to.to_string() == "10.0.2.0/24";
        assert_eq!(hops_of(routes.iter().find(network).unwrap()), ["a1"]);
    }

    #[test]
    fn packets_are_dealt_out_from_tables_of_their_own() {
        let plan = plan("[[route]]\nnode = \"a\"\nto = \"b1\"\nvia = [\"r1\", \"r2\"]\nbalance = \"packet\"\n[[route]]\nnode = \"a\"\nto = \"b1\"\nvia = \"r2\"\nat = \"10s\"\n").unwrap();
        let a = &plan.nodes[0];
        let (first, count) = (FIRST_DEALT, 2);
        let to = a.deals[0].to;
        assert_eq!(a.deals, [Deal { to, first, count }]);
        let route = a.routes.iter().find(|r| r.to == to).unwrap();
        assert_eq!(hops_of(route), ["a1", "a2"]);
        let tables: Vec<_> = route.tables.iter().map(|(t, h)| (*t, h.clone())).collect();
        assert_eq!(
            tables,
            [
                (1000, vec![route.hops[0].clone()]),
                (1001, vec![route.hops[1].clone()])
            ]
        );
        // Both ends of the links of the one who deals.
        assert!(a.interfaces.iter().all(|i| i.single_segments));
        let r1: Vec<bool> = plan.nodes[2]
            .interfaces
            .iter()
            .map(|i| i.single_segments)
            .collect();
        assert_eq!(r1, [true, false, false, false]);
        // When the route changes, both tables do.
        let change = &plan.changes[0];
        assert_eq!(change.at, Duration::from_secs(10));
        assert!(
            change
                .route
                .tables
                .iter()
                .all(|(_, h)| h[0].interface == "a2")
        );
    }

    #[test]
    fn links_side_by_side_are_named_by_their_ends() {
        let route = |via: &str| format!("[[route]]\nnode = \"r1\"\nto = \"b2\"\nvia = {via}\n");
        let plan = plan(&route("[\"r2.c1\", \"r2.c2\"]")).unwrap();
        let routes = &plan.nodes[2].routes;
        let network = |r: &&Route| r.to.to_string() == "10.0.3.0/24";
        assert_eq!(hops_of(routes.iter().find(network).unwrap()), ["c1", "c2"]);
        let error = self::plan(&route("\"r2\"")).unwrap_err();
        assert!(error.contains("r2.c1, r2.c2"), "{error}");
    }

    #[test]
    fn contradictions_are_named() {
        let wrong = |lines: &str, words: &[&str]| {
            let error = plan(&format!("[[route]]\n{lines}")).unwrap_err();
            assert!(words.iter().all(|w| error.contains(w)), "{lines}: {error}");
        };
        let route = "node = \"a\"\nto = \"b\"\nvia = \"r1\"\n";
        wrong(
            &format!("{route}[[route]]\n{route}"),
            &["two for 10.0.2.2/32", "keep one"],
        );
        wrong(
            &format!("{route}balance = \"flow\""),
            &["several neighbours", "via names one"],
        );
        wrong(&format!("{route}at = \"0s\""), &["leave it out"]);
        wrong(&format!("{route}at = \"soon\""), &["250ms"]);
        wrong(
            "node = \"a\"\nto = \"b\"\nvia = [\"r1\", \"r1\"]",
            &["'r1' twice"],
        );
        wrong("node = \"a\"\nto = \"b\"\nvia = []", &["via is empty"]);
        wrong(
            "node = \"a\"\nto = \"b\"\nvia = \"b\"",
            &["no neighbour", "r1, r2"],
        );
        wrong(
            "node = \"r2\"\nto = \"r1\"\nvia = \"b\"",
            &["no forward = true"],
        );
        wrong(
            "node = \"a\"\nto = \"a1\"\nvia = \"r2\"",
            &["needs no route"],
        );
        wrong(
            "node = \"a\"\nto = \"a\"\nvia = \"r2\"",
            &["from the node to itself"],
        );
        wrong(
            "node = \"a\"\nto = \"defautl\"\nvia = \"r2\"",
            &["did you mean 'default'", "a, b, r1, r2, a1"],
        );
        wrong(
            "node = \"r3\"\nto = \"b\"\nvia = \"r2\"",
            &["no such node", "a, b, r1, r2"],
        );
        wrong(
            "node = \"a\"\nto = \"b\"\nvia = \"r2\"\nbalance = \"flows\"",
            &["`flow`", "`packet`"],
        );
    }
}

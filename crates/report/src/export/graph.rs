//! A path as a graph: who stands at which distance, and who comes after whom.

use std::collections::{BTreeMap, BTreeSet};

use plumb_model::results::path::{Balancing, Sameness};
use serde_json::{Value, json};

use super::form::Traced;

/// A node: its distance and its address; none for one that does not answer.
type Node = (u8, Option<String>);

/// The graph of all paths where they were looked for, and otherwise of the routes that were seen.
struct Graph {
    nodes: BTreeSet<Node>,
    /// Edges, and whether the nearer end shares by flow or by packet.
    edges: BTreeMap<(Node, Node), Option<Balancing>>,
}

impl Graph {
    fn of(traced: &Traced<'_>) -> Self {
        let path = traced.path;
        let mut graph = Self {
            nodes: BTreeSet::from([(0, None)]),
            edges: BTreeMap::new(),
        };
        if let Some(all) = &path.multipath {
            for node in &all.nodes {
                for next in &node.next {
                    let to = (node.ttl.saturating_add(1), next.clone());
                    graph.add((node.ttl, node.address.clone()), to, node.balancing);
                }
            }
            return graph;
        }
        for route in &path.routes {
            graph.add_line(&route.addresses);
        }
        if path.routes.is_empty() {
            let line: Vec<_> = path.hops.iter().map(|hop| hop.address.clone()).collect();
            graph.add_line(&line);
        }
        graph
    }

    fn add_line(&mut self, addresses: &[Option<String>]) {
        let mut from = (0, None);
        for (ttl, address) in (1u8..=u8::MAX).zip(addresses) {
            let to = (ttl, address.clone());
            self.add(from, to.clone(), None);
            from = to;
        }
    }

    fn add(&mut self, from: Node, to: Node, balancing: Option<Balancing>) {
        self.nodes.insert(from.clone());
        self.nodes.insert(to.clone());
        self.edges.insert((from, to), balancing);
    }
}

fn id(node: &Node) -> String {
    match node {
        (0, _) => "this host".to_owned(),
        (ttl, Some(address)) => format!("{ttl}: {address}"),
        (ttl, None) => format!("{ttl}: *"),
    }
}

/// The reverse path: its nodes, from the target on, and which of them share a line or a router with a node of
/// the forward path.
struct Back {
    /// Identity, distance from the target, address.
    nodes: Vec<(String, u8, Option<String>)>,
    edges: Vec<(String, String)>,
    same: Vec<(String, String)>,
}

impl Back {
    fn of(traced: &Traced<'_>) -> Option<Self> {
        let path = traced.path;
        let back = path.way_back.as_deref()?;
        let there = |ttl: u8| {
            let hop = path.hops.iter().find(|hop| hop.ttl == ttl);
            id(&(ttl, hop.and_then(|hop| hop.address.clone())))
        };
        let last = back.hops.last().filter(|_| back.reached).map(|hop| hop.ttl);
        let name = |ttl: u8, address: &Option<String>| match address {
            _ if Some(ttl) == last => id(&(0, None)),
            Some(address) => format!("back {ttl}: {address}"),
            None => format!("back {ttl}: *"),
        };
        let nodes: Vec<_> = back
            .hops
            .iter()
            .map(|hop| (name(hop.ttl, &hop.address), hop.ttl, hop.address.clone()))
            .collect();
        let start = path.hops.last().map_or(0, |hop| hop.ttl);
        let mut from = there(start);
        let mut edges = Vec::new();
        for (node, ..) in &nodes {
            edges.push((std::mem::replace(&mut from, node.clone()), node.clone()));
        }
        let lines = path.symmetry.iter().flat_map(|symmetry| &symmetry.lines);
        let same = lines
            .filter(|line| line.sameness == Sameness::Same)
            .filter_map(|line| {
                let hop = back
                    .hops
                    .iter()
                    .find(|hop| Some(hop.ttl) == line.return_ttl)?;
                Some((there(line.forward_ttl?), name(hop.ttl, &hop.address)))
            })
            .collect();
        Some(Self { nodes, edges, same })
    }
}

/// Graphviz's language; addresses are text of our own making, so nothing needs escaping but quotes.
/// The reverse path is blue, and what shares a line or a router is joined by dots.
pub(super) fn dot(traced: &Traced<'_>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace(['"', '\\'], ""));
    let graph = Graph::of(traced);
    let mut text = "digraph path {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for node in &graph.nodes {
        text += &format!("  {};\n", quoted(&id(node)));
    }
    for ((from, to), balancing) in &graph.edges {
        let style = match balancing {
            Some(Balancing::PerPacket) => " [style=dashed, label=\"by packet\"]",
            _ => "",
        };
        text += &format!("  {} -> {}{style};\n", quoted(&id(from)), quoted(&id(to)));
    }
    if let Some(back) = Back::of(traced) {
        for (from, to) in &back.edges {
            let (from, to) = (quoted(from), quoted(to));
            text += &format!("  {from} -> {to} [color=blue, label=\"back\"];\n");
        }
        for (one, other) in &back.same {
            let (one, other) = (quoted(one), quoted(other));
            text += &format!("  {one} -> {other} [dir=none, style=dotted, constraint=false];\n");
        }
    }
    text + "}\n"
}

/// `{"nodes": [{"id", "ttl", "address"}], "edges": [{"from", "to", "balancing"}]}`, and where it is known
/// `"back": {"nodes", "edges", "same"}`, whose times to live count from the target.
pub(super) fn json(traced: &Traced<'_>) -> Value {
    let graph = Graph::of(traced);
    let nodes: Vec<Value> = graph
        .nodes
        .iter()
        .map(|node| json!({ "id": id(node), "ttl": node.0, "address": node.1 }))
        .collect();
    let edges: Vec<Value> = graph
        .edges
        .iter()
        .map(|((from, to), balancing)| json!({ "from": id(from), "to": id(to), "balancing": balancing }))
        .collect();
    let mut value = json!({ "nodes": nodes, "edges": edges });
    if let (Some(back), Some(fields)) = (Back::of(traced), value.as_object_mut()) {
        let nodes: Vec<Value> = back
            .nodes
            .iter()
            .map(|(id, ttl, address)| json!({ "id": id, "ttl": ttl, "address": address }))
            .collect();
        let pairs = |pairs: &[(String, String)]| -> Vec<Value> {
            pairs
                .iter()
                .map(|(from, to)| json!({ "from": from, "to": to }))
                .collect()
        };
        let back =
            json!({ "nodes": nodes, "edges": pairs(&back.edges), "same": pairs(&back.same) });
        fields.insert("back".to_owned(), back);
    }
    value
}

//! A path as a graph: who stands at which distance, and who comes after whom.

use std::collections::{BTreeMap, BTreeSet};

use plumb_model::results::path::{Balancing, PathResult};
use serde_json::{Value, json};

/// A node: its distance and its address; none for one that does not answer.
type Node = (u8, Option<String>);

/// The graph of all paths where they were looked for, and otherwise of the routes that were seen.
struct Graph {
    nodes: BTreeSet<Node>,
    /// Edges, and whether the nearer end shares by flow or by packet.
    edges: BTreeMap<(Node, Node), Option<Balancing>>,
}

impl Graph {
    fn of(path: &PathResult) -> Self {
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

/// Graphviz's language; addresses are text of our own making, so nothing needs escaping but quotes.
pub(super) fn dot(path: &PathResult) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace(['"', '\\'], ""));
    let graph = Graph::of(path);
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
    text + "}\n"
}

/// `{"nodes": [{"id", "ttl", "address"}], "edges": [{"from", "to", "balancing"}]}`.
pub(super) fn json(path: &PathResult) -> Value {
    let graph = Graph::of(path);
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
    json!({ "nodes": nodes, "edges": edges })
}

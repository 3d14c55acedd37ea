//! Who can reach whom, and the shortest way there: pure arithmetic on nodes and what joins them.
//!
//! Segment *k* (the links in order, then the lans) is 10.0.*k*.0/24 and fd00:0:0:*k*::/64; the
//! first node on it has .1 and ::1, the second .2 and ::2, and so on.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plumb_model::prefix::Prefix;

use crate::scenario::Scenario;

/// Prefix length of every segment in IPv4.
pub(crate) const PREFIX_V4: u8 = 24;
/// Prefix length of every segment in IPv6 (RFC 4291 section 2.5.4).
pub(crate) const PREFIX_V6: u8 = 64;

/// The nodes of a scenario and what joins them.
pub(crate) struct Graph<'a> {
    /// Names of the nodes.
    pub(crate) nodes: Vec<&'a str>,
    /// What the scenario says of each node's forwarding.
    forward: Vec<Option<bool>>,
    pub(crate) segments: Vec<Segment<'a>>,
    /// The segments of each node, in order.
    pub(crate) ends: Vec<Vec<usize>>,
}

/// A link or a lan.
pub(crate) struct Segment<'a> {
    pub(crate) name: &'a str,
    /// Who is on it, in the order of their addresses.
    pub(crate) nodes: Vec<usize>,
    /// Whether plumb carries the packets.
    pub(crate) emulated: bool,
    /// The MTU of its ends in bytes, where it is not a device's own.
    pub(crate) mtu: Option<u32>,
}

/// A node, as seen from another on the same segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) segment: usize,
    pub(crate) node: usize,
}

/// The shortest ways from one node to everywhere; of two as short, that by the earlier segment.
pub(crate) struct Tree {
    /// How each node is reached: the last step, by which node it is made, and the first step.
    pub(crate) nodes: Vec<Option<Reached>>,
    /// For each segment the first step on the forward path: none where the node is on it, and
    /// `Err` where no way leads.
    pub(crate) segments: Vec<Result<Option<Step>, Unreachable>>,
}

/// The end of a way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    pub(crate) before: usize,
    pub(crate) by: usize,
    first: Step,
}

/// No way leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreachable;

impl<'a> Graph<'a> {
    /// Takes it from a scenario, whose links and lans name nodes that there are.
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let nodes: Vec<&str> = scenario.nodes.iter().map(|n| n.name.as_str()).collect();
        let find = |name: &String| nodes.iter().position(|known| known == name);
        let links = scenario.links.iter().map(|link| Segment {
            name: &link.name,
            nodes: link.between.iter().filter_map(find).collect(),
            emulated: link.is_emulated(),
            mtu: link.mtu,
        });
        let lans = scenario.lans.iter().map(|lan| Segment {
            name: &lan.name,
            nodes: lan.nodes.iter().filter_map(find).collect(),
            emulated: false,
            mtu: lan.mtu,
        });
        let segments: Vec<Segment<'_>> = links.chain(lans).collect();
        let mut ends = vec![Vec::new(); nodes.len()];
        for (k, segment) in segments.iter().enumerate() {
            for &node in &segment.nodes {
                if let Some(ends) = ends.get_mut(node) {
                    ends.push(k);
                }
            }
        }
        Self {
            forward: scenario.nodes.iter().map(|n| n.forward).collect(),
            nodes,
            segments,
            ends,
        }
    }

    /// The number of a node.
    pub(crate) fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|known| *known == name)
    }

    /// The name of a node.
    pub(crate) fn name(&self, node: usize) -> &'a str {
        self.nodes.get(node).copied().unwrap_or_default()
    }

    /// What a step is called in a scenario: the end that it leads to.
    pub(crate) fn step_name(&self, step: Step) -> String {
        let segment = self.segments.get(step.segment).map_or("", |s| s.name);
        end_name(self.name(step.node), segment)
    }

    /// Whether a node passes packets on.
    pub(crate) fn forwards(&self, node: usize) -> bool {
        self.forward.get(node).copied().flatten() == Some(true)
    }

    /// The addresses of a node on a segment.
    pub(crate) fn addresses(&self, node: usize, segment: usize) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let nodes = &self.segments.get(segment)?.nodes;
        let host = nodes.iter().position(|n| *n == node)? as u16 + 1;
        Some(at(segment, host))
    }

    /// All steps from a node to its neighbours.
    pub(crate) fn steps(&self, node: usize) -> impl Iterator<Item = Step> {
        let ends = self.ends.get(node).into_iter().flatten();
        ends.flat_map(move |&segment| {
            let nodes = self.segments.get(segment).map(|s| s.nodes.iter());
            nodes
                .into_iter()
                .flatten()
                .filter(move |n| **n != node)
                .map(move |&node| Step { segment, node })
        })
    }

    /// The shortest ways from a node, through nodes that forward.
    pub(crate) fn tree(&self, from: usize) -> Tree {
        self.search(from, |node| self.forwards(node))
    }

    /// Whether packets begin and end at a node, rather than pass through.
    fn is_end(&self, node: usize) -> bool {
        !self.forwards(node) || self.ends.get(node).is_some_and(|ends| ends.len() == 1)
    }

    /// A node that stands between `from` and another end that could be reached if it forwarded, of
    /// which the scenario does not say that it shall not: its number, and who is behind it.
    /// Routers that do not reach each other are none: a host may have two providers.
    pub(crate) fn stands_between(&self, from: usize, tree: &Tree) -> Option<(usize, usize)> {
        if !self.is_end(from) {
            return None;
        }
        let might = self.search(from, |node| {
            self.forward.get(node).copied().flatten() != Some(false)
        });
        let reached = tree.nodes.iter().zip(&might.nodes).enumerate();
        let mut lost = reached
            .filter(|(node, (now, might))| now.is_none() && might.is_some() && self.is_end(*node));
        lost.find_map(|(node, (_, way))| {
            let mut way = *way;
            while let Some(reached) = way.filter(|reached| reached.before != from) {
                if !self.forwards(reached.before) {
                    return Some((reached.before, node));
                }
                way = might.nodes.get(reached.before).copied().flatten();
            }
            None
        })
    }

    fn search(&self, from: usize, passes: impl Fn(usize) -> bool) -> Tree {
        let mut nodes: Vec<Option<Reached>> = vec![None; self.nodes.len()];
        let mut segments = vec![Err(Unreachable); self.segments.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(here) = queue.pop_front() {
            let first = nodes.get(here).copied().flatten().map(|r| r.first);
            for &k in self.ends.get(here).into_iter().flatten() {
                // On a segment that was reached, so was everybody.
                match segments.get_mut(k) {
                    Some(segment) if segment.is_err() => *segment = Ok(first),
                    _ => continue,
                }
                for &node in self.segments.get(k).map_or(&[][..], |s| &s.nodes) {
                    let reached = nodes.get_mut(node);
                    if let Some(reached) = reached.filter(|r| r.is_none() && node != from) {
                        *reached = Some(Reached {
                            before: here,
                            by: k,
                            first: first.unwrap_or(Step { segment: k, node }),
                        });
                        if passes(node) {
                            queue.push_back(node);
                        }
                    }
                }
            }
        }
        // A machine that does not forward still answers by the addresses of its other side.
        for (node, reached) in nodes.iter().enumerate() {
            let Some(reached) = reached else { continue };
            for &k in self.ends.get(node).into_iter().flatten() {
                if let Some(segment) = segments.get_mut(k).filter(|s| s.is_err()) {
                    *segment = Ok(Some(reached.first));
                }
            }
        }
        Tree { nodes, segments }
    }
}

/// The addresses of host number `host` of a segment; host 0 is the segment's own.
fn at(segment: usize, host: u16) -> (Ipv4Addr, Ipv6Addr) {
    (
        Ipv4Addr::new(10, 0, segment as u8, host as u8),
        Ipv6Addr::new(0xfd00, 0, 0, segment as u16, 0, 0, 0, host),
    )
}

/// The addresses of both ends of a link, the first end's first.
pub(crate) fn ends(link: usize) -> [Vec<IpAddr>; 2] {
    [1, 2].map(|host| {
        let (v4, v6) = at(link, host);
        vec![v4.into(), v6.into()]
    })
}

/// The prefixes of a segment.
pub(crate) fn prefixes(segment: usize, ipv6: bool) -> impl Iterator<Item = Prefix> {
    let (v4, v6) = at(segment, 0);
    let v4 = Prefix {
        address: v4.into(),
        length: PREFIX_V4,
    };
    let v6 = Prefix {
        address: v6.into(),
        length: PREFIX_V6,
    };
    std::iter::once(v4).chain(ipv6.then_some(v6))
}

/// The name of one end of a link or lan.
pub(crate) fn end_name(node: &str, segment: &str) -> String {
    format!("{node}.{segment}")
}

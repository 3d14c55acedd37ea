//! All ways that equal-cost routing may take: the multipath detection algorithm (Augustin et al.,
//! 2007; Vermeulen et al., IMC 2018).
//!
//! A router that balances by flow sends each flow to one next hop. So flows are varied until, at every node, one more
//! next hop as likely as the others would have shown itself with the wanted confidence. A router that balances packet
//! by packet is recognised by one flow that reaches several next hops. Behind it, a flow no longer identifies a path,
//! and only the addresses at each distance are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::results::path::{Balancing, Multipath, MultipathNode};
use plumb_wire::path_probe::FLOWS;

use super::probe::{HopNetwork, Probe, ProbeId};

/// Probes that are out at once: few enough not to be taken for a flood.
const BATCH: usize = 32;
/// How often a probe is sent again that was not answered: routers limit how fast they answer.
const TRIES: u32 = 3;
/// What is waited before it is sent again: Linux lets one answer through every second by default
/// (icmp_ratelimit), others more.
const BACK_OFF_NS: u64 = 250_000_000;
/// How often one flow is sent to see whether it goes several ways. Dealt out evenly over two ways
/// it goes one way alone with a probability of 2^-11.
const REPEATS: usize = 12;
/// Distances without any answer after which there is no more to be found.
const SILENT_HOPS: u8 = 3;

/// What to look for.
#[derive(Debug, Clone, PartialEq)]
pub struct MultipathPlan {
    pub target: IpAddr,
    /// The last hop that is probed.
    pub last_hop: u8,
    /// The probability that no next hop of a node was missed, 0…1.
    pub confidence: f64,
    /// A probe whose answer takes longer counts as unanswered.
    pub timeout: Duration,
}

/// The address that answered a flow at a distance; `None` is a node that does not answer.
type Node = Option<IpAddr>;

/// What is known of one distance.
#[derive(Debug, Default)]
struct Distance {
    /// Who answered each flow.
    by_flow: BTreeMap<u16, Node>,
    /// Everybody who answered, other than the target.
    routers: BTreeSet<IpAddr>,
    /// Whether the target answered there.
    arrived: bool,
}

/// How many flows must have gone on from a node with so many next hops known, so that one more would
/// have been seen: the chance that one of `known + 1` equally likely ones was missed is at most
/// (known + 1)·(known/(known + 1))ⁿ.
fn enough(known: usize, confidence: f64) -> usize {
    let known = known.max(1) as f64;
    let more = known + 1.0;
    let doubt = (1.0 - confidence).clamp(1e-9, 0.5);
    let flows = ((doubt / more).ln() / (known / more).ln()).ceil();
    flows.clamp(1.0, f64::from(FLOWS)) as usize
}

struct Search<'a, N> {
    network: &'a mut N,
    plan: &'a MultipathPlan,
    stop: &'a AtomicBool,
    distances: Vec<Distance>,
    probes: u64,
    next_flow: u16,
    complete: bool,
}

/// Looks for all ways, until all are found or `stop` is set.
pub fn search(network: &mut impl HopNetwork, plan: &MultipathPlan, stop: &AtomicBool) -> Multipath {
    let mut search = Search {
        network,
        plan,
        stop,
        distances: vec![Distance::default()],
        probes: 0,
        next_flow: 0,
        complete: true,
    };
    let mut nodes: Vec<MultipathNode> = Vec::new();
    let mut mixed = false;
    let mut silent = 0;
    for ttl in 0..plan.last_hop {
        search.distances.push(Distance::default());
        let before: BTreeSet<Node> = search.nodes_at(ttl);
        let mut sharing = BTreeMap::new();
        if mixed {
            search.explore(ttl, None);
        } else {
            for node in &before {
                search.explore(ttl, Some(*node));
                let next = search.next_of(ttl, *node);
                if next.len() > 1 {
                    let by_packet = search.goes_several_ways(ttl, *node);
                    let how = if by_packet {
                        Balancing::PerPacket
                    } else {
                        Balancing::PerFlow
                    };
                    sharing.insert(*node, how);
                }
            }
        }
        for node in &before {
            let next: BTreeSet<Node> = if mixed {
                search.everybody_at(ttl + 1)
            } else {
                search.next_of(ttl, *node)
            };
            nodes.push(MultipathNode {
                ttl,
                address: node.map(|address| address.to_string()),
                next: next.iter().map(|n| n.map(|n| n.to_string())).collect(),
                balancing: sharing.get(node).copied(),
            });
        }
        mixed |= sharing.values().any(|how| *how == Balancing::PerPacket);
        let here = search.distances.last();
        let heard = here.is_some_and(|here| !here.routers.is_empty() || here.arrived);
        silent = if heard { 0 } else { silent + 1 };
        let over = here.is_some_and(|here| here.routers.is_empty() && here.arrived);
        if over || silent >= SILENT_HOPS || search.stopped() {
            break;
        }
    }
    let stopped = search.stopped();
    let width = search
        .distances
        .iter()
        .map(Distance::width)
        .max()
        .unwrap_or(1);
    Multipath {
        confidence: plan.confidence,
        flows: u64::from(search.next_flow),
        probes: search.probes,
        width: width as u64,
        nodes: without_silent_end(nodes),
        complete: search.complete && !stopped,
    }
}

impl Distance {
    fn width(&self) -> usize {
        (self.routers.len() + usize::from(self.arrived)).max(1)
    }
}

/// The nodes up to the last distance at which a node answers.
fn without_silent_end(mut nodes: Vec<MultipathNode>) -> Vec<MultipathNode> {
    let last = nodes
        .iter()
        .filter(|node| node.ttl == 0 || node.address.is_some())
        .map(|node| node.ttl)
        .max()
        .unwrap_or(0);
    nodes.retain(|node| node.ttl <= last);
    nodes
}

impl<N: HopNetwork> Search<'_, N> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Who stands at a distance and passes packets on.
    fn nodes_at(&self, ttl: u8) -> BTreeSet<Node> {
        if ttl == 0 {
            return BTreeSet::from([None]);
        }
        let Some(distance) = self.distances.get(usize::from(ttl)) else {
            return BTreeSet::new();
        };
        let mut nodes: BTreeSet<Node> = distance.routers.iter().copied().map(Some).collect();
        if nodes.is_empty() && !distance.arrived {
            nodes.insert(None);
        }
        nodes
    }

    /// The same with the target.
    fn everybody_at(&self, ttl: u8) -> BTreeSet<Node> {
        let mut nodes = self.nodes_at(ttl);
        let arrived = self
            .distances
            .get(usize::from(ttl))
            .is_some_and(|d| d.arrived);
        if arrived {
            nodes.insert(Some(self.plan.target));
        }
        nodes
    }

    /// Flows that went to a node, of those that were sent to its distance.
    fn flows_to(&self, ttl: u8, node: Option<Node>) -> Vec<u16> {
        match (self.distances.get(usize::from(ttl)), node) {
            (Some(distance), Some(node)) if ttl > 0 => distance
                .by_flow
                .iter()
                .filter(|(_, answered)| **answered == node)
                .map(|(flow, _)| *flow)
                .collect(),
            _ => (0..self.next_flow).collect(),
        }
    }

    /// Who was seen behind a node.
    fn next_of(&self, ttl: u8, node: Node) -> BTreeSet<Node> {
        let Some(beyond) = self.distances.get(usize::from(ttl) + 1) else {
            return BTreeSet::new();
        };
        let flows = self.flows_to(ttl, Some(node));
        let seen: BTreeSet<Node> = flows
            .iter()
            .filter_map(|flow| beyond.by_flow.get(flow).copied())
            .collect();
        let answering: BTreeSet<Node> = seen.iter().copied().filter(Option::is_some).collect();
        // One that does not answer where others do is one that was too busy.
        if answering.is_empty() {
            seen
        } else {
            answering
        }
    }

    /// Sends flows on from a node, or from a distance, until all its next hops are known.
    fn explore(&mut self, ttl: u8, node: Option<Node>) {
        loop {
            let known = match node {
                Some(node) => self.next_of(ttl, node).len(),
                None => self.everybody_at(ttl + 1).len(),
            };
            let wanted = enough(known, self.plan.confidence);
            let flows = self.flows_to(ttl, node);
            let beyond = self.distances.get(usize::from(ttl) + 1);
            let is_tried = |flow: &&u16| beyond.is_some_and(|b| b.by_flow.contains_key(*flow));
            let tried = flows.iter().filter(is_tried).count();
            if tried >= wanted || self.stopped() {
                return;
            }
            let fresh: Vec<u16> = flows
                .iter()
                .filter(|flow| !is_tried(flow))
                .take((wanted - tried).min(BATCH))
                .copied()
                .collect();
            if !fresh.is_empty() {
                self.send(ttl + 1, &fresh);
            } else if !self.find_flows(ttl, wanted - tried) {
                self.complete = false;
                return;
            }
        }
    }

    /// New flows, sent to a distance to see where they go; `false` when there are no more.
    fn find_flows(&mut self, ttl: u8, at_least: usize) -> bool {
        let left = usize::from((FLOWS - 1).saturating_sub(self.next_flow));
        let count = at_least.clamp(1, BATCH).min(left) as u16;
        let flows: Vec<u16> = (self.next_flow..self.next_flow + count).collect();
        self.next_flow += count;
        if ttl > 0 {
            self.send(ttl, &flows);
        }
        count > 0
    }

    /// Whether a flow that goes to a node reaches several next hops behind it.
    fn goes_several_ways(&mut self, ttl: u8, node: Node) -> bool {
        let Some(flow) = self.flows_to(ttl, Some(node)).first().copied() else {
            return false;
        };
        let mut seen = BTreeSet::new();
        for (_, from) in self.round(ttl + 1, &[flow; REPEATS]) {
            seen.insert(from);
        }
        if let Some(here) = self.distances.get_mut(usize::from(ttl) + 1) {
            here.routers
                .extend(seen.iter().filter(|from| **from != self.plan.target));
        }
        seen.len() > 1
    }

    /// Sends flows to a distance and notes which addresses answered; flows without an answer are sent again.
    fn send(&mut self, ttl: u8, flows: &[u16]) {
        let mut open: Vec<u16> = flows.to_vec();
        for attempt in 0..TRIES {
            if attempt > 0 {
                let silent = self.distances.get(usize::from(ttl));
                // Where no node ever answers, sending again is in vain.
                let in_vain = silent.is_some_and(|d| d.routers.is_empty() && !d.arrived);
                if open.is_empty() || self.stopped() || (in_vain && attempt > 1) {
                    break;
                }
                let until = self.network.now_ns().saturating_add(BACK_OFF_NS);
                while self.network.now_ns() < until {
                    if self.network.receive(until).is_err() {
                        break;
                    }
                }
            }
            for (flow, from) in self.round(ttl, &open) {
                let target = self.plan.target;
                if let Some(here) = self.distances.get_mut(usize::from(ttl)) {
                    here.by_flow.insert(flow, Some(from));
                    if from == target {
                        here.arrived = true;
                    } else {
                        here.routers.insert(from);
                    }
                }
            }
            if let Some(here) = self.distances.get(usize::from(ttl)) {
                open.retain(|flow| !here.by_flow.contains_key(flow));
            }
        }
        if let Some(here) = self.distances.get_mut(usize::from(ttl)) {
            for flow in open {
                here.by_flow.insert(flow, None);
            }
        }
    }

    /// One probe to a distance for each flow, and who answered.
    fn round(&mut self, ttl: u8, flows: &[u16]) -> Vec<(u16, IpAddr)> {
        let mut waiting: BTreeSet<ProbeId> = BTreeSet::new();
        for flow in flows {
            let probe = Probe {
                flow: *flow,
                ..Probe::to(ttl)
            };
            // What our own machine does not send is not answered, and is sent again.
            if let Ok(id) = self.network.send(&probe) {
                waiting.insert(id);
            }
            self.probes += 1;
        }
        let mut answers = Vec::new();
        // The slowest answer decides how long the others are waited for.
        let timeout = u64::try_from(self.plan.timeout.as_nanos()).unwrap_or(u64::MAX);
        let began = self.network.now_ns();
        let mut until = began.saturating_add(timeout);
        while !waiting.is_empty() && self.network.now_ns() < until {
            let Ok(answered) = self.network.receive(until) else {
                break;
            };
            let Some(answered) = answered.filter(|a| waiting.remove(&a.id)) else {
                continue;
            };
            let arrival = answered.answer.is_arrival(self.plan.target);
            let from = if arrival {
                self.plan.target
            } else {
                answered.answer.from
            };
            answers.push((answered.probe.flow, from));
            let patience = (answered.rtt.as_nanos() as u64)
                .saturating_mul(3)
                .max(200_000_000);
            until = until.min(began.saturating_add(timeout.min(patience)));
        }
        answers
    }
}

#[cfg(test)]
mod tests;

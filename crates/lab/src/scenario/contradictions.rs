//! Contradictions between settings that are each valid: names that are given twice or to nothing, cells that do not go
//! together, truths about what is not there. The plan ([`layout`]) has the last word: it finds what routes and
//! multicast make impossible.

use plumb_link::spec::CellSpec;

use super::{CellPath, LinkEnd, LinkSpec, SHAPER, Scenario};
use crate::layout;
use crate::nearest::known;
use crate::problem::{Problem, each};
use crate::vary::vary;
use plumb_model::direction::OneDirection;

/// The most nodes, and the most links and lans: every node has a route to every link, and the third byte of 10.0.0.0/16
/// numbers so many links.
const MAX_PARTS: usize = 256;

/// The most nodes on a lan: the last byte of an IPv4 address, less the network and the broadcast.
const MAX_ON_LAN: usize = 254;

/// Longest name of a node or link: a link's name is its interfaces' name (IFNAMSIZ less the
/// terminating zero, `linux/if.h`).
const MAX_NAME_BYTES: usize = 15;

/// Names that mean something else to the kernel, to ip-route(8) or to a resolver.
const TAKEN: [&str; 4] = ["all", "default", "lo", "localhost"];

/// The least MTU with which a device has IPv4 (`net/ipv4/devinet.c`) and IPv6 (RFC 8200 section 5),
/// and the most of a TUN or veth device (`drivers/net/tun.c`, ETH_MAX_MTU).
const LEAST_MTU_V4: u32 = 68;
const LEAST_MTU_V6: u32 = 1280;
const MOST_MTU: u32 = 65_535;

/// Whether a scenario makes a network.
///
/// # Errors
/// The first contradiction, and what is allowed.
pub(super) fn check(scenario: &Scenario) -> Result<(), Problem> {
    let parts = Parts::of(scenario)?;
    parts.check_links()?;
    parts.check_lans()?;
    parts.check_further_names()?;
    parts.check_sysctl()?;
    parts.check_programs()?;
    // Every range allows everything between its ends or nothing: one draw shows which.
    vary(scenario, scenario.seed)?;
    if let Some(shaper) = &scenario.router_shaper {
        for (way, end) in [("up", &shaper.up), ("down", &shaper.down)] {
            let found = parts.emulated("router_shaper", end);
            found.map_err(|problem| Problem::from(problem).at(way).at("router_shaper"))?;
        }
    }
    parts.check_truth()?;
    parts.check_joined()?;
    layout::plan(scenario).map(drop)
}

/// What makes a network, but one that is hardly meant.
pub(crate) fn doubts(scenario: &Scenario) -> Vec<String> {
    let mut doubts = Vec::new();
    for (link, way) in scenario
        .links
        .iter()
        .flat_map(|link| [(link, OneDirection::Up), (link, OneDirection::Down)])
    {
        for named in &link.chain(way).0 {
            if let CellSpec::Mtu(mtu) = &named.cell
                && scenario.ipv6
                && u32::from(mtu.bytes) < LEAST_MTU_V6
            {
                doubts.push(format!(
                    "{}.{} takes no more than {} bytes, less than the {LEAST_MTU_V6} that IPv6 needs (ipv6 = false has none)",
                    link.name,
                    way.name(),
                    mtu.bytes
                ));
            }
        }
    }
    doubts
}

/// A scenario, and what its parts are called.
struct Parts<'a> {
    scenario: &'a Scenario,
    nodes: Vec<&'a str>,
    links: Vec<&'a str>,
    segments: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(scenario: &'a Scenario) -> Result<Self, Problem> {
        let nodes: Vec<&str> = scenario.nodes.iter().map(|n| n.name.as_str()).collect();
        let links: Vec<&str> = scenario.links.iter().map(|l| l.name.as_str()).collect();
        let lans = scenario.lans.iter().map(|l| l.name.as_str());
        let segments: Vec<&str> = links.iter().copied().chain(lans).collect();
        if nodes.is_empty() {
            return Err("it has no [[node]]".into());
        }
        if segments.len().max(nodes.len()) > MAX_PARTS {
            return Err(format!(
                "it has {} nodes and {} links and lans: at most {MAX_PARTS} of each",
                nodes.len(),
                segments.len()
            )
            .into());
        }
        for (kind, list) in [("node", &nodes), ("link", &segments)] {
            for (i, name) in list.iter().enumerate() {
                let earlier = list.get(..i).unwrap_or_default();
                let named = check_name(kind, name, earlier);
                // The names of lans come after the names of links.
                let (key, number) = match i.checked_sub(links.len()) {
                    Some(of_lan) if kind == "link" => ("lan", of_lan),
                    _ => (kind, i),
                };
                named
                    .map_err(|problem| Problem::from(problem).at("name").in_element(key, number))?;
            }
        }
        Ok(Self {
            scenario,
            nodes,
            links,
            segments,
        })
    }

    fn check_links(&self) -> Result<(), Problem> {
        each("link", &self.scenario.links, |link| {
            let LinkSpec {
                name,
                between: ends @ [first, second],
                emulated: _,
                mtu,
                up,
                down,
            } = link;
            let who = format!("link '{name}'");
            each("between", ends, |end| Ok(self.node(end, &who)?))?;
            if first == second {
                return Err(format!("{who} joins '{first}' to itself").into());
            }
            self.check_mtu(*mtu, &who)?;
            plumb_link::chain::build_link(up, down, [0, 1]).map_err(|e| format!("{who}: {e}"))?;
            Ok(())
        })
    }

    /// What the devices at the ends take, and what IPv6 needs.
    fn check_mtu(&self, mtu: Option<u32>, who: &str) -> Result<(), Problem> {
        let (least, needs) = match self.scenario.ipv6 {
            true => (LEAST_MTU_V6, "IPv6, or write ipv6 = false"),
            false => (LEAST_MTU_V4, "IPv4"),
        };
        let problem = match mtu {
            Some(mtu) if mtu < least => {
                format!("{who} has an mtu of {mtu} bytes, and {least} is the least for {needs}")
            }
            Some(mtu) if mtu > MOST_MTU => format!(
                "{who} has an mtu of {mtu} bytes, and {MOST_MTU} is the most that its devices take"
            ),
            _ => return Ok(()),
        };
        Err(Problem::from(problem).at("mtu"))
    }

    fn check_lans(&self) -> Result<(), Problem> {
        each("lan", &self.scenario.lans, |lan| {
            let who = format!("lan '{}'", lan.name);
            self.check_mtu(lan.mtu, &who)?;
            if !(2..=MAX_ON_LAN).contains(&lan.nodes.len()) {
                return Err(format!(
                    "{who} joins {} nodes: it takes 2 to {MAX_ON_LAN}",
                    lan.nodes.len()
                )
                .into());
            }
            let mut seen = Vec::new();
            each("nodes", &lan.nodes, |node| {
                self.node(node, &who)?;
                if seen.contains(node) {
                    return Err(format!("{who} names '{node}' twice").into());
                }
                seen.push(node.clone());
                Ok(())
            })
        })
    }

    /// A node by itself can measure nothing, unless it is the only one.
    fn check_joined(&self) -> Result<(), Problem> {
        let Scenario { links, lans, .. } = self.scenario;
        let on_links = links.iter().flat_map(|link| &link.between);
        let on_lans = lans.iter().flat_map(|lan| &lan.nodes);
        let joined: Vec<&str> = on_links.chain(on_lans).map(String::as_str).collect();
        each("node", &self.nodes, |node| match joined.contains(node) {
            false if self.nodes.len() > 1 => {
                Err(format!("no [[link]] and no [[lan]] joins the node '{node}' to another").into())
            }
            _ => Ok(()),
        })
    }

    fn check_further_names(&self) -> Result<(), Problem> {
        let mut seen: Vec<&str> = Vec::new();
        for (i, node) in self.scenario.nodes.iter().enumerate() {
            for (j, name) in node.names.iter().enumerate() {
                let checked = self.check_further_name(name, &node.name, &seen);
                checked.map_err(|problem| {
                    Problem::from(problem)
                        .in_element("names", j)
                        .in_element("node", i)
                })?;
                seen.push(name);
            }
        }
        Ok(())
    }

    fn check_further_name(&self, name: &str, node: &str, seen: &[&str]) -> Result<(), String> {
        if !is_host_name(name) || is_number(name) {
            return Err(format!(
                "node '{node}' cannot have the name '{name}': write labels of a-z, 0-9 and - joined by dots, such as www.example"
            ));
        }
        let of_end = name
            .split_once('.')
            .is_some_and(|(n, s)| self.nodes.contains(&n) && self.segments.contains(&s));
        if name == "localhost" || of_end || self.nodes.contains(&name) || seen.contains(&name) {
            return Err(format!("the name '{name}' is given twice"));
        }
        Ok(())
    }

    /// Whether a kernel variable is a node's own; its name and value the kernel judges.
    fn check_sysctl(&self) -> Result<(), Problem> {
        each("node", &self.scenario.nodes, |node| {
            match node.sysctl.keys().find(|key| !key.starts_with("net.")) {
                Some(key) => Err(Problem::from(format!(
                    "node '{}': {key} belongs to the whole machine, not to a node; only net.* can be set",
                    node.name
                ))
                .at(key)
                .at("sysctl")),
                None => Ok(()),
            }
        })
    }

    fn check_programs(&self) -> Result<(), Problem> {
        each("service", &self.scenario.services, |service| {
            if service.port == 0 {
                let problem = "a service must listen on a port from 1 to 65535";
                return Err(Problem::from(problem).at("port"));
            }
            self.check_program("service", &service.node, &service.run)
        })?;
        each("traffic", &self.scenario.traffic, |traffic| {
            self.check_program("traffic", &traffic.node, &traffic.run)
        })
    }

    fn check_program(&self, what: &str, node: &str, run: &[String]) -> Result<(), Problem> {
        let known = self.node(node, &format!("[[{what}]]"));
        known.map_err(|problem| Problem::from(problem).at("node"))?;
        if run.is_empty() {
            let problem = format!("the {what} on '{node}' has nothing to run");
            return Err(Problem::from(problem).at("run"));
        }
        Ok(())
    }

    /// Only of emulated links is anything recorded.
    fn check_truth(&self) -> Result<(), Problem> {
        let truth = &self.scenario.truth;
        let of_truth = |problem: Problem| problem.at("truth");
        each("value", &truth.values, |value| {
            let who = format!("truth.value '{}'", value.what);
            if let Some(end) = &value.payload_rate {
                let found = self.emulated(&who, end);
                found.map_err(|problem| Problem::from(problem).at("payload_rate"))?;
            }
            if let Some(queue) = &value.queue_delay {
                let found = self.cell(&who, &queue.cell);
                found.map_err(|problem| Problem::from(problem).at("cell").at("queue_delay"))?;
            }
            Ok(())
        })
        .map_err(of_truth)?;
        each("link", &truth.links, |recorded| {
            let who = format!("truth.link '{}'", recorded.what);
            let found = self.emulated(&who, &recorded.link);
            found.map_err(|problem| Problem::from(problem).at("link"))?;
            let field = ("field", &recorded.field);
            let per = recorded.per.iter().map(|pointer| ("per", pointer));
            for (key, pointer) in std::iter::once(field).chain(per) {
                let of_cell = pointer.strip_prefix("/cells/");
                if let Some(cell) = of_cell.and_then(|path| path.split('/').next()) {
                    let end = recorded.link.clone();
                    let cell = cell.to_owned();
                    let found = self.cell(&who, &CellPath { end, cell });
                    found.map_err(|problem| Problem::from(problem).at(key))?;
                }
            }
            Ok(())
        })
        .map_err(of_truth)
    }

    fn node(&self, name: &str, who: &str) -> Result<(), String> {
        if self.nodes.contains(&name) {
            return Ok(());
        }
        let known = known(name, &self.nodes, "nodes");
        Err(format!("{who} names the node '{name}': {known}"))
    }

    /// The link of this direction, which must be emulated.
    fn emulated(&self, who: &str, end: &LinkEnd) -> Result<&'a LinkSpec, String> {
        let name = &end.link;
        let link = self.scenario.links.iter().find(|l| l.name == *name);
        match link {
            None => {
                let known = known(name, &self.links, "links");
                Err(format!("{who} names the link '{name}': {known}"))
            }
            Some(link) if !link.is_emulated() => Err(format!(
                "{who} names the link '{name}', which needs emulated = true"
            )),
            Some(link) => Ok(link),
        }
    }

    fn cell(&self, who: &str, path: &CellPath) -> Result<(), String> {
        let link = self.emulated(who, &path.end)?;
        let chain = link.chain(path.end.way);
        let cells: Vec<&str> = chain.0.iter().map(|c| c.name.as_str()).collect();
        // A shaper may be added while the laboratory runs.
        if cells.contains(&path.cell.as_str()) || path.cell == SHAPER {
            return Ok(());
        }
        Err(format!(
            "{who} names the cell '{}' of {}: {}",
            path.cell,
            path.end,
            known(&path.cell, &cells, "cells")
        ))
    }
}

fn check_name(kind: &str, name: &str, earlier: &[&str]) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!(
            "'{name}' cannot name a {kind}: use 1 to {MAX_NAME_BYTES} of a-z, 0-9 and -, no number, and none of {}",
            TAKEN.join(", ")
        ));
    }
    if earlier.contains(&name) {
        return Err(format!("there are two {kind}s named '{name}'"));
    }
    Ok(())
}

/// A host name (RFC 1123 section 2.1), in lower case.
fn is_host_name(name: &str) -> bool {
    /// RFC 1035 section 2.3.4.
    const MAX_BYTES: usize = 253;
    const MAX_LABEL_BYTES: usize = 63;
    name.len() <= MAX_BYTES
        && name.split('.').all(|label| {
            (1..=MAX_LABEL_BYTES).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        })
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !TAKEN.contains(&name)
        && !is_number(name)
}

/// Whether a name is never looked up, because it is an address itself (inet_aton(3)): its last part is a number.
fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let of = |digits: &str, radix| digits.chars().all(|c: char| c.is_digit(radix));
    of(last, 10) || last.strip_prefix("0x").is_some_and(|hex| of(hex, 16))
}

//! What single settings cannot tell: names that are given twice or to nothing, cells that do not go
//! together, truths about what is not there. The plan ([`layout`]) has the last word: it finds what routes and
//! multicast make impossible.

use plumb_link::spec::CellSpec;

use super::{CellPath, LinkEnd, LinkSpec, SHAPER, Scenario};
use crate::layout;
use crate::nearest::known;
use crate::vary::vary;
use plumb_model::direction::OneDirection;

/// The most nodes, and the most links and lans: every node has a route to every link, and so many
/// links the third byte of 10.0.0.0/16 tells apart.
const MAX_PARTS: usize = 256;

/// The most nodes on a lan: the last byte of an IPv4 address, less the network and the broadcast.
const MAX_ON_LAN: usize = 254;

/// Longest name of a node or link: a link's name is its interfaces' name (IFNAMSIZ less the
/// terminating zero, `linux/if.h`).
const MAX_NAME_BYTES: usize = 15;

/// Names that mean something else to the kernel, to ip-route(8) or to whoever looks them up.
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
pub(super) fn check(scenario: &Scenario) -> Result<(), String> {
    let parts = Parts::of(scenario)?;
    parts.check_links()?;
    parts.check_lans()?;
    parts.check_further_names()?;
    parts.check_sysctl()?;
    parts.check_programs()?;
    // Every range allows everything between its ends or nothing: one draw shows which.
    vary(scenario, scenario.seed)?;
    for shaper in scenario.router_shaper.iter().flat_map(|s| [&s.up, &s.down]) {
        parts.emulated("router_shaper", shaper)?;
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
    fn of(scenario: &'a Scenario) -> Result<Self, String> {
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
            ));
        }
        for (kind, list) in [("node", &nodes), ("link", &segments)] {
            for (i, name) in list.iter().enumerate() {
                if !is_name(name) {
                    return Err(format!(
                        "'{name}' cannot name a {kind}: use 1 to {MAX_NAME_BYTES} of a-z, 0-9 and -, no number, and none of {}",
                        TAKEN.join(", ")
                    ));
                }
                if list.iter().take(i).any(|earlier| earlier == name) {
                    return Err(format!("there are two {kind}s named '{name}'"));
                }
            }
        }
        Ok(Self {
            scenario,
            nodes,
            links,
            segments,
        })
    }

    fn check_links(&self) -> Result<(), String> {
        for LinkSpec {
            name,
            between: [first, second],
            emulated: _,
            mtu,
            up,
            down,
        } in &self.scenario.links
        {
            for end in [first, second] {
                self.node(end, &format!("link '{name}'"))?;
            }
            if first == second {
                return Err(format!("link '{name}' joins '{first}' to itself"));
            }
            self.check_mtu(*mtu, &format!("link '{name}'"))?;
            plumb_link::chain::build_link(up, down, [0, 1])
                .map_err(|e| format!("link '{name}': {e}"))?;
        }
        Ok(())
    }

    /// What the devices at the ends take, and what IPv6 needs.
    fn check_mtu(&self, mtu: Option<u32>, who: &str) -> Result<(), String> {
        let (least, needs) = match self.scenario.ipv6 {
            true => (LEAST_MTU_V6, "IPv6, or write ipv6 = false"),
            false => (LEAST_MTU_V4, "IPv4"),
        };
        match mtu {
            Some(mtu) if mtu < least => Err(format!(
                "{who} has an mtu of {mtu} bytes, and {least} is the least for {needs}"
            )),
            Some(mtu) if mtu > MOST_MTU => Err(format!(
                "{who} has an mtu of {mtu} bytes, and {MOST_MTU} is the most that its devices take"
            )),
            _ => Ok(()),
        }
    }

    fn check_lans(&self) -> Result<(), String> {
        for lan in &self.scenario.lans {
            self.check_mtu(lan.mtu, &format!("lan '{}'", lan.name))?;
            if !(2..=MAX_ON_LAN).contains(&lan.nodes.len()) {
                return Err(format!(
                    "lan '{}' joins {} nodes: it takes 2 to {MAX_ON_LAN}",
                    lan.name,
                    lan.nodes.len()
                ));
            }
            for (i, node) in lan.nodes.iter().enumerate() {
                self.node(node, &format!("lan '{}'", lan.name))?;
                if lan.nodes.iter().take(i).any(|earlier| earlier == node) {
                    return Err(format!("lan '{}' names '{node}' twice", lan.name));
                }
            }
        }
        Ok(())
    }

    /// A node by itself can measure nothing, unless it is the only one.
    fn check_joined(&self) -> Result<(), String> {
        let Scenario { links, lans, .. } = self.scenario;
        let on_links = links.iter().flat_map(|link| &link.between);
        let on_lans = lans.iter().flat_map(|lan| &lan.nodes);
        let joined: Vec<&str> = on_links.chain(on_lans).map(String::as_str).collect();
        match self.nodes.iter().find(|node| !joined.contains(node)) {
            Some(alone) if self.nodes.len() > 1 => Err(format!(
                "no [[link]] and no [[lan]] joins the node '{alone}' to another"
            )),
            _ => Ok(()),
        }
    }

    fn check_further_names(&self) -> Result<(), String> {
        let mut seen: Vec<&str> = Vec::new();
        for node in &self.scenario.nodes {
            for name in &node.names {
                if !is_host_name(name) || is_number(name) {
                    return Err(format!(
                        "node '{}' cannot have the name '{name}': write labels of a-z, 0-9 and - joined by dots, such as www.example",
                        node.name
                    ));
                }
                let of_end = name
                    .split_once('.')
                    .is_some_and(|(n, s)| self.nodes.contains(&n) && self.segments.contains(&s));
                if name == "localhost"
                    || of_end
                    || self.nodes.contains(&name.as_str())
                    || seen.contains(&name.as_str())
                {
                    return Err(format!("the name '{name}' is given twice"));
                }
                seen.push(name);
            }
        }
        Ok(())
    }

    /// Whether a kernel variable is a node's own; its name and value the kernel judges.
    fn check_sysctl(&self) -> Result<(), String> {
        for node in &self.scenario.nodes {
            if let Some(key) = node.sysctl.keys().find(|key| !key.starts_with("net.")) {
                return Err(format!(
                    "node '{}': {key} belongs to the whole machine, not to a node; only net.* can be set",
                    node.name
                ));
            }
        }
        Ok(())
    }

    fn check_programs(&self) -> Result<(), String> {
        let Scenario {
            services, traffic, ..
        } = self.scenario;
        if services.iter().any(|service| service.port == 0) {
            return Err("a service must listen on a port from 1 to 65535".into());
        }
        let services = services.iter().map(|s| ("service", &s.node, &s.run));
        let traffic = traffic.iter().map(|t| ("traffic", &t.node, &t.run));
        for (what, node, run) in services.chain(traffic) {
            self.node(node, &format!("[[{what}]]"))?;
            if run.is_empty() {
                return Err(format!("the {what} on '{node}' has nothing to run"));
            }
        }
        Ok(())
    }

    /// Only of emulated links is anything recorded.
    fn check_truth(&self) -> Result<(), String> {
        let truth = &self.scenario.truth;
        for value in &truth.values {
            let who = format!("truth.value '{}'", value.what);
            if let Some(end) = &value.payload_rate {
                self.emulated(&who, end)?;
            }
            if let Some(queue) = &value.queue_delay {
                self.cell(&who, &queue.cell)?;
            }
        }
        for recorded in &truth.links {
            let who = format!("truth.link '{}'", recorded.what);
            self.emulated(&who, &recorded.link)?;
            for pointer in std::iter::once(&recorded.field).chain(&recorded.per) {
                let of_cell = pointer.strip_prefix("/cells/");
                if let Some(cell) = of_cell.and_then(|path| path.split('/').next()) {
                    self.cell(
                        &who,
                        &CellPath {
                            end: recorded.link.clone(),
                            cell: cell.to_owned(),
                        },
                    )?;
                }
            }
        }
        Ok(())
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

/// Whether a name is looked up by nobody, because it is an address itself (inet_aton(3)): its last part is
/// a number.
fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let of = |digits: &str, radix| digits.chars().all(|c: char| c.is_digit(radix));
    of(last, 10) || last.strip_prefix("0x").is_some_and(|hex| of(hex, 16))
}

//! Scenarios: networks written down in TOML, with what must be found in them.
//!
//! Here is what can be written; `load` reads it, and `contradictions` says what makes no network.

pub(crate) mod contradictions;
mod elements;
mod load;
mod names;
mod ranges;
#[cfg(test)]
mod tests;
mod truth;

use std::collections::BTreeMap;

use plumb_link::spec::ChainSpec;
use plumb_model::direction::OneDirection;
use serde::Deserialize;

pub use self::load::ScenarioError;
pub use self::names::{CellPath, LinkEnd, SHAPER};
pub use self::ranges::{Range, Ranges};
pub use self::truth::{Expected, QueueDelay, Recorded, Truth};
use crate::topology::{LanSpec, MulticastSpec, RouteSpec};

/// A network, its faults and the truth about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// One line for `plumb lab list`.
    pub summary: String,
    /// Which scenarios it stands with in that list; a file of a user needs none.
    #[serde(default)]
    pub group: String,
    /// What it is, in a few sentences.
    #[serde(default)]
    pub about: String,
    /// Where its numbers come from: a document, a standard, a preset.
    #[serde(default)]
    pub source: String,
    /// Seed of its random cells.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Whether it has IPv6 beside IPv4.
    #[serde(default = "yes")]
    pub ipv6: bool,
    /// The machines; commands run in the first unless another is named.
    #[serde(rename = "node")]
    pub nodes: Vec<NodeSpec>,
    #[serde(rename = "link", default)]
    pub links: Vec<LinkSpec>,
    /// What joins several of them.
    #[serde(rename = "lan", default)]
    pub lans: Vec<LanSpec>,
    /// Routes that are not the shortest.
    #[serde(rename = "route", default)]
    pub routes: Vec<RouteSpec>,
    /// Groups that routers pass on.
    #[serde(rename = "multicast", default)]
    pub multicasts: Vec<MulticastSpec>,
    /// Programs that run in the network from its start.
    #[serde(rename = "service", default)]
    pub services: Vec<ServiceSpec>,
    /// Programs that start when the services are ready, and go on as long as the laboratory.
    #[serde(rename = "traffic", default)]
    pub traffic: Vec<TrafficSpec>,
    /// Where a shaper goes that a finding asks of the router.
    pub router_shaper: Option<RouterShaper>,
    /// Free parameters, for `--vary`.
    #[serde(default)]
    pub vary: Ranges,
    /// What was drawn of them: settings, and their values as they would be written.
    #[serde(skip)]
    pub drawn: BTreeMap<String, String>,
    /// What must be found.
    #[serde(default)]
    pub truth: Truth,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name, to which its address resolves in the whole network.
    pub name: String,
    /// Whether it forwards packets. A node between others must say.
    pub forward: Option<bool>,
    /// Whether it answers nothing by ICMP: no echo, no error, so that a hop does not show.
    #[serde(default)]
    pub silent: bool,
    /// More names that resolve to its address.
    #[serde(default)]
    pub names: Vec<String>,
    /// Kernel variables that differ from the baseline of every node.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
}

/// Two machines joined. Without cells, and not `emulated`, it is a plain virtual cable.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Its name, which is also the name of the interface at each end.
    pub name: String,
    /// The machines: `up` goes from the first to the second.
    pub between: [String; 2],
    /// Carried by plumb even without cells, so that it is counted, and a shaper can be added while
    /// it runs.
    #[serde(default)]
    pub emulated: bool,
    /// The largest packet in bytes that the interface at each end takes; 1500 when absent.
    pub mtu: Option<u32>,
    /// Cells from the first to the second.
    #[serde(default)]
    pub up: ChainSpec,
    /// Cells from the second to the first.
    #[serde(default)]
    pub down: ChainSpec,
}

impl LinkSpec {
    /// Whether plumb carries the packets.
    pub fn is_emulated(&self) -> bool {
        self.emulated || !self.up.0.is_empty() || !self.down.0.is_empty()
    }

    /// The cells of a direction.
    pub fn chain(&self, way: OneDirection) -> &ChainSpec {
        match way {
            OneDirection::Up => &self.up,
            OneDirection::Down => &self.down,
        }
    }

    /// The cells of a direction, to be changed.
    pub(crate) fn chain_mut(&mut self, way: OneDirection) -> &mut ChainSpec {
        match way {
            OneDirection::Up => &mut self.up,
            OneDirection::Down => &mut self.down,
        }
    }
}

/// A program of the network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    pub node: String,
    /// Program and arguments; `plumb` is the plumb that runs the laboratory.
    pub run: Vec<String>,
    /// TCP port that it listens on when it is ready.
    pub port: u16,
}

/// A program that runs in the network beside what is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    pub node: String,
    /// Program and arguments; `plumb` is the plumb that runs the laboratory.
    pub run: Vec<String>,
    /// Whether it may end before the laboratory does: otherwise it is started again.
    #[serde(default)]
    pub once: bool,
}

/// The link directions in which the scenario's router would shape.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterShaper {
    pub up: LinkEnd,
    pub down: LinkEnd,
}

impl RouterShaper {
    /// Where it would shape this direction of the line.
    pub fn end(&self, direction: OneDirection) -> &LinkEnd {
        match direction {
            OneDirection::Up => &self.up,
            OneDirection::Down => &self.down,
        }
    }
}

fn default_seed() -> u64 {
    1
}

fn yes() -> bool {
    true
}

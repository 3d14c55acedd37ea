//! Scenarios: networks written down in TOML, with what must be found in them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use plumb_link::spec::ChainSpec;
use serde::Deserialize;

use crate::layout::Plan;
use crate::nearest::known;
use crate::topology::{LanSpec, MulticastSpec, RouteSpec};
use crate::truth::Truth;
use crate::vary::{Ranges, vary};

/// The scenarios that come with plumb: name and text. The build script lists the files.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The most nodes, and the most links and lans: every node has a route to every link, and so many
/// links the third byte of 10.0.0.0/16 tells apart.
const MAX_PARTS: usize = 256;

/// The most nodes on a lan: the last byte of an IPv4 address, less the network and the broadcast.
const MAX_ON_LAN: usize = 254;

/// The files that scenarios which come with plumb name.
const BUILT_IN_FILES: [(&str, &str); 1] = [(
    "traces/lte-like.trace",
    include_str!("../../../scenarios/traces/lte-like.trace"),
)];

/// Longest name of a node or link: a link's name is its interfaces' name (IFNAMSIZ less the
/// terminating zero, `linux/if.h`).
const MAX_NAME_BYTES: usize = 15;

/// A network, its faults and the truth about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// One line for `plumb lab list`.
    pub summary: String,
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
    /// The machines; commands run in the first unless told otherwise.
    #[serde(rename = "node")]
    pub nodes: Vec<NodeSpec>,
    /// What joins them.
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
    /// Programs that start when the services are ready, and may end.
    #[serde(rename = "traffic", default)]
    pub traffic: Vec<TrafficSpec>,
    /// Where a shaper goes that a finding asks of the router.
    #[serde(default)]
    pub router_shaper: Option<RouterShaper>,
    /// Free parameters, for `--vary`.
    #[serde(default)]
    pub vary: Ranges,
    /// What must be found.
    #[serde(default)]
    pub truth: Truth,
}

/// A machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name, to which its address resolves in the whole network.
    pub name: String,
    /// Whether it forwards packets. A node between others must say.
    #[serde(default)]
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
    /// Carried by plumb even without cells, so that cells can be added while it runs.
    #[serde(default)]
    pub emulated: bool,
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
}

/// A program of the network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// Where it runs.
    pub node: String,
    /// Program and arguments; `plumb` is the plumb that runs the laboratory.
    pub run: Vec<String>,
    /// TCP port that it listens on when it is ready.
    pub port: u16,
}

/// Something that goes on in the network beside what is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Where it runs.
    pub node: String,
    /// Program and arguments; `plumb` is the plumb that runs the laboratory.
    pub run: Vec<String>,
}

/// The link directions in which the scenario's router would shape.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterShaper {
    /// Towards the provider.
    pub up: LinkEnd,
    /// From the provider.
    pub down: LinkEnd,
}

/// A direction of a link, written `LINK.up` or `LINK.down`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct LinkEnd {
    /// The link.
    pub link: String,
    /// Which way.
    pub way: Way,
}

/// The two directions of a link.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the first end to the second.
    Up,
    /// From the second end to the first.
    Down,
}

impl Way {
    /// The word in scenarios and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl TryFrom<String> for LinkEnd {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = || format!("'{text}' is not a direction of a link: write LINK.up or LINK.down");
        let (link, way) = text.split_once('.').ok_or_else(wrong)?;
        let way = match way {
            "up" => Way::Up,
            "down" => Way::Down,
            _ => return Err(wrong()),
        };
        Ok(Self {
            link: link.to_owned(),
            way,
        })
    }
}

/// A scenario that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Neither built in nor a file.
    #[error("there is no scenario '{name}': {known}; or write the path of a .toml file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no scenario; the message carries line and column.
    #[error("{origin}: {source}")]
    Syntax {
        /// File or built-in name.
        origin: String,
        /// Why.
        source: Box<toml::de::Error>,
    },
    /// The text is a scenario that makes no network.
    #[error("{origin}: {problem}")]
    Meaning {
        /// File or built-in name.
        origin: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
}

/// The most that is read of a file that a cell names: 160 bytes for each of the 100,000 samples
/// that a delay takes.
const MAX_FILE_BYTES: u64 = 16_000_000;

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(MAX_FILE_BYTES).read_to_string(&mut text)? as u64 == MAX_FILE_BYTES {
        return Err(std::io::Error::other("it has 16 MB or more"));
    }
    Ok(text)
}

fn default_seed() -> u64 {
    1
}

fn yes() -> bool {
    true
}

impl Scenario {
    /// All the scenarios that come with plumb.
    ///
    /// # Errors
    /// None, unless plumb was built with a broken one, which its tests would have shown.
    pub fn built_in() -> Result<Vec<Self>, ScenarioError> {
        BUILT_IN
            .iter()
            .map(|(name, text)| Self::parse(text, name))
            .collect()
    }

    /// Loads a scenario by its name, or from a file when `name` is a path.
    ///
    /// # Errors
    /// When there is none, or it is wrong.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        Self::parse(&Self::text(name)?, name)
    }

    /// The text of a scenario, as written.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn text(name: &str) -> Result<String, ScenarioError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok((*text).to_owned());
        }
        if !name.ends_with(".toml") && !name.contains('/') {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            return Err(ScenarioError::Unknown {
                name: name.to_owned(),
                known: known(name, &names, "scenarios"),
            });
        }
        std::fs::read_to_string(name).map_err(|source| ScenarioError::Read {
            path: Path::new(name).to_owned(),
            source,
        })
    }

    /// Reads a scenario from its text; `origin` is what errors call it.
    ///
    /// # Errors
    /// When the text is wrong, with the line, or describes no network.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self = toml::from_str(text).map_err(|source| ScenarioError::Syntax {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        let beside = Path::new(origin).parent().unwrap_or(Path::new(""));
        let problem = scenario.read_files(beside).err();
        match problem.or_else(|| scenario.problem()) {
            None => Ok(scenario),
            Some(problem) => Err(ScenarioError::Meaning {
                origin: origin.to_owned(),
                problem,
            }),
        }
    }

    /// Reads the files that cells name; their paths start where the scenario is.
    fn read_files(&mut self, beside: &Path) -> Result<(), String> {
        for link in &mut self.links {
            for named in link.up.0.iter_mut().chain(&mut link.down.0) {
                let Some(path) = named.cell.file().map(|file| beside.join(file)) else {
                    continue;
                };
                let refused = |problem: String| {
                    format!("cell '{}' of link '{}': {problem}", named.name, link.name)
                };
                let built_in = BUILT_IN_FILES
                    .iter()
                    .find(|(name, _)| path == Path::new(name));
                let text = match built_in {
                    Some((_, text)) => (*text).to_owned(),
                    None => read_text(&path)
                        .map_err(|e| refused(format!("cannot read {}: {e}", path.display())))?,
                };
                named
                    .cell
                    .take_file(&text)
                    .map_err(|e| refused(format!("{}: {e}", path.display())))?;
            }
        }
        Ok(())
    }

    fn problem(&self) -> Option<String> {
        if self.nodes.is_empty() {
            return Some("it has no [[node]]".into());
        }
        let segments = self.links.len() + self.lans.len();
        if segments.max(self.nodes.len()) > MAX_PARTS {
            return Some(format!(
                "it has {} nodes and {segments} links and lans: at most {MAX_PARTS} of each",
                self.nodes.len()
            ));
        }
        if self.services.iter().any(|service| service.port == 0) {
            return Some("a service must listen on a port from 1 to 65535".into());
        }
        let names: Vec<&str> = self.nodes.iter().map(|n| n.name.as_str()).collect();
        let links: Vec<&str> = self.links.iter().map(|l| l.name.as_str()).collect();
        let lans = self.lans.iter().map(|l| l.name.as_str());
        let segments: Vec<&str> = links.iter().copied().chain(lans).collect();
        let unknown_node = |name: &str, who: &str| {
            (!names.contains(&name)).then(|| {
                format!(
                    "{who} names the node '{name}': {}",
                    known(name, &names, "nodes")
                )
            })
        };
        for (kind, list) in [("node", &names), ("link", &segments)] {
            for (i, name) in list.iter().enumerate() {
                if !is_name(name) {
                    return Some(format!(
                        "'{name}' cannot name a {kind}: use 1 to {MAX_NAME_BYTES} of a-z, 0-9 and -"
                    ));
                }
                if list.iter().take(i).any(|earlier| earlier == name) {
                    return Some(format!("there are two {kind}s named '{name}'"));
                }
            }
        }
        for link in &self.links {
            for end in &link.between {
                if let Some(problem) = unknown_node(end, &format!("link '{}'", link.name)) {
                    return Some(problem);
                }
            }
            if link.between.first() == link.between.last() {
                return Some(format!(
                    "link '{}' joins '{}' to itself",
                    link.name, link.between[0]
                ));
            }
            if let Err(e) = plumb_link::chain::build_link(&link.up, &link.down, [0, 1]) {
                return Some(format!("link '{}': {e}", link.name));
            }
        }
        for lan in &self.lans {
            if !(2..=MAX_ON_LAN).contains(&lan.nodes.len()) {
                return Some(format!(
                    "lan '{}' joins {} nodes: it takes 2 to {MAX_ON_LAN}",
                    lan.name,
                    lan.nodes.len()
                ));
            }
            for (i, node) in lan.nodes.iter().enumerate() {
                if let Some(problem) = unknown_node(node, &format!("lan '{}'", lan.name)) {
                    return Some(problem);
                }
                if lan.nodes.iter().take(i).any(|earlier| earlier == node) {
                    return Some(format!("lan '{}' names '{node}' twice", lan.name));
                }
            }
        }
        if let Some(problem) = self.name_problem(&names, &segments) {
            return Some(problem);
        }
        for service in &self.services {
            if service.run.is_empty() {
                return Some(format!(
                    "the service on '{}' has nothing to run",
                    service.node
                ));
            }
            if let Some(problem) = unknown_node(&service.node, "a service") {
                return Some(problem);
            }
        }
        for traffic in &self.traffic {
            if traffic.run.is_empty() {
                return Some(format!(
                    "the traffic on '{}' has nothing to run",
                    traffic.node
                ));
            }
            if let Some(problem) = unknown_node(&traffic.node, "traffic") {
                return Some(problem);
            }
        }
        // Every range allows everything between its ends or nothing: one draw shows which.
        if let Err(problem) = vary(self, self.seed) {
            return Some(problem);
        }
        let shapers = self.router_shaper.iter().flat_map(|s| [&s.up, &s.down]);
        for end in shapers {
            match self.links.iter().find(|l| l.name == end.link) {
                None => {
                    return Some(format!(
                        "router_shaper names the link '{}', and the links are {}",
                        end.link,
                        links.join(", ")
                    ));
                }
                Some(link) if !link.is_emulated() => {
                    return Some(format!(
                        "router_shaper names the link '{}', which needs emulated = true",
                        end.link
                    ));
                }
                Some(_) => {}
            }
        }
        Plan::new(self).err()
    }

    /// What is wrong with the further names of nodes.
    fn name_problem(&self, nodes: &[&str], segments: &[&str]) -> Option<String> {
        let mut seen: Vec<&str> = Vec::new();
        for node in &self.nodes {
            for name in &node.names {
                if !is_host_name(name) {
                    return Some(format!(
                        "node '{}' cannot have the name '{name}': write labels of a-z, 0-9 and - joined by dots, such as www.example",
                        node.name
                    ));
                }
                let of_end = name
                    .split_once('.')
                    .is_some_and(|(n, s)| nodes.contains(&n) && segments.contains(&s));
                if name == "localhost"
                    || of_end
                    || nodes.contains(&name.as_str())
                    || seen.contains(&name.as_str())
                {
                    return Some(format!("the name '{name}' is given twice"));
                }
                seen.push(name);
            }
        }
        None
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
        && name != "lo"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const SMALL: &str =
        "name = \"x\"\nsummary = \"x\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n";

    fn error(extra: &str) -> String {
        Scenario::parse(&format!("{SMALL}{extra}"), "x.toml")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn built_in_ones_are_sound_named_as_their_files_and_explained() {
        let scenarios = Scenario::built_in().unwrap();
        assert!(scenarios.len() >= 5);
        for (scenario, (name, text)) in scenarios.iter().zip(BUILT_IN) {
            assert_eq!(scenario.name, *name);
            for words in [&scenario.summary, &scenario.about, &scenario.source] {
                assert!(!words.trim().is_empty(), "{name}");
            }
            assert!(!scenario.summary.contains('\n'), "{name}");
            assert!(text.lines().all(|line| line.len() <= 130), "{name}");
        }
    }

    #[test]
    fn a_file_of_delays_is_read_from_beside_the_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let link = "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n";
        let up =
            "up = [{ type = \"delay\", delay = \"1ms\", distribution = { file = \"lte.txt\" } }]";
        let scenario = folder.path().join("x.toml");
        std::fs::write(&scenario, format!("{SMALL}{link}{up}")).unwrap();
        let load = || Scenario::load(scenario.to_str().unwrap());

        let missing = load().unwrap_err().to_string();
        assert!(
            missing.contains("lte.txt") && missing.contains("'delay' of link 'l'"),
            "{missing}"
        );
        std::fs::write(folder.path().join("lte.txt"), "12ms\n13\n").unwrap();
        let wrong = load().unwrap_err().to_string();
        assert!(wrong.contains("lte.txt: line 2"), "{wrong}");
        std::fs::write(folder.path().join("lte.txt"), "12ms\n13ms\n").unwrap();
        let inline = up.replace("file = \"lte.txt\"", "samples = [\"12ms\", \"13ms\"]");
        let expected = Scenario::parse(&format!("{SMALL}{link}{inline}"), "x.toml").unwrap();
        let up = |scenario: &Scenario| scenario.links.first().unwrap().up.clone();
        assert_eq!(up(&load().unwrap()), up(&expected));
    }

    #[test]
    fn errors_name_file_line_and_what_is_allowed() {
        let typo = error("[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nupp = []\n");
        assert!(
            typo.contains("x.toml") && typo.contains("line 10") && typo.contains("`up`"),
            "{typo}"
        );
        let cell = error(
            "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nup = [{ type = \"shapper\" }]\n",
        );
        assert!(
            cell.contains("shaper") && cell.contains("line 10"),
            "{cell}"
        );
        let node = error("[[link]]\nname = \"l\"\nbetween = [\"a\", \"c\"]\n");
        assert!(node.contains("'c'") && node.contains("a, b"), "{node}");
        assert!(error("[[node]]\nname = \"a\"\n").contains("two nodes named 'a'"));
        assert!(
            Scenario::load("no-such")
                .unwrap_err()
                .to_string()
                .contains("home-cable")
        );
    }

    #[test]
    fn names_and_lans_are_held_to_what_is_possible() {
        let named = |name: &str| error(&format!("[[node]]\nname = \"c\"\nnames = [\"{name}\"]\n"));
        assert!(named("Www").contains("a-z, 0-9 and -"));
        assert!(named("www..x").contains("labels"));
        assert!(named("a").contains("'a' is given twice"));
        assert!(named("localhost").contains("twice"));
        let lan = |nodes: &str| error(&format!("[[lan]]\nname = \"l\"\nnodes = {nodes}\n"));
        assert!(lan("[\"a\"]").contains("joins 1 nodes"));
        assert!(lan("[\"a\", \"a\"]").contains("'a' twice"));
        assert!(lan("[\"a\", \"x\"]").contains("the nodes are a, b"));
    }

    #[test]
    fn the_format_is_described_with_keys_that_there_are() {
        let text = include_str!("../../../scenarios/README.md");
        let blocks: Vec<&str> = text
            .split("```toml\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(blocks.len() > 5, "{}", blocks.len());
        for block in blocks {
            let text = if block.starts_with("name") {
                format!("{block}[[node]]\nname = \"x\"\n")
            } else {
                format!("{SMALL}{block}")
            };
            // Names are explained apart from each other; keys and values must be right.
            let wrong = Scenario::parse(&text, "README.md").err();
            let syntax = wrong.filter(|e| matches!(e, ScenarioError::Syntax { .. }));
            assert!(syntax.is_none(), "{}", syntax.unwrap());
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,200}") {
            let _ = Scenario::parse(&text, "x");
            let _ = Scenario::parse(&format!("{SMALL}{text}"), "x");
        }
    }
}

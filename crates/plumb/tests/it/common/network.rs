//! Networks that a test writes down itself, and what runs in them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Output;

use plumb_lab::stats::LabStats;
use plumb_model::run::{LabClock, Run};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::{Checked, logged_by, measured_by, run_in, stderr, stdout};

/// A scenario that grows by nodes and links; commands run in its first node. What is said of each in
/// `settings` is TOML, as scenarios/README.md has it.
#[derive(Clone)]
pub(crate) struct Network {
    clock: LabClock,
    top: String,
    /// Names, and what else is said of each.
    nodes: Vec<(String, String)>,
    links: Vec<String>,
    rest: String,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            clock: LabClock::Virtual,
            top: String::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            rest: String::new(),
        }
    }
}

impl Network {
    /// What runs in it runs in real time: for what a real clock or the machine's own kernel shows alone.
    pub(crate) fn in_real_time(&mut self) -> &mut Self {
        self.clock = LabClock::Real;
        self
    }

    /// Two machines, `client` and `server`, and between them the link `line` with these cells.
    pub(crate) fn line(up: &str, down: &str) -> Self {
        let mut network = Self::default();
        network.node("client", "").node("server", "");
        let cells = format!("up = [{up}]\ndown = [{down}]");
        network.link("line", ["client", "server"], &cells);
        network
    }

    /// The same, with plumb's responder on the server.
    pub(crate) fn served_line(up: &str, down: &str) -> Self {
        let mut network = Self::line(up, down);
        network.serves("server");
        network
    }

    pub(crate) fn node(&mut self, name: &str, settings: &str) -> &mut Self {
        self.nodes.push((name.to_owned(), settings.to_owned()));
        self
    }

    /// Says more of a node.
    pub(crate) fn set(&mut self, node: &str, settings: &str) -> &mut Self {
        let (_, said) = self
            .nodes
            .iter_mut()
            .find(|(name, _)| name == node)
            .unwrap();
        writeln!(said, "\n{settings}").unwrap();
        self
    }

    /// Sets a kernel variable of a node.
    pub(crate) fn sysctl(&mut self, node: &str, variable: &str, value: &str) -> &mut Self {
        self.set(node, &format!("sysctl.\"{variable}\" = \"{value}\""))
    }

    pub(crate) fn link(&mut self, name: &str, between: [&str; 2], settings: &str) -> &mut Self {
        let link = format!("[[link]]\nname = \"{name}\"\nbetween = {between:?}\n{settings}\n");
        self.links.push(link);
        self
    }

    /// How many links there are: the number of the next one, which is in its addresses.
    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    /// plumb's responder on a node.
    pub(crate) fn serves(&mut self, node: &str) -> &mut Self {
        self.service(node, &["plumb", "serve", "--quiet"], 7586)
    }

    pub(crate) fn service(&mut self, node: &str, run: &[&str], port: u16) -> &mut Self {
        self.add(&format!(
            "[[service]]\nnode = \"{node}\"\nrun = {run:?}\nport = {port}"
        ))
    }

    pub(crate) fn without_ipv6(&mut self) -> &mut Self {
        self.top = "ipv6 = false\n".to_owned();
        self
    }

    /// More tables: lans, routes, truth.
    pub(crate) fn add(&mut self, tables: &str) -> &mut Self {
        writeln!(self.rest, "{tables}").unwrap();
        self
    }

    /// In a file, which goes when it is dropped.
    pub(crate) fn file(&self) -> NamedTempFile {
        let mut text = format!("name = \"test\"\nsummary = \"a test\"\n{}", self.top);
        for (name, settings) in &self.nodes {
            writeln!(text, "[[node]]\nname = \"{name}\"\n{settings}").unwrap();
        }
        text.extend(self.links.iter().map(String::as_str));
        scenario(&(text + &self.rest))
    }

    /// Runs a command of whatever status.
    pub(crate) fn run(&self, command: &[&str]) -> Output {
        run_in(
            self.clock,
            self.file().path().to_str().unwrap(),
            &[],
            command,
        )
    }

    /// Runs a verb of plumb that prints a Run.
    pub(crate) fn measured(&self, command: &[&str]) -> Checked {
        measured_by(self.clock, self.file().path().to_str().unwrap(), command)
    }

    /// Runs a verb of plumb that prints a Run; the Run, and the lines of the links' log.
    pub(crate) fn logged(&self, command: &[&str]) -> (Run, Vec<Value>) {
        logged_by(self.clock, self.file().path().to_str().unwrap(), command)
    }

    /// Runs a script of bash, which must succeed; what it printed, and what the links did.
    pub(crate) fn script(&self, script: &str) -> (String, LabStats) {
        let (file, stats) = (self.file(), NamedTempFile::new().unwrap());
        let options = ["--stats", stats.path().to_str().unwrap()];
        let command = ["bash", "-c", script];
        let output = run_in(
            self.clock,
            file.path().to_str().unwrap(),
            &options,
            &command,
        );
        assert!(
            output.status.success(),
            "{script}: {}{}",
            stdout(&output),
            stderr(&output)
        );
        let stats = std::fs::read_to_string(stats.path()).unwrap();
        (stdout(&output), serde_json::from_str(&stats).unwrap())
    }
}

/// The share that the machine took from a load of TCP of so many seconds at most: what the links were late by, and where a queue
/// of 40 ms overflowed after it, the retransmission timeout and slow start; and while the programs at the ends waited for a
/// processor.
pub(crate) fn taken_ratio(stats: &LabStats, load_s: f64) -> f64 {
    const QUEUE_S: f64 = 0.04;
    const RECOVERY_S: f64 = 0.3;
    let late_s = links_late_s(stats);
    let stalled_s = late_s + if late_s > QUEUE_S { RECOVERY_S } else { 0.0 };
    stalled_s / load_s + stats.starved_ratio
}

/// By how many seconds a link delivered a packet too late at most.
pub(crate) fn links_late_s(stats: &LabStats) -> f64 {
    let directions = stats.links.values().flat_map(|link| link.values());
    let late = directions.filter_map(|direction| direction.driver.lateness_s);
    late.map(|late| late.max).fold(0.0, f64::max)
}

/// A scenario in a file, which goes when it is dropped.
pub(crate) fn scenario(text: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

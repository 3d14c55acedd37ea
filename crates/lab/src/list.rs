//! The scenarios that come with plumb and the laboratories that run, as `plumb lab list --json`
//! prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::{Scenario, ScenarioError};

/// Version of the document.
pub const SCHEMA: &str = "plumb.lab-list/1";

/// The scenarios that come with plumb, and the laboratories in the background.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioList {
    /// Version of the document, always `plumb.lab-list/1`.
    pub schema: String,
    /// The scenarios, in the order in which they are shown.
    pub scenarios: Vec<Listed>,
    /// The laboratories in the background of the user who asks.
    pub running: Vec<Running>,
}

/// A scenario that comes with plumb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// Name of the scenario, as `plumb lab run` takes it.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// Which scenarios it stands with, such as `access lines`.
    #[serde(default)]
    pub group: String,
    /// What it is, in a few sentences.
    pub about: String,
    /// Where its numbers come from.
    pub source: String,
    /// The command that shows its truth.
    pub measure: Vec<String>,
    /// Names of its nodes. A command runs in the first unless it is given another.
    pub nodes: Vec<String>,
    /// Names of the links between its nodes.
    pub links: Vec<String>,
}

/// A laboratory in the background.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Running {
    /// Name of the laboratory, as `--lab` takes it.
    pub name: String,
    /// Name of its scenario.
    pub scenario: String,
    /// Seed of the scenario's random cells.
    pub seed: u64,
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// Names of the links between its nodes.
    pub links: Vec<String>,
    /// How long it has run, in seconds.
    pub duration_s: f64,
    /// Number of its first process, with which all of it ends. Null where that is in a PID namespace that cannot be
    /// seen.
    pub pid: Option<u32>,
}

impl ScenarioList {
    /// All of them.
    ///
    /// # Errors
    /// Errors of [`Scenario::built_in`].
    pub fn new(running: Vec<Running>) -> Result<Self, ScenarioError> {
        let scenarios = Scenario::built_in()?
            .into_iter()
            .map(|scenario| Listed {
                name: scenario.name,
                summary: scenario.summary,
                group: scenario.group,
                about: scenario.about.trim().to_owned(),
                source: scenario.source.trim().to_owned(),
                measure: scenario.truth.measure,
                nodes: scenario.nodes.into_iter().map(|node| node.name).collect(),
                links: scenario.links.into_iter().map(|link| link.name).collect(),
            })
            .collect();
        Ok(Self {
            schema: SCHEMA.to_owned(),
            scenarios,
            running,
        })
    }
}

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
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The scenarios, in the order in which they are shown.
    pub scenarios: Vec<Listed>,
    /// The laboratories in the background that belong to whoever asks.
    pub running: Vec<Running>,
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// What `plumb lab run` calls it.
    pub name: String,
    /// One line on what it is.
    pub summary: String,
    /// What it is, in a few sentences.
    pub about: String,
    /// Where its numbers come from.
    pub source: String,
    /// The command that shows its truth.
    pub measure: Vec<String>,
    /// Its machines; commands run in the first unless told otherwise.
    pub nodes: Vec<String>,
    /// What joins them.
    pub links: Vec<String>,
}

/// A laboratory in the background.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Running {
    /// What `--lab` calls it.
    pub name: String,
    /// Its scenario.
    pub scenario: String,
    /// Seed of its random cells.
    pub seed: u64,
    /// Its machines.
    pub nodes: Vec<String>,
    /// What joins them.
    pub links: Vec<String>,
    /// How long it has run.
    pub duration_s: f64,
    /// Its first process, with which all of it ends; absent where that is in a PID namespace that
    /// cannot be seen.
    pub pid: Option<u32>,
}

impl ScenarioList {
    /// All of them.
    ///
    /// # Errors
    /// Those of [`Scenario::built_in`].
    pub fn new(running: Vec<Running>) -> Result<Self, ScenarioError> {
        let scenarios = Scenario::built_in()?
            .into_iter()
            .map(|scenario| Listed {
                name: scenario.name,
                summary: scenario.summary,
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

//! The scenarios that come with plumb, as `plumb lab list --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::{Scenario, ScenarioError};

/// Version of the document.
pub const SCHEMA: &str = "plumb.lab-list/1";

/// The scenarios that come with plumb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioList {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The scenarios, in the order in which they are shown.
    pub scenarios: Vec<Listed>,
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// What `plumb lab run` calls it.
    pub name: String,
    /// One line on what it is.
    pub summary: String,
    /// Its machines; commands run in the first unless told otherwise.
    pub nodes: Vec<String>,
    /// What joins them.
    pub links: Vec<String>,
}

impl ScenarioList {
    /// All of them.
    ///
    /// # Errors
    /// Those of [`Scenario::built_in`].
    pub fn built_in() -> Result<Self, ScenarioError> {
        let scenarios = Scenario::built_in()?
            .into_iter()
            .map(|scenario| Listed {
                name: scenario.name,
                summary: scenario.summary,
                nodes: scenario.nodes.into_iter().map(|node| node.name).collect(),
                links: scenario.links.into_iter().map(|link| link.name).collect(),
            })
            .collect();
        Ok(Self {
            schema: SCHEMA.to_owned(),
            scenarios,
        })
    }

    /// The JSON Schema of the document.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

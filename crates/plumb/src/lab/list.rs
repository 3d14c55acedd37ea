//! `plumb lab list|show`: what there is.

use std::process::ExitCode;

use plumb_lab::client;
use plumb_lab::list::ScenarioList;
use plumb_lab::scenario::Scenario;

use crate::output::{print, print_json};

pub(super) fn list(json: bool) -> anyhow::Result<ExitCode> {
    let list = ScenarioList::new(client::running()?)?;
    if json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for scenario in list.scenarios {
        text += &format!("{:<20} {}\n", scenario.name, scenario.summary);
    }
    if !list.running.is_empty() {
        text += "\nRunning:\n";
    }
    for lab in list.running {
        text += &format!(
            "{:<20} {}, for {:.0} s: {}\n",
            lab.name,
            lab.scenario,
            lab.duration_s,
            lab.nodes.join(", ")
        );
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(name: &str) -> anyhow::Result<ExitCode> {
    // Errors first: what is shown can be run.
    Scenario::load(name)?;
    print(&Scenario::text(name)?)?;
    Ok(ExitCode::SUCCESS)
}

//! `plumb lab list|show`: what there is.

use std::process::ExitCode;

use plumb_lab::client;
use plumb_lab::list::ScenarioList;
use plumb_lab::scenario::Scenario;
use plumb_model::printable::line;

use crate::output::{print, print_json};

pub(super) fn list(json: bool) -> anyhow::Result<ExitCode> {
    let list = ScenarioList::new(client::running()?)?;
    if json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&text(&list))?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each; what they are called comes from files and from other programs.
fn text(list: &ScenarioList) -> String {
    let mut text = String::new();
    for scenario in &list.scenarios {
        text += &format!("{:<20} {}\n", line(&scenario.name), line(&scenario.summary));
    }
    if !list.running.is_empty() {
        text += "\nRunning:\n";
    }
    for lab in &list.running {
        text += &format!(
            "{:<20} {}, for {:.0} s: {}\n",
            line(&lab.name),
            line(&lab.scenario),
            lab.duration_s,
            line(&lab.nodes.join(", "))
        );
    }
    text
}

pub(super) fn show(name: &str) -> anyhow::Result<ExitCode> {
    // Errors first: what is shown can be run.
    Scenario::load(name)?;
    print(&Scenario::text(name)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_lab::list::{Listed, Running};

    #[test]
    fn each_scenario_and_each_lab_has_one_line() {
        let words = || "a\nb".to_owned();
        let list = ScenarioList {
            schema: String::new(),
            scenarios: vec![Listed {
                name: "x".to_owned(),
                summary: words(),
                about: words(),
                source: words(),
                measure: Vec::new(),
                nodes: Vec::new(),
                links: Vec::new(),
            }],
            running: vec![Running {
                name: "y".to_owned(),
                scenario: words(),
                seed: 1,
                nodes: vec![words()],
                links: Vec::new(),
                duration_s: 2.0,
                pid: None,
            }],
        };
        let text = text(&list);
        assert_eq!(text.lines().count(), 4, "{text}");
    }
}

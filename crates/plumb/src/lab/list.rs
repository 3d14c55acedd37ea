//! `plumb lab list|show`: what there is.

use std::process::ExitCode;

use plumb_lab::client;
use plumb_lab::list::{Listed, ScenarioList};
use plumb_lab::scenario::Scenario;
use plumb_model::printable::line;
use plumb_model::units::capital;

use crate::output::{print, print_json, style};
use crate::usage::wrong;
use crate::wrapped::wrap;

/// Groups in the order in which they are shown; any other comes last.
const GROUPS: [&str; 8] = [
    "access lines",
    "homes",
    "queues",
    "long and fast paths",
    "loss, delay and order",
    "packet sizes",
    "routes",
    "limits and middleboxes",
];

/// Columns of the names, with the blanks before and behind them: most are shorter.
const NAME_COLUMNS: usize = 24;

pub(super) fn list(words: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let mut list = ScenarioList::new(client::running()?)?;
    list.scenarios.retain(|scenario| has(scenario, words));
    if list.scenarios.is_empty() {
        return Err(wrong(format!(
            "no scenario has '{}' in its name, group or summary: plumb lab list shows all; the groups are {}",
            words.join(" "),
            GROUPS.join("; ")
        )));
    }
    if json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&text(&list, style().width))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a scenario has all of the words.
fn has(scenario: &Listed, words: &[String]) -> bool {
    let all = [&scenario.name, &scenario.group, &scenario.summary];
    let all = all.map(|text| text.to_lowercase()).join("\n");
    words.iter().all(|word| all.contains(&word.to_lowercase()))
}

/// Scenarios by group, and the labs that run; what they are called comes from files and from other programs.
fn text(list: &ScenarioList, width: usize) -> String {
    let mut text = String::new();
    let others = list
        .scenarios
        .iter()
        .map(|scenario| scenario.group.as_str());
    let mut groups = GROUPS.to_vec();
    for group in others {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        let members = || {
            list.scenarios
                .iter()
                .filter(|scenario| scenario.group == group)
        };
        if members().next().is_none() {
            continue;
        }
        let title = match group {
            "" => "Others".to_owned(),
            group => capital(&line(group)),
        };
        text += &format!("{}{title}\n", if text.is_empty() { "" } else { "\n" });
        for scenario in members() {
            entry(&mut text, &scenario.name, &scenario.summary, width);
        }
    }
    if !list.running.is_empty() {
        text += "\nRunning\n";
    }
    for lab in &list.running {
        let what = format!(
            "{}, for {:.0} s: {}",
            lab.scenario,
            lab.duration_s,
            lab.nodes.join(", ")
        );
        entry(&mut text, &lab.name, &what, width);
    }
    text
}

fn entry(into: &mut String, name: &str, what: &str, width: usize) {
    let first = format!("  {:<1$} ", line(name), NAME_COLUMNS - 3);
    wrap(into, &first, NAME_COLUMNS, &line(what), width);
}

pub(super) fn show(name: &str) -> anyhow::Result<ExitCode> {
    // Errors first: what is shown can be run.
    Scenario::load(name)?;
    print(&Scenario::text(name)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_lab::list::Running;

    fn all() -> ScenarioList {
        let running = Running {
            name: "y".to_owned(),
            scenario: "a\nb".to_owned(),
            seed: 1,
            nodes: vec!["a\nb".to_owned()],
            links: Vec::new(),
            duration_s: 2.0,
            pid: None,
        };
        ScenarioList::new(vec![running]).unwrap()
    }

    #[test]
    fn every_scenario_stands_in_a_group_and_fits() {
        let list = all();
        for scenario in &list.scenarios {
            assert!(
                GROUPS.contains(&scenario.group.as_str()),
                "{}",
                scenario.name
            );
        }
        for group in GROUPS {
            assert!(
                list.scenarios
                    .iter()
                    .any(|scenario| scenario.group == group),
                "{group}"
            );
        }
        let text = text(&list, 80);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let entries = text
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        assert_eq!(entries.count(), list.scenarios.len() + 1, "{text}");
    }

    #[test]
    fn words_choose() {
        let list = all();
        let chosen = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let found = list
                .scenarios
                .iter()
                .filter(|scenario| has(scenario, &words));
            found
                .map(|scenario| scenario.name.as_str())
                .collect::<Vec<_>>()
        };
        assert!(chosen(&["MTU"]).contains(&"mtu-hops"));
        assert_eq!(chosen(&["cable", "varied"]), ["cable-varied"]);
        assert!(chosen(&["queues"]).contains(&"queue-pie"));
        assert!(chosen(&["nothing-of-the-kind"]).is_empty());
        assert_eq!(chosen(&[]).len(), list.scenarios.len());
    }
}

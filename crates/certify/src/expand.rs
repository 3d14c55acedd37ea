//! From the network, a base line and changes to a scenario: pure, and the same trial always gives the same text.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use plumb_lab::scenario::Scenario;
use toml::{Table, Value};

use crate::draw::{Drawer, Draws, Graded};
use crate::library::{CellEdit, Change, Library};
use crate::trials::Trial;

/// The network of a trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expansion {
    /// The scenario, as TOML.
    pub(crate) text: String,
    /// What each change drew, by its name.
    pub(crate) drawn: BTreeMap<String, BTreeMap<String, String>>,
}

/// Makes the scenario of a trial.
pub(crate) fn expand(library: &Library, trial: &Trial) -> anyhow::Result<Expansion> {
    let (_, base) = library
        .bases
        .get(&trial.base)
        .with_context(|| format!("there is no base line '{}'", trial.base))?;
    let none = Draws::new();
    let of_base = Drawer {
        seed: trial.seed,
        base: &base.draw,
        change: ("base", &none),
        graded: None,
    };
    let mut scenario = of_base.table(&library.network)?;
    let mut drawn = BTreeMap::from([(trial.base.clone(), of_base.all()?)]);
    apply(&mut scenario, base, &of_base).with_context(|| trial.base.clone())?;
    for name in &trial.changes {
        let (_, change) = library
            .changes
            .get(name)
            .with_context(|| format!("there is no change '{name}'"))?;
        let drawer = Drawer {
            change: (name, &change.draw),
            graded: change.graded.as_deref().map(|name| Graded {
                name,
                share: trial.severity,
            }),
            ..of_base
        };
        apply(&mut scenario, change, &drawer)
            .with_context(|| format!("{name} on {}", trial.base))?;
        let mut of_change = drawer.all()?;
        of_change.retain(|name, _| change.draw.contains_key(name));
        drawn.insert(name.clone(), of_change);
    }
    let id = trial.id();
    scenario.insert("name".to_owned(), Value::String(id.clone()));
    let summary = [vec![base.about.as_str()], abouts(library, trial)].concat();
    scenario.insert("summary".to_owned(), Value::String(summary.join(" / ")));
    // Beyond 53 bits JSON's numbers are not whole.
    let seed = i64::try_from(trial.seed >> 11)?;
    scenario.insert("seed".to_owned(), Value::Integer(seed));
    let text = toml::to_string(&scenario)?;
    // Files that cells name come with plumb: they are found where no folder is named.
    Scenario::parse(&text, &id)?;
    Ok(Expansion { text, drawn })
}

fn abouts<'a>(library: &'a Library, trial: &Trial) -> Vec<&'a str> {
    let changes = trial.changes.iter();
    let about = changes.filter_map(|name| Some(library.changes.get(name)?.1.about.as_str()));
    about.collect()
}

fn apply(scenario: &mut Table, change: &Change, drawer: &Drawer<'_>) -> anyhow::Result<()> {
    for edit in &change.cells {
        for end in &edit.on {
            let end = drawer.text(end)?;
            let (link, direction) = end.split_once('.').context("write LINK.up or LINK.down")?;
            let link = named(scenario, "link", link)?;
            let cells = link
                .entry(direction)
                .or_insert_with(|| Value::Array(Vec::new()));
            let cells = cells.as_array_mut().context("cells are a list")?;
            edit_cells(cells, edit, drawer).with_context(|| end.clone())?;
        }
    }
    for (node, settings) in &drawer.table(&change.nodes)? {
        let settings = settings
            .as_table()
            .context("a node's settings are a table")?;
        merge(named(scenario, "node", node)?, settings);
    }
    for (list, more) in drawer.table(&change.add)? {
        let more = more.as_array().context("what is added is a list")?;
        let known = scenario
            .entry(list)
            .or_insert_with(|| Value::Array(Vec::new()));
        let known = known.as_array_mut().context("it is no list")?;
        known.extend(more.iter().cloned());
    }
    merge(scenario, &drawer.table(&change.scenario)?);
    Ok(())
}

fn edit_cells(cells: &mut Vec<Value>, edit: &CellEdit, drawer: &Drawer<'_>) -> anyhow::Result<()> {
    if let Some(cell) = &edit.change {
        let at = place(cells, cell)?;
        let cell = cells.get_mut(at).and_then(Value::as_table_mut);
        let cell = cell.context("a cell is a table")?;
        // Settings that are there are replaced whole: a queue of another type has none of the one before.
        for (key, value) in drawer.table(&edit.to)? {
            match value.as_str() {
                Some("") => cell.remove(&key),
                _ => cell.insert(key, value),
            };
        }
    }
    if let Some(cell) = &edit.remove {
        let at = place(cells, cell)?;
        cells.remove(at);
    }
    if let Some(cell) = &edit.put {
        let at = match (&edit.before, &edit.after) {
            (Some(cell), _) => place(cells, cell)?,
            (None, Some(cell)) => place(cells, cell)? + 1,
            (None, None) => cells.len(),
        };
        cells.insert(at, Value::Table(drawer.table(cell)?));
    }
    Ok(())
}

/// Where the cell of that name or type is. What carries the line is its `shaper`, also where it is a trace.
fn place(cells: &[Value], name: &str) -> anyhow::Result<usize> {
    let is = |cell: &Value| {
        let field = |key: &str| cell.get(key).and_then(Value::as_str);
        field("name").or(field("type")) == Some(name)
    };
    match cells.iter().position(is) {
        Some(at) => Ok(at),
        None => bail!("there is no cell '{name}'"),
    }
}

/// The element of that name in one of the scenario's lists.
fn named<'a>(scenario: &'a mut Table, list: &str, name: &str) -> anyhow::Result<&'a mut Table> {
    let elements = scenario.get_mut(list).and_then(Value::as_array_mut);
    let mut tables = elements
        .into_iter()
        .flatten()
        .filter_map(Value::as_table_mut);
    let found = tables.find(|table| table.get("name").and_then(Value::as_str) == Some(name));
    found.with_context(|| format!("there is no {list} '{name}'"))
}

fn merge(into: &mut Table, more: &Table) {
    for (key, value) in more {
        match (into.get_mut(key), value) {
            (Some(Value::Table(known)), Value::Table(more)) => merge(known, more),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::library::{Role, Set, folder};
    use crate::trials::{Numbers, trials};
    use proptest::prelude::*;

    const NUMBERS: Numbers = Numbers {
        faults: 2,
        unknown: 2,
        twins: 2,
        healthy: 20,
        pairs: 9,
    };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2))]
        /// Whatever is drawn, every trial of every set is a network that can be.
        #[test]
        fn every_trial_is_a_network_and_always_the_same(key in "[a-f0-9]{8}") {
            let library = Library::read(&folder()).unwrap();
            for set in [Set::Fit, Set::Choose, Set::Certify] {
                for trial in trials(&library, set, NUMBERS, &key) {
                    let expanded = expand(&library, &trial);
                    let expanded = expanded.map_err(|e| format!("{}: {e:#}", trial.id())).unwrap();
                    prop_assert_eq!(&expanded, &expand(&library, &trial).unwrap());
                }
            }
        }
    }

    #[test]
    fn another_seed_is_another_line() {
        let library = Library::read(&folder()).unwrap();
        let [one, other] = ["a", "b"].map(|key| {
            let all = trials(&library, Set::Fit, NUMBERS, key);
            let trial = all.into_iter().find(|trial| trial.changes == ["policer"]);
            expand(&library, &trial.unwrap()).unwrap()
        });
        assert_ne!(one.drawn, other.drawn);
        let drawn = &one.drawn["policer"];
        assert!(
            one.text
                .contains(&format!("rate = \"{}\"", drawn["contract"])),
            "{}",
            one.text
        );
    }

    fn library(change: &str) -> Library {
        let base = "about = \"line\"\nkind = \"home\"\n[draw]\nrate = \"20mbit\"";
        let network = r#"
            [[node]]
            name = "a"
            [[node]]
            name = "b"
            [[link]]
            name = "l"
            between = ["a", "b"]
            up = [{ type = "shaper", rate = "${rate}" }, { type = "delay", delay = "9ms" }]
        "#;
        let (base, change) = (
            toml::from_str(base).unwrap(),
            toml::from_str(change).unwrap(),
        );
        Library {
            network: toml::from_str(network).unwrap(),
            bases: BTreeMap::from([("line".to_owned(), (Set::Fit, base))]),
            changes: BTreeMap::from([("fault".to_owned(), (Role::Fault, change))]),
            pairs: Vec::new(),
            ambiguous: Vec::new(),
        }
    }

    fn expanded(change: &str) -> Table {
        let library = library(change);
        let numbers = Numbers {
            faults: 1,
            ..NUMBERS
        };
        let trial = trials(&library, Set::Fit, numbers, "").remove(0);
        toml::from_str(&expand(&library, &trial).unwrap().text).unwrap()
    }

    #[test]
    fn cells_are_changed_removed_and_put_in_their_places() {
        let scenario = expanded(
            r#"
            about = "x"
            on = ["home"]
            [draw]
            hold = "70ms"
            [[cells]]
            on = ["l.up"]
            change = "shaper"
            to = { queue = { type = "fifo", limit = "${hold}" } }
            [[cells]]
            on = ["l.up", "l.down"]
            put = { type = "loss", ratio = "1%" }
            [[cells]]
            on = ["l.up"]
            put = { type = "duplicate", ratio = "1%" }
            after = "shaper"
            [[cells]]
            on = ["l.up"]
            remove = "delay"
            [nodes.b.sysctl]
            "net.ipv4.tcp_sack" = "0"
            [[add.traffic]]
            node = "b"
            run = ["true"]
            "#,
        );
        let link = scenario["link"][0].as_table().unwrap();
        let kinds = |direction: &str| -> Vec<String> {
            let cells = link[direction].as_array().unwrap().iter();
            cells
                .map(|cell| cell["type"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(kinds("up"), ["shaper", "duplicate", "loss"]);
        assert_eq!(kinds("down"), ["loss"]);
        assert_eq!(link["up"][0]["queue"]["limit"].as_str(), Some("70ms"));
        assert_eq!(link["up"][0]["rate"].as_str(), Some("20mbit"));
        assert_eq!(
            scenario["node"][1]["sysctl"]["net.ipv4.tcp_sack"].as_str(),
            Some("0")
        );
        assert_eq!(scenario["traffic"].as_array().map(Vec::len), Some(1));
    }
}

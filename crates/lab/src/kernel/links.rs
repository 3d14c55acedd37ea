//! The links of a laboratory that the kernel carries: a veth pair each, with a tree of queueing
//! disciplines at both ends.

use std::collections::BTreeMap;

use plumb_link::spec::ChainSpec;

use super::Tree;
use crate::error::LabError;
use crate::network::{self, Nodes};
use crate::scenario::{LinkSpec, Scenario};
use plumb_model::direction::OneDirection;
use plumb_net::tc::{self, Qdisc};

/// Handle of the outermost discipline.
const FIRST_HANDLE: u16 = 1;

/// MTU of a veth in bytes, where the scenario says none.
const MTU_BYTES: u32 = 1500;

/// A direction of a link, the node that sends, and what its device is given.
pub(crate) struct Direction<'a> {
    link: &'a LinkSpec,
    way: OneDirection,
    sender: &'a str,
    tree: Tree,
}

impl Direction<'_> {
    /// What gives the link's device there its disciplines.
    pub(super) fn commands(&self) -> Vec<Vec<String>> {
        let mtu_bytes = self.link.mtu.unwrap_or(MTU_BYTES);
        self.tree.commands(&self.link.name, mtu_bytes, FIRST_HANDLE)
    }
}

/// The directions of the links that are not plain cables, with the node that sends.
fn directions(
    scenario: &Scenario,
) -> impl Iterator<Item = (&LinkSpec, OneDirection, &str, &ChainSpec)> {
    let links = scenario.links.iter().filter(|link| link.is_emulated());
    links.flat_map(|link| {
        let [first, second] = &link.between;
        [
            (link, OneDirection::Up, first.as_str(), &link.up),
            (link, OneDirection::Down, second.as_str(), &link.down),
        ]
    })
}

/// What the kernel is to do in every direction of a scenario.
///
/// # Errors
/// When it cannot; the error names link, direction and cell.
pub(crate) fn render(scenario: &Scenario) -> Result<Vec<Direction<'_>>, LabError> {
    directions(scenario)
        .map(|(link, way, sender, cells)| {
            let tree = Tree::render(cells)
                .map_err(|e| LabError::Control(format!("{}.{}: {e}", link.name, way.name())))?;
            Ok(Direction {
                link,
                way,
                sender,
                tree,
            })
        })
        .collect()
}

/// Gives the links their disciplines. Returns what the user must know about them.
///
/// # Errors
/// Without `tc`, and when the kernel refuses.
pub(crate) fn install(scenario: &Scenario, nodes: &Nodes) -> Result<Vec<String>, LabError> {
    let mut notes = vec![
        "the links are the kernel's (--backend kernel): plumb does not see their packets, and cannot say how late they were".to_owned(),
    ];
    for direction in render(scenario)? {
        let commands = direction.commands();
        network::node(nodes, direction.sender)?.in_network(|| {
            for command in &commands {
                tc::run(command)?;
            }
            Ok::<_, LabError>(())
        })?;
        let of = format!("{}.{}", direction.link.name, direction.way.name());
        let told = direction.tree.notes.iter();
        notes.extend(told.map(|note| format!("{of}: {note}")));
    }
    Ok(notes)
}

/// What the kernel counted until now; where that cannot be had, a note says so.
pub(crate) fn stats(
    scenario: &Scenario,
    nodes: &Nodes,
    notes: &mut Vec<String>,
) -> BTreeMap<String, BTreeMap<OneDirection, Vec<Qdisc>>> {
    let mut links: BTreeMap<String, BTreeMap<OneDirection, Vec<Qdisc>>> = BTreeMap::new();
    for (link, way, sender, _) in directions(scenario) {
        let counted = network::node(nodes, sender)
            .and_then(|node| node.in_network(|| Ok::<_, LabError>(tc::qdiscs(&link.name)?)));
        match counted {
            Ok(qdiscs) => {
                links
                    .entry(link.name.clone())
                    .or_default()
                    .insert(way, qdiscs);
            }
            Err(e) => notes.push(format!(
                "what the kernel counted on {}.{} is not known: {e}",
                link.name,
                way.name()
            )),
        }
    }
    links
}
